package trainer

import (
	"sort"

	"github.com/goart-dev/art/grpo"
	"github.com/goart-dev/art/grpo/credit"
	"github.com/goart-dev/art/internal/plan"
)

// On a device that takes seconds to compile a graph, a new layout of a micro-batch costs more than padding. There,
// micro-batches of sequences that share nothing have lengths that are powers of two, numbers of rows that are powers of
// four, and room to train on a quarter of their tokens or on all.

// fewShapes plans such micro-batches for sequences that are sorted by length. limit bounds the sequences of each; 0 is
// no bound.
func (t *Trainer) fewShapes(part []grpo.Sequence, sorted []int, limit int) (out []planned) {
	for len(sorted) > 0 {
		length := t.plan.Padding().Length(part[sorted[0]].NumInputs())
		fitting := sort.Search(len(sorted), func(i int) bool { return part[sorted[i]].NumInputs() > length })
		most := min(t.rows(length, limit), 2*fitting) // rows without a sequence are at most half
		rows := 1
		for 4*rows <= most {
			rows *= 4
		}
		taken := sorted[:min(rows, fitting)]
		layout, all := quarterAndAll(rows, length)
		if credit.NumTrained(pick(part, taken)) > layout.Trained {
			layout = all
		}
		out, sorted = append(out, planned{layout, taken}), sorted[len(taken):]
	}
	return out
}

// quarterAndAll are the layouts in which a quarter of the tokens can be trained, and all of them.
func quarterAndAll(rows, length int) (quarter, all grpo.Layout) {
	tokens := rows * length
	return grpo.Layout{Rows: rows, Length: length, Trained: tokens / 4},
		grpo.Layout{Rows: rows, Length: length, Trained: tokens}
}

// FewLayouts lists the layouts of all micro-batches that a training with [Options].FewShapes can have of sequences of
// up to length tokens that share nothing: so many graphs are compiled for it. Sizes of zero have their defaults;
// smaller MicroTokens have no layouts besides. Sequences that begin with the same tokens have other layouts, rounded by
// [plan.Padding]; these are too many to list, and some thirty of them occur in twenty steps of eight groups of eight.
func FewLayouts(t plan.Training, s plan.Sizes, length int) (list []grpo.Layout) {
	pad := t.Padding().Length
	s = t.WithDefaults(s)
	for n := pad(0); n <= pad(length); n *= 2 {
		for rows := 1; rows <= s.Rows(n); rows *= 4 {
			quarter, all := quarterAndAll(rows, n)
			list = append(list, quarter, all)
		}
	}
	return list
}
