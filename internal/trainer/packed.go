package trainer

import (
	"math/rand/v2"

	"github.com/goart-dev/art/grpo"
	"github.com/goart-dev/art/grpo/credit"
)

// Packed returns the micro-batches of a batch as a run computes them: for each optimizer step of the first epoch, in
// their order. Nothing is computed.
func (t *Trainer) Packed(batch []grpo.Sequence, run Run) ([][]*grpo.MicroBatch, error) {
	if err := checkComplete(batch, run.Loss); err != nil || len(batch) == 0 {
		return nil, err
	}
	var list [][]*grpo.MicroBatch
	for _, part := range credit.Split(inseparable(batch, run.Loss), run.MiniBatches, rand.New(rand.NewPCG(run.Seed, 0))) {
		pieces, err := t.microBatches(part, run.MicroBatch)
		if err != nil {
			return nil, err
		}
		var step []*grpo.MicroBatch
		for _, p := range pieces {
			step = append(step, p.MicroBatch)
		}
		list = append(list, step)
	}
	return list, nil
}
