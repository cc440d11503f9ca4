package model

import (
	"fmt"
	"strings"
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

	embedLayer = "model.embed_tokens"
	headLayer  = "lm_head"

	weightSuffix = ".weight"
	biasSuffix   = ".bias"
)

// Specs lists the tensors of a checkpoint in a fixed order. c is valid.
func (c *Config) Specs() []Spec {
	d := c.design()
	heads, kv := c.NumHeads*c.HeadDim, c.NumKVHeads*c.HeadDim
	l := specList{{Name: embedName, Shape: []int{c.VocabSize, c.HiddenSize}}}
	for i := range c.NumLayers {
		p := layerName(i)
		l.norm(p+"input_layernorm.weight", c.HiddenSize)
		l.linear(p+"self_attn.q_proj", heads, c.HiddenSize, d.qkvBias)
		l.linear(p+"self_attn.k_proj", kv, c.HiddenSize, d.qkvBias)
		l.linear(p+"self_attn.v_proj", kv, c.HiddenSize, d.qkvBias)
		l.linear(p+"self_attn.o_proj", c.HiddenSize, heads, d.outBias)
		if d.headNorm {
			l.norm(p+"self_attn.q_norm.weight", c.HeadDim)
			l.norm(p+"self_attn.k_norm.weight", c.HeadDim)
		}
		l.norm(p+"post_attention_layernorm.weight", c.HiddenSize)
		if d.postNorm {
			l.norm(p+"pre_feedforward_layernorm.weight", c.HiddenSize)
		}
		if d.layers[i].experts {
			l.linear(p+"mlp.gate", c.NumExperts, c.HiddenSize, false)
			for e := range c.NumExperts {
				l.mlp(expertName(p+"mlp.", e), c.HiddenSize, c.MoEIntermediateSize, d.mlpBias)
			}
		} else {
			l.mlp(p+"mlp.", c.HiddenSize, c.IntermediateSize, d.mlpBias)
		}
		if d.postNorm {
			l.norm(p+"post_feedforward_layernorm.weight", c.HiddenSize)
		}
	}
	l.norm(normName, c.HiddenSize)
	if !c.TieEmbeddings {
		l = append(l, Spec{Name: headName, Shape: []int{c.VocabSize, c.HiddenSize}, Linear: true})
	}
	return l
}

type specList []Spec

func (l *specList) mlp(p string, hidden, inner int, bias bool) {
	l.linear(p+"gate_proj", inner, hidden, bias)
	l.linear(p+"up_proj", inner, hidden, bias)
	l.linear(p+"down_proj", hidden, inner, bias)
}

func (l *specList) linear(name string, out, in int, bias bool) {
	*l = append(*l, Spec{Name: name + ".weight", Shape: []int{out, in}, Linear: true})
	if bias {
		*l = append(*l, Spec{Name: name + ".bias", Shape: []int{out}})
	}
}

func (l *specList) norm(name string, size int) {
	*l = append(*l, Spec{Name: name, Shape: []int{size}})
}

// LinearShape is a layer to which an adapter may attach.
type LinearShape struct {
	Name    string // "model.layers.0.self_attn.q_proj"
	In, Out int
	// Embedding says that it looks up one of In rows of Out numbers.
	Embedding bool
}

// Linears lists the linear layers inside the blocks that an adapter may attach to, in the order of Specs. In a model
// with experts these are those of attention.
func (c *Config) Linears() []LinearShape {
	sparse := c.design().sparse
	var out []LinearShape
	for _, s := range c.Specs() {
		if s.Linear && s.Name != headName && (!sparse || strings.Contains(s.Name, ".self_attn.")) {
			out = append(out, LinearShape{Name: strings.TrimSuffix(s.Name, ".weight"), In: s.Shape[1], Out: s.Shape[0]})
		}
	}
	return out
}

// Adaptable lists all layers that an adapter may attach to: Linears, the output head, and the embedding. That of Gemma
// is left out: it scales what it looks up, and versions of PEFT differ in whether they scale the adapter too. Where the
// head has the weights of the embedding, each has an adapter of its own.
func (c *Config) Adaptable() []LinearShape {
	list := append(c.Linears(), LinearShape{Name: headLayer, In: c.HiddenSize, Out: c.VocabSize})
	if !strings.HasPrefix(c.ModelType, "gemma") {
		list = append(list, LinearShape{Name: embedLayer, In: c.VocabSize, Out: c.HiddenSize, Embedding: true})
	}
	return list
}

// blockPrefix begins the names of what is in a block.
const blockPrefix = "model.layers."

func layerName(l int) string { return fmt.Sprintf("%s%d.", blockPrefix, l) }

func (s Spec) size() int {
	n := 1
	for _, d := range s.Shape {
		n *= d
	}
	return n
}
