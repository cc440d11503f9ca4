package trainer

import (
	"slices"

	"github.com/goart-dev/art/grpo"
	"github.com/goart-dev/art/internal/graphx"
)

// padLength is what rows are padded to: steps of a vector up to 256 tokens, then of a sixteenth of a power of two.
func padLength(n int) int {
	step := graphx.Lanes
	for n > 16*step {
		step *= 2
	}
	return max(2*graphx.Lanes, (n+step-1)/step*step)
}

// rowStep is what the number of rows is rounded up to, so that few shapes occur.
const rowStep = 4

// pack sorts sequences by length and cuts them into micro-batches of equally many rows, each as long as its longest row
// needs. There are at least as many as workers when the sequences suffice.
func (t *Trainer) pack(part []grpo.Sequence, most int) ([]grpo.MicroBatch, error) {
	part = slices.Clone(part)
	slices.SortStableFunc(part, func(a, b grpo.Sequence) int { return a.NumInputs() - b.NumInputs() })
	longest := padLength(part[len(part)-1].NumInputs())
	rows := max(1, t.opts.MicroTokens/longest)
	if most > 0 {
		rows = min(rows, most)
	}
	pieces := (len(part) + rows - 1) / rows
	if w := t.opts.Workers; len(part) >= w*rowStep {
		pieces = (pieces + w - 1) / w * w
	}
	even := (len(part) + pieces - 1) / pieces
	even = min(rows, (even+rowStep-1)/rowStep*rowStep)
	var out []grpo.MicroBatch
	for chunk := range slices.Chunk(part, even) {
		length := padLength(chunk[len(chunk)-1].NumInputs())
		packed, err := grpo.Pack(chunk, grpo.PackOptions{Buckets: []grpo.Bucket{{Length: length, Rows: even}}})
		if err != nil {
			return nil, err
		}
		out = append(out, packed...)
	}
	return out, nil
}
