package trainer

import (
	"slices"

	"github.com/goart-dev/art/grpo"
	"github.com/goart-dev/art/model"
)

// padLength is what rows are padded to, so that few shapes occur: steps of 16 up to 256 tokens, then of a sixteenth of a
// power of two.
func padLength(n int) int {
	step := 16
	for n > 16*step {
		step *= 2
	}
	return max(step, roundUp(n, step))
}

func roundUp(n, step int) int { return (n + step - 1) / step * step }

// rowStep is what the number of rows is rounded up to, so that few shapes occur.
const rowStep = 4

// spread is what the number of micro-batches is rounded up to when the sequences suffice, so that two workers have equal
// shares. It is a constant: results must not depend on the number of cores.
const spread = 2

// microTokens is the default of MicroTokens. It is a function of the model alone: results must not depend on the memory that
// there is. The intermediate values of a layer that its gradient needs are counted as 8 of the hidden size and of the queries
// and 4 of the MLP's for each token; scores are left out, since long sequences are few to a micro-batch.
func microTokens(c *model.Config) int {
	const budget = 1 << 30
	each := 4 * c.NumLayers * (8*c.HiddenSize + 8*c.NumHeads*c.HeadDim + 4*c.IntermediateSize)
	return min(max(256, budget/each), 4096)
}

// pack sorts sequences by length and cuts them into micro-batches of equally many rows, each as long as its longest row
// needs. The last may have fewer.
func (t *Trainer) pack(part []grpo.Sequence, most int) ([]grpo.MicroBatch, error) {
	part = slices.Clone(part)
	slices.SortStableFunc(part, func(a, b grpo.Sequence) int { return a.NumInputs() - b.NumInputs() })
	if t.opts.FewShapes {
		return t.packFew(part, most)
	}
	longest := padLength(part[len(part)-1].NumInputs())
	rows := max(1, t.opts.MicroTokens/longest)
	if most > 0 {
		rows = min(rows, most)
	}
	pieces := (len(part) + rows - 1) / rows
	if len(part) >= spread*rowStep {
		pieces = roundUp(pieces, spread)
	}
	even := min(rows, roundUp((len(part)+pieces-1)/pieces, rowStep))
	var out []grpo.MicroBatch
	for chunk := range slices.Chunk(part, even) {
		length := padLength(chunk[len(chunk)-1].NumInputs())
		packed, err := grpo.Pack(chunk, grpo.PackOptions{Buckets: []grpo.Bucket{{Length: length, Rows: min(even, roundUp(len(chunk), rowStep))}}})
		if err != nil {
			return nil, err
		}
		out = append(out, packed...)
	}
	return out, nil
}
