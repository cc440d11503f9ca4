package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os/exec"
	"slices"
)

// tolerance is the part by which an operation may be slower in every round, and the mean of all in the middle one: the
// layout of code and memory changes from build to build.
const tolerance = 0.05

// measured is what art debug bench device --json prints.
type measured struct {
	Machine struct {
		CPU string `json:"cpu_name"`
	} `json:"machine"`
	Results []struct {
		Name string  `json:"name"`
		Best float64 `json:"best_ns"`
	} `json:"results"`
}

// times returns the best time of each operation.
func (m *measured) times() map[string]float64 {
	times := map[string]float64{}
	for _, r := range m.Results {
		times[r.Name] = r.Best
	}
	return times
}

// compare measures two programs in turns. Neighbours in time are compared, because the speed of a machine drifts.
func compare(before, after string, bench []string, rounds int, out io.Writer) error {
	ratios := map[string][]float64{}
	for range rounds {
		first, err := measure(before, bench)
		if err != nil {
			return err
		}
		second, err := measure(after, bench)
		if err != nil {
			return err
		}
		for name, time := range second {
			if first[name] > 0 {
				ratios[name] = append(ratios[name], time/first[name])
			}
		}
	}
	return judge(ratios, out)
}

// measure runs a program. The base may be of a time when the verb bench had no group.
func measure(program string, bench []string) (map[string]float64, error) {
	out, err := exec.Command(program, bench...).Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		if exit.ExitCode() == 2 && bench[0] == "debug" {
			return measure(program, bench[1:])
		}
		err = fmt.Errorf("%w: %s", err, exit.Stderr)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", program, err)
	}
	var m measured
	err = json.Unmarshal(out, &m)
	return m.times(), err
}

// judge prints the ratios, new over old time, and returns an error when the new program is slower beyond noise: an
// operation in every round, or all of them together in half of the rounds.
func judge(ratios map[string][]float64, out io.Writer) error {
	if len(ratios) == 0 {
		return errors.New("the two have no operation in common")
	}
	var names, slower []string
	for name := range ratios {
		names = append(names, name)
	}
	slices.Sort(names)
	var medians []float64
	for _, name := range names {
		sorted := slices.Sorted(slices.Values(ratios[name]))
		median := sorted[len(sorted)/2]
		medians = append(medians, median)
		mark := ""
		if sorted[0] > 1+tolerance {
			mark, slower = "  slower in every round", append(slower, name)
		}
		fmt.Fprintf(out, "%-44s %6.3f  (%.3f to %.3f)%s\n", name, median, sorted[0], sorted[len(sorted)-1], mark)
	}
	all := geometricMean(medians)
	fmt.Fprintf(out, "%-44s %6.3f\n", "all: time over that of the base", all)
	if len(slower) > 0 || all > 1+tolerance {
		return fmt.Errorf("slower than the base by more than %.0f %%: all %.3f; in every round: %q",
			100*tolerance, all, slower)
	}
	return nil
}

func geometricMean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += math.Log(v)
	}
	return math.Exp(sum / float64(len(values)))
}
