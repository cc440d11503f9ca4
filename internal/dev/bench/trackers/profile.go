package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"runtime/pprof"
	"strings"
	"time"

	"github.com/goart-dev/art/internal/protofield"
)

// The field numbers are those of profile.proto of github.com/google/pprof.

// sample is a stack of a profile, the innermost function first, with its values.
type sample struct {
	stack  []string
	values []int64
}

// messages has the fields of a message that readProfile needs, still encoded.
type messages struct {
	samples, locations, functions [][]byte
	texts                         []string
}

// readProfile reads a profile of runtime/pprof.
func readProfile(data []byte) ([]sample, error) {
	unzip, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	if data, err = io.ReadAll(unzip); err != nil {
		return nil, err
	}
	var m messages
	for f, err := range protofield.All(data) {
		if err != nil {
			return nil, err
		}
		switch f.Number {
		case 2:
			m.samples = append(m.samples, f.Data)
		case 4:
			m.locations = append(m.locations, f.Data)
		case 5:
			m.functions = append(m.functions, f.Data)
		case 6:
			m.texts = append(m.texts, string(f.Data))
		}
	}
	return m.decode()
}

// decode resolves the ids.
func (m *messages) decode() ([]sample, error) {
	functions := map[uint64]string{}
	for _, data := range m.functions {
		id, name, err := twoNumbers(data, 1, 2)
		if err != nil || name >= uint64(len(m.texts)) {
			return nil, fmt.Errorf("the profile has a damaged function: %w", err)
		}
		functions[id] = m.texts[name]
	}
	locations := map[uint64][]string{}
	for _, data := range m.locations {
		id, names, err := locationOf(data, functions)
		if err != nil {
			return nil, err
		}
		locations[id] = names
	}
	var out []sample
	for _, data := range m.samples {
		s, err := sampleOf(data, locations)
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}

// locationOf reads a location: its id and the names of its functions, what is inlined first.
func locationOf(data []byte, functions map[uint64]string) (id uint64, names []string, err error) {
	for f, err := range protofield.All(data) {
		if err != nil {
			return 0, nil, err
		}
		switch f.Number {
		case 1:
			id = f.Bits
		case 4:
			function, _, err := twoNumbers(f.Data, 1, 2)
			if err != nil {
				return 0, nil, err
			}
			names = append(names, functions[function])
		}
	}
	return id, names, nil
}

func sampleOf(data []byte, locations map[uint64][]string) (s sample, err error) {
	for f, err := range protofield.All(data) {
		if err != nil {
			return s, err
		}
		if f.Number > 2 {
			continue
		}
		numbers, err := f.Varints()
		if err != nil {
			return s, err
		}
		for _, n := range numbers {
			if f.Number == 1 {
				s.stack = append(s.stack, locations[n]...)
			} else {
				s.values = append(s.values, int64(n))
			}
		}
	}
	return s, nil
}

// twoNumbers returns two fields of a message.
func twoNumbers(b []byte, first, second protofield.Number) (x, y uint64, err error) {
	for f, err := range protofield.All(b) {
		if err != nil {
			return 0, 0, err
		}
		switch f.Number {
		case first:
			x = f.Bits
		case second:
			y = f.Bits
		}
	}
	return x, y, nil
}

// parts are the trackers, by what the names of their functions begin with. The first that a stack has counts. What is
// left of the network are the goroutines of HTTP connections, whose stacks have no tracker.
var parts = []struct{ name, prefix string }{
	{"wandb", "github.com/goart-dev/art/backend/track/wandb."},
	{"tensorboard", "github.com/goart-dev/art/backend/track/tensorboard."},
	{"mlflow", "github.com/goart-dev/art/backend/track/mlflow."},
	{"otel", "github.com/goart-dev/art/backend/track/otel."},
	{"otel", "go.opentelemetry.io/"},
	{"openpipe", "github.com/goart-dev/art/backend/track/openpipe."},
	{"prometheus", "github.com/goart-dev/art/backend/track/prometheus."},
	{"terminal", "github.com/goart-dev/art/backend/track/terminal."},
	{"page of runs", "github.com/goart-dev/art/backend/dash."},
	{"queue and rows", "github.com/goart-dev/art/internal/track."},
	{"network", "net/http."},
}

// partOf returns the tracker that a stack is in, "" for none.
func partOf(stack []string) string {
	for _, p := range parts {
		for _, name := range stack {
			if strings.HasPrefix(name, p.prefix) {
				return p.name
			}
		}
	}
	return ""
}

// isCollector reports whether a stack is work of the garbage collector in the background.
func isCollector(stack []string) bool {
	switch stack[len(stack)-1] {
	case "runtime.gcBgMarkWorker", "runtime.bgsweep", "runtime.bgscavenge":
		return true
	}
	return false
}

// allocated is how many bytes were allocated since the process began, as sampled.
type allocated struct{ all, trackers int64 }

// allocations reads them.
func allocations() allocated {
	var b bytes.Buffer
	check(pprof.Lookup("allocs").WriteTo(&b, 0))
	samples, err := readProfile(b.Bytes())
	check(err)
	var a allocated
	for _, s := range samples {
		a.all += s.values[1] // alloc_space
		if partOf(s.stack) != "" {
			a.trackers += s.values[1]
		}
	}
	return a
}

// report writes what the trackers cost.
func report(out io.Writer, samples []sample, before, after allocated) {
	var all, collector, own time.Duration
	byPart := map[string]time.Duration{}
	for _, s := range samples {
		took := time.Duration(s.values[1])
		all += took
		switch part := partOf(s.stack); {
		case part != "":
			byPart[part] += took
			own += took
		case len(s.stack) > 0 && isCollector(s.stack):
			collector += took
		}
	}
	bytes := float64(after.trackers-before.trackers) / max(1, float64(after.all-before.all))
	garbage := time.Duration(bytes * float64(collector))
	rest := all - own - garbage
	percent := func(d time.Duration) float64 { return 100 * float64(d) / float64(rest) }
	fmt.Fprintf(out, "%-34s %10s %8s\n", "", "CPU time", "of rest")
	line := func(name string, d time.Duration) {
		fmt.Fprintf(out, "%-34s %10v %7.2f %%\n", name, d.Round(time.Millisecond), percent(d))
	}
	line("training and rollouts", rest)
	listed := map[string]bool{}
	for _, p := range parts {
		if !listed[p.name] {
			line(p.name, byPart[p.name])
		}
		listed[p.name] = true
	}
	line(fmt.Sprintf("garbage, %.1f %% of %v", 100*bytes, collector.Round(time.Millisecond)), garbage)
	line("all trackers", own+garbage)
}
