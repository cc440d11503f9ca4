package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/goart-dev/art/backend/plot"
)

// release is what a machine measured of a version.
type release struct {
	version string
	*measured
}

// plotReleases draws a bar for each release, and a drawing for each machine.
func plotReleases(folder string, out io.Writer) error {
	machines, err := readReleases(folder)
	if err != nil {
		return err
	}
	for _, machine := range slices.Sorted(maps.Keys(machines)) {
		releases := machines[machine]
		if len(releases) < 2 {
			fmt.Fprintf(out, "%s: one release, nothing to compare\n", machine)
			continue
		}
		path := filepath.Join(folder, machine+".svg")
		if err := plot.Save(path, bars(releases)); err != nil {
			return err
		}
		fmt.Fprintln(out, path)
	}
	return nil
}

// readReleases reads FOLDER/VERSION/MACHINE.json, the oldest version first.
func readReleases(folder string) (map[string][]release, error) {
	paths, err := filepath.Glob(filepath.Join(folder, "v*", "*.json"))
	if err != nil {
		return nil, err
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("%s has no VERSION/MACHINE.json", folder)
	}
	machines := map[string][]release{}
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		r := release{filepath.Base(filepath.Dir(path)), &measured{}}
		if err := json.Unmarshal(content, r.measured); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		machine := strings.TrimSuffix(filepath.Base(path), ".json")
		machines[machine] = append(machines[machine], r)
	}
	for _, releases := range machines {
		slices.SortFunc(releases, func(a, b release) int { return compareVersions(a.version, b.version) })
	}
	return machines, nil
}

// compareVersions compares numbers as such: v0.9.0 is before v0.10.0.
func compareVersions(a, b string) int {
	x, y := strings.Split(a, "."), strings.Split(b, ".")
	for i := range min(len(x), len(y)) {
		m, errM := strconv.Atoi(strings.TrimPrefix(x[i], "v"))
		n, errN := strconv.Atoi(strings.TrimPrefix(y[i], "v"))
		c := cmp.Compare(m, n)
		if errM != nil || errN != nil {
			c = cmp.Compare(x[i], y[i])
		}
		if c != 0 {
			return c
		}
	}
	return cmp.Compare(len(x), len(y))
}

// bars draws the speed of each release: the time of the first over its own, the geometric mean of the operations that
// both have measured.
func bars(releases []release) *plot.Bars {
	first := releases[0].times()
	b := &plot.Bars{
		Title: "art debug bench, " + cmp.Or(releases[0].Machine.CPU, "unknown processor"),
		Y:     "speed, that of " + releases[0].version + " is 1",
	}
	for _, r := range releases {
		var speeds []float64
		for name, time := range r.times() {
			if first[name] > 0 && time > 0 {
				speeds = append(speeds, first[name]/time)
			}
		}
		if len(speeds) > 0 {
			b.Bars = append(b.Bars, plot.Bar{Name: r.version, Value: geometricMean(speeds)})
		}
	}
	return b
}
