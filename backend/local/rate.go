package local

import (
	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/trainer"
)

// LearningRate is the default of a model, by the width of its base and what is trained of it:
//
//	1e-3 · 128 / hidden_size            of an adapter
//	1e-4 · 128 / hidden_size            of all weights
//
// docs/tuning.md says where the rule comes from.
func (b *Backend) LearningRate(m *art.Model) (float64, error) {
	e, err := b.trainable("learning rate", m)
	if err != nil {
		return 0, err
	}
	e.training.Lock()
	defer e.training.Unlock()
	return trainer.DefaultRate(e.base.config.HiddenSize, e.policy.full()), nil
}
