package track

import (
	"maps"
	"math"
	"slices"
	"strings"
	"time"
)

// keyWallClock is stored with each row of a run directory; trackers have clocks of their own.
const keyWallClock = "time/wall_clock_sec"

// keptSteps is the number of steps whose values are remembered, to notice what is new.
const keptSteps = 1000

// underSplit gives the keys of a split other than "train" the split as prefix, so that a key and a step name one value.
func underSplit(split string, metrics map[string]float64) map[string]float64 {
	out := make(map[string]float64, len(metrics))
	for key, value := range metrics {
		if key == keyWallClock {
			continue
		}
		if split != "train" && !strings.HasPrefix(key, split+"/") {
			key = split + "/" + key
		}
		out[key] = value
	}
	return out
}

// value is a stored metric, in the precision of TensorBoard.
type value struct {
	bits  uint32
	final bool // stored by an earlier process, and cannot be taken back
}

func bitsOf(x float64) uint32 { return math.Float32bits(float32(x)) }

// seen holds what was stored, by step and key. What is older than floor is not compared any more.
type seen struct {
	steps map[int]map[string]value
	floor int
}

func newSeen() *seen { return &seen{map[int]map[string]value{}, math.MinInt} }

// read takes what earlier processes have stored.
func (s *seen) read(values Values, final bool) {
	for step, metrics := range values {
		s.steps[step] = map[string]value{}
		for key, x := range metrics {
			s.steps[step][key] = value{bitsOf(x), final}
		}
	}
}

// news returns what is new or has changed, in the rows that have it. Of several values of a key and step, the last
// counts.
func (s *seen) news(rows []Row) []Row {
	type name struct {
		step int
		key  string
	}
	fresh := map[name]int{} // index of the row
	out := make([]Row, len(rows))
	for i, row := range rows {
		out[i] = Row{row.Time, row.Step, map[string]float64{}}
		for key, x := range row.Metrics {
			at := name{row.Step, key}
			before, waits := fresh[at]
			switch old, ok := s.steps[row.Step][key]; {
			case row.Step < s.floor, ok && (old.final || old.bits == bitsOf(x)) && !waits:
			case waits && bitsOf(out[before].Metrics[key]) == bitsOf(x):
			default:
				if waits {
					delete(out[before].Metrics, key)
				}
				out[i].Metrics[key], fresh[at] = x, i
			}
		}
	}
	return slices.DeleteFunc(out, func(row Row) bool { return len(row.Metrics) == 0 })
}

// add remembers rows that were stored, and forgets those of steps long ago.
func (s *seen) add(rows []Row) {
	newest := s.floor
	for _, row := range rows {
		if s.steps[row.Step] == nil {
			s.steps[row.Step] = map[string]value{}
		}
		for key, x := range row.Metrics {
			s.steps[row.Step][key] = value{bits: bitsOf(x)}
		}
		newest = max(newest, row.Step-keptSteps)
	}
	s.floor = newest
	maps.DeleteFunc(s.steps, func(step int, _ map[string]value) bool { return step < s.floor })
}

// rowsOf returns values as rows of one time, by rising step.
func rowsOf(values Values, at time.Time) []Row {
	var rows []Row
	for _, step := range slices.Sorted(maps.Keys(values)) {
		rows = append(rows, Row{at, step, values[step]})
	}
	return rows
}

// remaining returns what the run still has of written, after it was resumed at step: everything of earlier steps, and
// of later ones what is in its history. lost reports whether something is gone.
func remaining(written, history Values, step int) (keep Values, lost bool) {
	keep = Values{}
	for at, metrics := range written {
		kept := map[string]float64{}
		for key, x := range metrics {
			old, ok := history[at][key]
			if at < step || ok && bitsOf(old) == bitsOf(x) {
				kept[key] = x
			} else {
				lost = true
			}
		}
		keep[at] = kept
	}
	return keep, lost
}
