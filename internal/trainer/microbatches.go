package trainer

import (
	"math/bits"
	"math/rand/v2"
	"slices"
	"sort"

	"github.com/goart-dev/art/grpo"
	"github.com/goart-dev/art/grpo/credit"
	"github.com/goart-dev/art/internal/pack"
	"github.com/goart-dev/art/internal/plan"
)

// piece is a micro-batch of a batch.
type piece struct {
	*pack.MicroBatch
	sequences []int // of the batch, in the order in which their tokens are listed
}

// microBatches packs sequences. Those that share much of what they begin with are packed together, see planShared; the
// others are sorted by length and packed into micro-batches of equally many rows, each as long as its longest row
// needs. The last may have fewer rows. limit bounds the sequences of a micro-batch; 0 is no bound. Those that are
// computed alone come last.
func (t *Trainer) microBatches(part []grpo.Sequence, limit int) ([]piece, error) {
	out, err := t.pack(part, limit)
	if err != nil {
		return nil, err
	}
	var usual, large []piece
	for _, p := range out {
		if t.large(p) {
			large = append(large, p)
		} else {
			usual = append(usual, p)
		}
	}
	return append(usual, large...), nil
}

// large reports whether a micro-batch is larger than is usual.
func (t *Trainer) large(p piece) bool {
	return t.plan.Tokens(p.Layout) > max(t.sizes.MicroTokens, p.Length)
}

// pack is microBatches in any order.
func (t *Trainer) pack(part []grpo.Sequence, limit int) ([]piece, error) {
	clusters, rest := [][]int(nil), indices(len(part))
	if !t.opts.Alone {
		clusters, rest = t.planShared(part, limit)
	}
	out, err := t.packShared(part, clusters, limit)
	if err != nil || len(rest) == 0 {
		return out, err
	}
	slices.SortStableFunc(rest, func(a, b int) int { return part[a].NumInputs() - part[b].NumInputs() })
	lists := t.fewShapes
	if !t.opts.FewShapes {
		lists = t.evenRows
	}
	for _, l := range lists(part, rest, limit) {
		packed, err := pack.Sequences(pick(part, l.sequences), l.Layout)
		if err != nil {
			return nil, err
		}
		out = append(out, piece{packed, l.sequences})
	}
	return out, nil
}

// planned is a micro-batch that is not packed yet.
type planned struct {
	pack.Layout
	sequences []int
}

// evenRows plans micro-batches of sequences that are sorted by length.
func (t *Trainer) evenRows(part []grpo.Sequence, sorted []int, limit int) (out []planned) {
	pad := t.plan.Padding().Length
	rows := t.rows(pad(part[sorted[len(sorted)-1]].NumInputs()), limit)
	pieces := (len(sorted) + rows - 1) / rows
	if len(sorted) >= evenPieces*plan.RowStep {
		pieces = roundUp(pieces, evenPieces)
	}
	even := min(rows, roundUp((len(sorted)+pieces-1)/pieces, plan.RowStep))
	for chunk := range slices.Chunk(sorted, even) {
		layout := pack.Layout{
			Rows: min(even, roundUp(len(chunk), plan.RowStep)), Length: pad(part[chunk[len(chunk)-1]].NumInputs()),
		}
		layout.Trained = padTrained(credit.NumTrained(pick(part, chunk)), layout.Tokens())
		out = append(out, planned{layout, chunk})
	}
	return out
}

// indices returns 0 to n-1.
func indices(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// pick returns the sequences of indices.
func pick(part []grpo.Sequence, of []int) []grpo.Sequence {
	out := make([]grpo.Sequence, len(of))
	for i, at := range of {
		out[i] = part[at]
	}
	return out
}

// rows is how many rows of a length a micro-batch may have, of which there are limit at most; 0 is no bound.
func (t *Trainer) rows(length, limit int) int {
	rows := t.sizes.Rows(length)
	if limit > 0 {
		rows = min(rows, limit)
	}
	return rows
}

// minTrained is the smallest size that lists of trained tokens are padded to, in micro-batches that have as many.
const minTrained = 16

// padTrained is what a list of n trained tokens is padded to, of a micro-batch of so many tokens: a power of two, or
// all. Sequences that have tokens in common can train each of them more than once.
func padTrained(n, tokens int) int {
	size := 1 << bits.Len(uint(max(n, minTrained)-1))
	if n > tokens {
		return size
	}
	return min(size, tokens)
}

func roundUp(n, step int) int { return (n + step - 1) / step * step }

// evenPieces is what the number of micro-batches is rounded up to when the sequences suffice, so that two workers have
// equal work. It is a constant: results must not depend on the number of cores.
const evenPieces = 2

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
func quarterAndAll(rows, length int) (quarter, all pack.Layout) {
	tokens := rows * length
	return pack.Layout{Rows: rows, Length: length, Trained: tokens / 4},
		pack.Layout{Rows: rows, Length: length, Trained: tokens}
}

// FewLayouts lists the layouts of all micro-batches that a training with [Options].FewShapes can have of sequences of
// up to length tokens that share nothing: so many graphs are compiled for it. Sizes of zero have their defaults;
// smaller MicroTokens have no layouts besides. Sequences that begin with the same tokens have other layouts, rounded by
// [plan.Padding]; these are too many to list, and some thirty of them occur in twenty steps of eight groups of eight.
func FewLayouts(t plan.Training, s plan.Sizes, length int) (list []pack.Layout) {
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

// Packed returns the micro-batches of a batch as a run computes them: for each optimizer step of the first epoch, in
// their order. Nothing is computed.
func (t *Trainer) Packed(batch []grpo.Sequence, run Run) ([][]*pack.MicroBatch, error) {
	if err := checkComplete(batch, run.Loss); err != nil || len(batch) == 0 {
		return nil, err
	}
	var list [][]*pack.MicroBatch
	for _, part := range credit.Split(inseparable(batch, run.Loss), run.MiniBatches, rand.New(rand.NewPCG(run.Seed, 0))) {
		pieces, err := t.microBatches(part, run.MicroBatch)
		if err != nil {
			return nil, err
		}
		var step []*pack.MicroBatch
		for _, p := range pieces {
			step = append(step, p.MicroBatch)
		}
		list = append(list, step)
	}
	return list, nil
}
