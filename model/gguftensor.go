package model

import (
	"fmt"
	"slices"
	"strings"

	"github.com/goart-dev/art/internal/gguf"
)

// GGUFTensor says how llama.cpp stores a matrix of a checkpoint: the architecture of the file, the name in it, and for
// each row of the checkpoint its row there.
func (c *Config) GGUFTensor(name string) (architecture, tensor string, row func(int) int, err error) {
	kind := c.ModelType
	if kind == ModelTypeMistral {
		kind = ModelTypeLlama // as which llama.cpp writes it
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

// fileName returns llama.cpp's name. merged says that it is that of a tensor which holds all experts.
func (m ggufModel) fileName(name string) (merged bool, full string, ok bool) {
	stem, kind := cutKind(name)
	reverse := func(names map[string]string, part string) (string, bool) {
		for own, theirs := range names {
			if theirs == part {
				return own, true
			}
		}
		return "", false
	}
	if top, ok := reverse(ggufTop, stem); ok {
		return false, top + kind, true
	}
	number, part, _ := strings.Cut(strings.TrimPrefix(stem, "model.layers."), ".")
	block := "blk." + number + "."
	if expert, ok := strings.CutPrefix(part, "mlp.experts."); ok {
		_, part, _ = strings.Cut(expert, ".")
		own, ok := reverse(ggufExperts, part)
		return true, block + own + kind, ok
	}
	if m.sandwich {
		if own, ok := reverse(ggufSandwich, part); ok {
			return false, block + own + kind, true
		}
	}
	own, ok := reverse(ggufBlock, part)
	return false, block + own + kind, ok
}
