package model

import (
	"slices"
	"strconv"
	"strings"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/tensors"
)

// Spec describes one tensor of a checkpoint.
type Spec struct {
	// Name is that of the module in transformers, which a file has too, but for those of some models that read images.
	Name  string
	Shape []int // as stored; a linear layer is [out, in]
	// Linear says that the tensor is the weight of a linear layer.
	Linear bool
}

const (
	headLayer = "lm_head"

	weightSuffix = ".weight"
	biasSuffix   = ".bias"
)

// tensor is one of a checkpoint, as the piece that it belongs to declares it.
type tensor struct {
	Spec
	file    string  // llama.cpp's name; "" has none
	merged  bool    // an expert's: the tensor of the file has those of all, in their order
	heads   int     // rotated heads that the rows are of; 0: none
	offset  float64 // of a norm: what is added to it
	bias    bool
	joins   bool // it writes into the residual stream
	adapted bool // an adapter may attach, inside the blocks
}

// place is what precedes the names of a piece, in a checkpoint and in a GGUF file.
type place struct{ name, file string }

// tensorList are the tensors of a checkpoint in a fixed order.
type tensorList []tensor

func (l *tensorList) add(at place, name, file, suffix string, t tensor) {
	t.Name = at.name + name + suffix
	if file != "" {
		t.file = at.file + file + suffix
	}
	*l = append(*l, t)
}

// linear adds a layer, unless it is none.
func (l *tensorList) linear(at place, n linear) {
	if n.name == "" {
		return
	}
	l.add(at, n.name, n.file, weightSuffix, tensor{
		Spec: Spec{Shape: []int{n.out, n.in}, Linear: true}, heads: n.heads, joins: n.joins, adapted: !n.frozen,
	})
	if n.bias {
		l.add(at, n.name, n.file, biasSuffix, tensor{Spec: Spec{Shape: []int{n.out}}, heads: n.heads, bias: true})
	}
}

// norm adds a norm, unless it is none.
func (l *tensorList) norm(at place, n norm) {
	if n.name != "" {
		l.add(at, n.name, n.file, weightSuffix, tensor{Spec: Spec{Shape: []int{n.size}}, offset: n.offset})
	}
}

// tensors lists those of a checkpoint. c is valid.
func (c *Config) tensors() tensorList {
	d := c.design()
	var l tensorList
	root := place{name: c.root()}
	l.add(root, embedName, "token_embd", weightSuffix, tensor{Spec: Spec{Shape: []int{c.VocabSize, c.HiddenSize}}})
	for i := range d.layers {
		d.layers[i].list(&l, place{c.layerName(i), "blk." + strconv.Itoa(i) + "."})
	}
	l.norm(root, d.norm)
	if !c.TieEmbeddings {
		l.add(place{}, headLayer, "output", weightSuffix,
			tensor{Spec: Spec{Shape: []int{c.VocabSize, c.HiddenSize}, Linear: true}})
	}
	return l
}

func (l *layer) list(to *tensorList, at place) {
	to.norm(at, l.mixing.before)
	l.selfAttention.list(to, at)
	to.norm(at, l.mixing.after)
	to.norm(at, l.feeding.before)
	l.feed.list(to, at)
	to.norm(at, l.feeding.after)
}

// Specs lists the tensors of a checkpoint in a fixed order. c is valid.
func (c *Config) Specs() []Spec {
	list := c.tensors()
	out := make([]Spec, len(list))
	for i, t := range list {
		out[i] = t.Spec
	}
	return out
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
	var out []LinearShape
	for _, t := range c.tensors() {
		if t.adapted {
			out = append(out, LinearShape{Name: strings.TrimSuffix(t.Name, weightSuffix), In: t.Shape[1], Out: t.Shape[0]})
		}
	}
	return out
}

// Adaptable lists all layers that an adapter may attach to: Linears, the output head, and the embedding. That of Gemma
// is left out: it scales what it looks up, and versions of PEFT differ in whether they scale the adapter too. Where the
// head has the weights of the embedding, each has an adapter of its own.
func (c *Config) Adaptable() []LinearShape {
	list := append(c.Linears(), LinearShape{Name: headLayer, In: c.HiddenSize, Out: c.VocabSize})
	if !c.design().embedding.frozen {
		list = append(list, LinearShape{Name: c.root() + embedName, In: c.VocabSize, Out: c.HiddenSize, Embedding: true})
	}
	return list
}

// embedName is the embedding's name, after the root.
const embedName = "embed_tokens"

// root is what precedes the names of the modules of a text model, but that of its head.
func (c *Config) root() string {
	if c.wrapper != nil {
		return "model.language_model."
	}
	return "model."
}

func (c *Config) layerName(l int) string { return c.root() + "layers." + strconv.Itoa(l) + "." }

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
	if c.RopeLayers != nil {
		short.RopeLayers = c.RopeLayers[:n]
	}
	return &short, true
}

// Fused reports whether layers compute several projections as one matrix, of which the parts are then copied.
func (c *Config) Fused() bool {
	a, err := c.architecture()
	if err != nil || c.NumLayers < 1 {
		return false
	}
	l := a.describe(c, func(bool, string, ...any) {}).layers[0]
	m, ok := l.feed.(mlp)
	return l.k.name == "" || ok && m.up.name == ""
}

// HasBlock reports whether a layer, such as "model.layers.0.self_attn.q_proj", is in a block that the model has, or in
// none.
func (c *Config) HasBlock(layer string) bool {
	rest, inBlock := strings.CutPrefix(layer, c.root()+"layers.")
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
