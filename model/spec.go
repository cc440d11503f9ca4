package model

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/tensors"
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

const blockPrefix = "model.layers."

func layerName(l int) string { return fmt.Sprintf("%s%d.", blockPrefix, l) }

func (s Spec) size() int {
	n := 1
	for _, d := range s.Shape {
		n *= d
	}
	return n
}

// FirstLayers returns the configuration of the first n blocks of a model, from which the memory of all of them can be
// told when they are alike. ok is false when they are not, or when there are no more than n.
func (c *Config) FirstLayers(n int) (first *Config, ok bool) {
	layers := c.design().layers
	if n >= len(layers) || slices.ContainsFunc(layers, func(l layer) bool { return l != layers[0] }) {
		return nil, false
	}
	short := *c
	short.NumLayers = n
	if c.LayerTypes != nil {
		short.LayerTypes = c.LayerTypes[:n]
	}
	return &short, true
}

// HasBlock reports whether a layer, such as "model.layers.0.self_attn.q_proj", is in a block that the model has, or in
// none.
func (c *Config) HasBlock(layer string) bool {
	rest, inBlock := strings.CutPrefix(layer, blockPrefix)
	number, _, _ := strings.Cut(rest, ".")
	n, err := strconv.Atoi(number)
	return !inBlock || err == nil && n < c.NumLayers
}

// Outline returns the weights of a model without values, and their shapes: enough to compile a graph. The tensors are
// nil.
func (c *Config) Outline() (*Params, []shapes.Shape) {
	p := &Params{}
	var list []shapes.Shape
	for _, s := range c.Specs() {
		p.Names, list = append(p.Names, s.Name), append(list, shapes.Make(dtypes.Float32, s.Shape...))
	}
	p.Tensors = make([]*tensors.Tensor, len(list))
	return p, list
}
