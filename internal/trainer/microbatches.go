package trainer

import (
	"slices"

	"github.com/goart-dev/art/grpo"
	"github.com/goart-dev/art/grpo/credit"
	"github.com/goart-dev/art/internal/plan"
)

// piece is a micro-batch of a batch.
type piece struct {
	*grpo.MicroBatch
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
	slices.SortStableFunc(out, func(a, b piece) int {
		switch x, y := t.large(a), t.large(b); {
		case x == y:
			return 0
		case x:
			return 1
		}
		return -1
	})
	return out, nil
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
		seqs := pick(part, l.sequences)
		packed, err := grpo.Pack(seqs, l.Layout)
		if err != nil {
			return nil, err
		}
		out = append(out, piece{packed, l.sequences})
	}
	return out, nil
}

// planned is a micro-batch that is not packed yet.
type planned struct {
	grpo.Layout
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
		layout := grpo.Layout{
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
	size := minTrained
	for size < n {
		size *= 2
	}
	if n > tokens {
		return size
	}
	return min(size, tokens)
}

func roundUp(n, step int) int { return (n + step - 1) / step * step }

// evenPieces is what the number of micro-batches is rounded up to when the sequences suffice, so that two workers have
// equal work. It is a constant: results must not depend on the number of cores.
const evenPieces = 2
