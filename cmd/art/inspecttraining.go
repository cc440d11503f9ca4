package main

import (
	"fmt"
	"strings"

	"github.com/goart-dev/art/internal/graphx"
	"github.com/goart-dev/art/internal/plan"
	"github.com/goart-dev/art/internal/quantity"
	"github.com/goart-dev/art/internal/trainer"
	"github.com/goart-dev/art/lora"
	"github.com/goart-dev/art/model"
)

// trainingReport is what a training takes on a device beside the weights, in bytes.
type trainingReport struct {
	Full       bool  `json:"full"`       // all weights are trained
	Adapter    int64 `json:"adapter"`    // its copies, or those of all weights
	Work       int64 `json:"work"`       // at most, of the micro-batches that are computed at once
	Recomputed int64 `json:"recomputed"` // the same with layers that are computed again
	Workers    int   `json:"workers"`    // micro-batches at once
	// Layouts are those of micro-batches whose sequences share nothing, where few occur. Each has a program for a loss,
	// and one for logprobs.
	Layouts []trainingLayout `json:"layouts,omitempty"`
	// Kept is how many programs are kept, at most; 0 where they are bounded by their bytes.
	Kept     int   `json:"programs_kept,omitempty"`
	Programs int64 `json:"programs,omitempty"` // bytes of those that are kept, at most, where the device says them
}

// trainingLayout is the shape of a micro-batch.
type trainingLayout struct {
	Rows    int `json:"rows"`
	Length  int `json:"length"`  // tokens of a row
	Trained int `json:"trained"` // tokens of all rows that can be trained
}

// training describes a training of sequences of up to length tokens: of adapters, or with no layout of all weights.
func (p memoryPlan) training(
	c *model.Config, layout *lora.Adapter, length int, on graphx.Profile,
) trainingReport {
	t := plan.TrainingOf(c, layout)
	t.On = on
	s := plan.Sizes{Workers: min(p.workers, on.RunsAtOnce())}
	kept := t.Memory(s, length)
	s.Recompute = true
	r := trainingReport{
		Full: t.Full, Adapter: int64(kept.Adapter), Work: int64(kept.Work), Recomputed: int64(t.Memory(s, length).Work),
		Workers: s.Workers, Programs: int64(kept.Programs),
	}
	if on.SlowCompile {
		r.Kept = graphx.RoomIn(plan.TrainingPrograms(c))
		for _, l := range trainer.FewLayouts(t, s, length) {
			r.Layouts = append(r.Layouts, trainingLayout{l.Rows, l.Length, l.Trained})
		}
	}
	return r
}

// lines are the report in text.
func (r trainingReport) lines() []string {
	copies := "training: adapter"
	if r.Full {
		copies = "training of all weights: copies"
	}
	lines := []string{fmt.Sprintf("%s %s, work up to %s, or %s with layers computed again; micro-batches at once: %d",
		copies, sizeText(r.Adapter), sizeText(r.Work), sizeText(r.Recomputed), r.Workers)}
	if len(r.Layouts) == 0 {
		return append(lines, fmt.Sprintf("programs of micro-batches, of layouts as they occur: up to %s are kept",
			sizeText(r.Programs)))
	}
	return append(lines,
		fmt.Sprintf("%s of micro-batches, each with a program for a loss and one for logprobs, beside three for "+
			"updates: rows of %s; a quarter or all of the tokens trained", quantity.Of(len(r.Layouts), "layout"), r.shapes()),
		fmt.Sprintf("and those of shared prompts, as they occur, with powers of two of rows and tokens; programs of a base "+
			"model that are kept: at most %d", r.Kept))
}

// shapes lists the numbers of rows of each length.
func (r trainingReport) shapes() string {
	var texts []string
	for i := 0; i < len(r.Layouts); {
		length, rows := r.Layouts[i].Length, []int(nil)
		for ; i < len(r.Layouts) && r.Layouts[i].Length == length; i++ {
			rows = append(rows, r.Layouts[i].Rows)
		}
		texts = append(texts, fmt.Sprintf("%s (%s)", quantity.Of(length, "token"), choices(rows)))
	}
	return strings.Join(texts, ", ")
}
