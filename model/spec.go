package model

import (
	"fmt"
)

// Spec describes one tensor of a checkpoint.
type Spec struct {
	Name  string
	Shape []int // as stored; a linear layer is [out, in]
	// Linear says that the tensor is the weight of a linear layer.
	Linear bool
}

const (
	embedName = "model.embed_tokens.weight"
	normName  = "model.norm.weight"
	headName  = "lm_head.weight"
)

// Specs lists the tensors of a checkpoint in a fixed order.
func (c *Config) Specs() []Spec {
	d, heads, kv := c.HiddenSize, c.NumHeads*c.HeadDim, c.NumKVHeads*c.HeadDim
	specs := []Spec{{Name: embedName, Shape: []int{c.VocabSize, d}}}
	for l := range c.NumLayers {
		p := layerName(l)
		specs = append(specs,
			Spec{Name: p + "input_layernorm.weight", Shape: []int{d}},
			Spec{Name: p + "self_attn.q_proj.weight", Shape: []int{heads, d}, Linear: true},
			Spec{Name: p + "self_attn.k_proj.weight", Shape: []int{kv, d}, Linear: true},
			Spec{Name: p + "self_attn.v_proj.weight", Shape: []int{kv, d}, Linear: true},
			Spec{Name: p + "self_attn.o_proj.weight", Shape: []int{d, heads}, Linear: true},
			Spec{Name: p + "self_attn.q_norm.weight", Shape: []int{c.HeadDim}},
			Spec{Name: p + "self_attn.k_norm.weight", Shape: []int{c.HeadDim}},
			Spec{Name: p + "post_attention_layernorm.weight", Shape: []int{d}},
			Spec{Name: p + "mlp.gate_proj.weight", Shape: []int{c.IntermediateSize, d}, Linear: true},
			Spec{Name: p + "mlp.up_proj.weight", Shape: []int{c.IntermediateSize, d}, Linear: true},
			Spec{Name: p + "mlp.down_proj.weight", Shape: []int{d, c.IntermediateSize}, Linear: true},
		)
	}
	specs = append(specs, Spec{Name: normName, Shape: []int{d}})
	if !c.TieEmbeddings {
		specs = append(specs, Spec{Name: headName, Shape: []int{c.VocabSize, d}, Linear: true})
	}
	return specs
}

// LinearShape is a linear layer inside the blocks: what an adapter may attach to.
type LinearShape struct {
	Name    string // "model.layers.0.self_attn.q_proj"
	In, Out int
}

// Linears lists the linear layers inside the blocks, in the order of Specs.
func (c *Config) Linears() []LinearShape {
	var out []LinearShape
	for _, s := range c.Specs() {
		if s.Linear && s.Name != headName {
			out = append(out, LinearShape{Name: s.Name[:len(s.Name)-len(".weight")], In: s.Shape[1], Out: s.Shape[0]})
		}
	}
	return out
}

func layerName(l int) string { return fmt.Sprintf("model.layers.%d.", l) }

func (s Spec) size() int {
	n := 1
	for _, d := range s.Shape {
		n *= d
	}
	return n
}
