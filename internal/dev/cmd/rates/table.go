package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/goart-dev/art/internal/trainer"
)

// trials are those that were made.
type trials []trial

// readTrials reads a file, if there is one.
func readTrials(path string) (list trials, err error) {
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = json.Unmarshal(content, &list)
	}
	return list, err
}

// write writes the file.
func (ts trials) write(path string) error {
	content, err := json.MarshalIndent(ts, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(content, '\n'), 0o644)
}

// find returns the result of a trial.
func (ts trials) find(t trial) (trial, bool) {
	i := slices.IndexFunc(ts, func(x trial) bool { return x.key() == t.key() })
	if i < 0 {
		return trial{}, false
	}
	return ts[i], true
}

// rung is one rate of a base, over its seeds.
type rung struct {
	rate, value, start float64
	diverged           int
}

// table has a block for each base, kind and task: the value for each rate, with the range of good rates and that of the
// rule.
func (o *options) table(done trials) string {
	var b strings.Builder
	for _, base := range o.bases {
		for _, kind := range o.kinds {
			for _, task := range o.tasks {
				o.block(&b, done, trial{Base: base, Kind: kind, Task: task, Steps: o.steps})
			}
		}
	}
	return b.String()
}

// block is a part of the table.
func (o *options) block(b *strings.Builder, done trials, of trial) {
	var list []rung
	hidden := 0
	for _, rate := range o.rates {
		r := rung{rate: rate}
		for seed := 1; seed <= o.seeds; seed++ {
			of.Rate, of.Seed = rate, uint64(seed)
			t, ok := done.find(of)
			if !ok {
				continue
			}
			hidden = t.Hidden
			r.value += t.Value / float64(o.seeds)
			r.start += t.Start / float64(o.seeds)
			if t.Diverged {
				r.diverged++
			}
		}
		list = append(list, r)
	}
	low, best, high := good(list)
	fmt.Fprintf(b, "%s, hidden %d, %s, by %s: best %.3g, good %.3g to %.3g; the rule has %.3g\n", of.Base, hidden, of.Kind,
		of.Task, best, low, high, trainer.DefaultRate(hidden, of.Kind == "full"))
	for _, r := range list {
		fmt.Fprintf(b, "  %-8g %.3f", r.rate, r.value)
		if r.diverged > 0 {
			fmt.Fprintf(b, "  %d of %d diverged", r.diverged, o.seeds)
		}
		b.WriteByte('\n')
	}
}

// good returns the best of some rates, and the range around it in which at least nine tenths of its gain are gained.
func good(list []rung) (low, best, high float64) {
	value := func(a, b rung) int {
		switch {
		case a.value < b.value:
			return -1
		case a.value > b.value:
			return 1
		}
		return 0
	}
	top := slices.MaxFunc(list, value)
	at := slices.Index(list, top)
	enough := func(r rung) bool { return r.value >= top.value-0.1*math.Max(0, top.value-top.start) }
	first, last := at, at
	for first > 0 && enough(list[first-1]) {
		first--
	}
	for last < len(list)-1 && enough(list[last+1]) {
		last++
	}
	return list[first].rate, top.rate, list[last].rate
}
