package trainer

import (
	"slices"

	"github.com/goart-dev/art/grpo"
	"github.com/goart-dev/art/model"
)

// microBatches sorts sequences by length and packs them into micro-batches of equally many rows, each as long as its
// longest row needs. The last may have fewer rows. limit bounds the rows; 0 is no bound.
func (t *Trainer) microBatches(part []grpo.Sequence, limit int) ([]*grpo.MicroBatch, error) {
	part = slices.Clone(part)
	slices.SortStableFunc(part, func(a, b grpo.Sequence) int { return a.NumInputs() - b.NumInputs() })
	if t.opts.FewShapes {
		return t.fewShapes(part, limit)
	}
	rows := t.rows(padLength(part[len(part)-1].NumInputs()), limit)
	pieces := (len(part) + rows - 1) / rows
	if len(part) >= evenPieces*rowStep {
		pieces = roundUp(pieces, evenPieces)
	}
	even := min(rows, roundUp((len(part)+pieces-1)/pieces, rowStep))
	var out []*grpo.MicroBatch
	for chunk := range slices.Chunk(part, even) {
		layout := grpo.Layout{
			Rows: min(even, roundUp(len(chunk), rowStep)), Length: padLength(chunk[len(chunk)-1].NumInputs()),
		}
		layout.Trained = padTrained(grpo.NumTrained(chunk), layout.Tokens())
		packed, err := grpo.Pack(chunk, layout)
		if err != nil {
			return nil, err
		}
		out = append(out, packed)
	}
	return out, nil
}

// rows returns how many rows of a length a micro-batch may have. limit bounds them too; 0 is no bound.
func (t *Trainer) rows(length, limit int) int {
	rows := max(1, t.opts.MicroTokens/length)
	if limit > 0 {
		rows = min(rows, limit)
	}
	return rows
}

// padLength is what rows are padded to, so that few layouts occur: steps of 16 up to 256 tokens, then of a sixteenth of
// a power of two.
func padLength(n int) int {
	step := 16
	for n > 16*step {
		step *= 2
	}
	return max(step, roundUp(n, step))
}

// minTrained is the smallest size that lists of trained tokens are padded to, in micro-batches that have as many.
const minTrained = 16

// padTrained is what a list of n trained tokens is padded to, of a micro-batch of so many tokens: a power of two, or
// all.
func padTrained(n, tokens int) int {
	size := minTrained
	for size < n {
		size *= 2
	}
	return min(size, tokens)
}

func roundUp(n, step int) int { return (n + step - 1) / step * step }

// rowStep is what the number of rows is rounded up to, so that few layouts occur.
const rowStep = 4

// evenPieces is what the number of micro-batches is rounded up to when the sequences suffice, so that two workers have
// equal work. It is a constant: results must not depend on the number of cores.
const evenPieces = 2

// microTokens is the default of MicroTokens. It is a function of the model alone: results must not depend on the memory
// of the machine. The intermediate values of a layer that its gradient needs are counted, for each token, as 8 of the
// hidden size, 8 of the queries and 4 of the MLP's. Attention scores are left out, since a micro-batch has few long
// sequences.
func microTokens(c *model.Config) int {
	const budget = 1 << 30
	each := 4 * c.NumLayers * (8*c.HiddenSize + 8*c.NumHeads*c.HeadDim + 4*c.IntermediateSize)
	return min(max(256, budget/each), 4096)
}
