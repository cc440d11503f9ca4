package model

import (
	"fmt"
	"slices"

	"github.com/goart-dev/art/internal/gguf"
)

// GGUFTensor says how llama.cpp stores a matrix of a checkpoint: the architecture of the file, the name in it, and for
// each row of the checkpoint its row there.
func (c *Config) GGUFTensor(name string) (architecture, file string, row func(int) int, err error) {
	kind := c.ModelType
	if kind == mistral.modelType {
		kind = llama.modelType // as which llama.cpp writes it
	}
	list := c.tensors()
	at := slices.IndexFunc(list, func(t tensor) bool { return t.Name == name && len(t.Shape) == 2 && !t.merged })
	for architecture, m := range ggufModels {
		if m.modelType == kind && at >= 0 && list[at].file != "" {
			set := ggufSet{model: m}
			return architecture, list[at].file, set.changed(list[at], gguf.Tensor{Shape: list[at].Shape}).written, nil
		}
	}
	return "", "", nil, fmt.Errorf("model: GGUF: no matrix of a %s is called %s", c.ModelType, name)
}
