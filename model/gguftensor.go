package model

import (
	"fmt"
	"slices"

	"github.com/goart-dev/art/internal/gguf"
)

// GGUFTensor says how llama.cpp stores a matrix of a checkpoint: the architecture of the file, the name in it, and for
// each row of the checkpoint its row there.
func (c *Config) GGUFTensor(name string) (architecture, tensor string, row func(int) int, err error) {
	kind := c.ModelType
	if kind == mistral.modelType {
		kind = llama.modelType // as which llama.cpp writes it
	}
	specs := c.Specs()
	at := slices.IndexFunc(specs, func(s Spec) bool { return s.Name == name && len(s.Shape) == 2 })
	for architecture, m := range ggufModels {
		if merged, tensor, ok := m.fileName(name); ok && !merged && m.modelType == kind && at >= 0 {
			set := ggufSet{model: m, config: c}
			return architecture, tensor, set.changed(name, gguf.Tensor{Shape: specs[at].Shape}).written, nil
		}
	}
	return "", "", nil, fmt.Errorf("model: GGUF: no matrix of a %s is called %s", c.ModelType, name)
}
