package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/goart-dev/art/internal/trainer"
)

// gapFigures are the differences between the logprobs of sampler and trainer, in nats.
type gapFigures struct {
	Max    figure `json:"max"`
	Mean   figure `json:"mean"`
	Tokens int    `json:"tokens"`
}

// gapOfRuns is that of all tokens of runs.
func gapOfRuns(list []timing) *gapFigures {
	var all trainer.Difference
	for _, t := range list {
		d := t.step.gap
		all.Tokens, all.Sum, all.Max = all.Tokens+d.Tokens, all.Sum+d.Sum, max(all.Max, d.Max)
	}
	return &gapFigures{Max: figure(all.Max), Mean: figure(all.Mean()), Tokens: all.Tokens}
}

// UnmarshalJSON reads what MarshalJSON writes.
func (f *figure) UnmarshalJSON(data []byte) error {
	var name string
	if json.Unmarshal(data, &name) != nil {
		return json.Unmarshal(data, (*float64)(f))
	}
	v, err := strconv.ParseFloat(name, 64)
	*f = figure(v)
	return err
}

// gapTable prints the gaps of all steps, and what the time of a step is beside the one with default settings.
func gapTable(w io.Writer, all []result) {
	usual, head := map[contest]float64{}, false
	for _, r := range all {
		if r.Gap != nil && r.Weights == "bfloat16" && r.Cache == "bfloat16" && settings(r) == "" && r.Devices == 1 {
			usual[contestOf(r)] = r.Median
		}
	}
	for _, r := range all {
		if r.Gap == nil {
			continue
		}
		if !head {
			fmt.Fprintln(w, "\n| shape | job | batch x (prompt + reply) | weights | gap, largest, nats | mean | of tokens | "+
				"step = rollouts + training, s | times bfloat16 |")
			fmt.Fprintln(w, "|"+strings.Repeat("---|", 9))
			head = true
		}
		cost, key := "", contestOf(r)
		key.weights = "bfloat16"
		if usual[key] > 0 {
			cost = fmt.Sprintf("%.3g", r.Median/usual[key])
		}
		fmt.Fprintf(w, "| %s | %s | %s | %s | %.2g | %.2g | %d | %s | %s |\n", r.Shape, jobOf(r), tokensOf(r), typesOf(r),
			float64(r.Gap.Max), float64(r.Gap.Mean), r.Gap.Tokens, stepOf(r), cost)
	}
}
