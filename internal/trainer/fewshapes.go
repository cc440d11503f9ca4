package trainer

import (
	"cmp"
	"math/bits"
	"sort"

	"github.com/goart-dev/art/grpo"
	"github.com/goart-dev/art/grpo/credit"
	"github.com/goart-dev/art/model"
)

// fewShapes plans micro-batches of few layouts for sorted sequences: lengths are powers of two, numbers of rows are
// powers of four that are at least half full, and a quarter or all of the tokens can be trained.
func (t *Trainer) fewShapes(part []grpo.Sequence, sorted []int, limit int) (out []planned) {
	for len(sorted) > 0 {
		length := powerLength(part[sorted[0]].NumInputs())
		alike := sort.Search(len(sorted), func(i int) bool { return part[sorted[i]].NumInputs() > length })
		rows := powerRows(alike, t.rows(length, limit))
		taken := sorted[:min(rows, alike)]
		layout := grpo.Layout{Rows: rows, Length: length, Trained: rows * length / 4}
		if credit.NumTrained(pick(part, taken)) > layout.Trained {
			layout.Trained = layout.Tokens()
		}
		out, sorted = append(out, planned{layout, taken}), sorted[len(taken):]
	}
	return out
}

// FewLayouts are the layouts of all micro-batches that a training with [Options].FewShapes has of sequences of up to
// length tokens that share nothing. MicroTokens of zero are those of [Options]; fewer have no other layouts. Those of
// sequences that share what they begin with are not among them: see [padding], by which many may occur, and some thirty
// do in twenty steps of eight groups of eight.
func FewLayouts(c *model.Config, s Sizes, length int) (list []grpo.Layout) {
	s.MicroTokens = cmp.Or(s.MicroTokens, microTokens(c))
	for n := powerLength(0); n <= powerLength(length); n *= 2 {
		for rows := 1; rows <= s.rows(n); rows *= 4 {
			all := rows * n
			list = append(list, grpo.Layout{Rows: rows, Length: n, Trained: all / 4},
				grpo.Layout{Rows: rows, Length: n, Trained: all})
		}
	}
	return list
}

// powerLength is the power of two, at least 32, that n tokens are padded to.
func powerLength(n int) int {
	length := 32
	for length < n {
		length *= 2
	}
	return length
}

// powerRows is the largest power of four up to limit that n sequences fill by half.
func powerRows(n, limit int) int {
	rows := 1
	for 4*rows <= min(limit, 2*n) {
		rows *= 4
	}
	return rows
}

// fewRows is what n rows are rounded up to: a power of two or half way between two of them; no rows are none.
func fewRows(n int) int {
	if n == 0 {
		return 0
	}
	rows := 1 << bits.Len(uint(n-1))
	if between := rows / 4 * 3; n <= between {
		return between
	}
	return rows
}
