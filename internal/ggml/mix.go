package ggml

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Mix says which type each tensor of a model gets: one of [Mixes].
type Mix string

// mixes are the type of most matrices, and llama.cpp's number of the mix. Q4_K has that of Q4_K_S, which differs in a
// few layers.
var mixes = map[Mix]struct {
	base Type
	file uint32
}{"Q8_0": {Q8_0, 7}, "Q4_0": {Q4_0, 2}, "Q4_K": {Q4_K, 14}, "Q6_K": {Q6_K, 18}, mostlyQ4K: {Q4_K, 15}}

// mostlyQ4K has six bits where they help most.
const mostlyQ4K Mix = "Q4_K_M"

// Mixes lists the mixes.
func Mixes() []string {
	var names []string
	for _, m := range slices.Sorted(maps.Keys(mixes)) {
		names = append(names, string(m))
	}
	return names
}

// FileType returns the value of general.file_type.
func (m Mix) FileType() uint32 { return mixes[m].file }

// Model is what types depend on besides the names of tensors.
type Model struct {
	Architecture           string // llama.cpp's name
	Layers, Heads, KVHeads int
	Experts                int // 0: none
}

// Header is a tensor without its data, under llama.cpp's name.
type Header struct {
	Name  string
	Shape []int // outermost dimension first
	Type  Type  // which it keeps if it is not quantized
}

// Types returns the types that llama-quantize chooses. Vectors, norms and routers are not quantized. The head, or the
// embedding where it is the head too, has Q6_K unless all is Q8_0. Rows that are no whole blocks get the nearest type
// with smaller blocks, and float16 in the end.
//
// Source: https://github.com/ggml-org/llama.cpp/blob/master/src/llama-quant.cpp
func (m Mix) Types(about Model, tensors []Header) ([]Type, error) {
	if _, ok := mixes[m]; !ok {
		return nil, fmt.Errorf("there is no type %q to quantize to, only %s", m, strings.Join(Mixes(), ", "))
	}
	c := chooser{Mix: m, model: about, base: mixes[m].base, tied: true}
	order := make([]int, len(tensors)) // by layer: types depend on how many of a kind came before
	for i, t := range tensors {
		order[i] = i
		if t.Name == "output.weight" {
			c.tied = false
		}
		if isValue(t.Name) {
			c.values++
		}
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Compare(layerOf(tensors[a].Name), layerOf(tensors[b].Name))
	})
	types := make([]Type, len(tensors))
	for _, i := range order {
		if types[i] = tensors[i].Type; isQuantized(tensors[i]) {
			columns := tensors[i].Shape[len(tensors[i].Shape)-1]
			types[i] = fallback(c.choose(tensors[i].Name, columns), columns)
		}
	}
	return types, nil
}

// isQuantized reports whether a tensor is a matrix, or those of experts, that bears quantizing.
func isQuantized(t Header) bool {
	rows := t.Shape[:max(len(t.Shape)-1, 0)]
	return slices.ContainsFunc(rows, func(dim int) bool { return dim != 1 }) && strings.HasSuffix(t.Name, "weight") &&
		!strings.Contains(t.Name, "_norm.weight") && !strings.Contains(t.Name, "ffn_gate_inp.weight")
}

// isValue reports whether a tensor is the projection to values, alone or with queries and keys.
func isValue(name string) bool {
	return strings.Contains(name, "attn_v.weight") || strings.Contains(name, "attn_qkv.weight")
}

// layerOf returns the layer of a tensor, -1 for those outside.
func layerOf(name string) int {
	layer := -1
	if _, err := fmt.Sscanf(name, "blk.%d.", &layer); err != nil {
		return -1
	}
	return layer
}

// fallback returns the type for rows of that many columns.
func fallback(t Type, columns int) Type {
	if columns%t.Block() == 0 {
		return t
	}
	switch t {
	case Q4_K:
		t = Q5_0
	case Q5_K:
		t = Q5_1
	case Q6_K:
		t = Q8_0
	}
	if columns%t.Block() != 0 {
		return F16
	}
	return t
}

// chooser chooses types of one tensor after another.
type chooser struct {
	Mix
	model       Model
	base        Type
	tied        bool // there is no head but the embedding
	values      int  // projections to values
	value, down int  // how many there were so far
}

func (c *chooser) choose(name string, columns int) Type {
	const mixtral = 8 // experts of the models for which llama.cpp has rules of its own
	switch {
	case name == "output.weight", c.tied && name == "token_embd.weight":
		if columns%c.base.Block() == 0 && c.base != Q8_0 {
			return Q6_K
		}
		return Q8_0
	case isValue(name):
		c.value++
		switch more := c.Mix == mostlyQ4K && useMore(c.value-1, c.values); {
		case c.model.Experts == mixtral:
			return Q8_0
		case more:
			return Q6_K
		case c.base == Q4_K && c.model.is70B():
			return Q5_K
		}
	case strings.Contains(name, "attn_k.weight") && c.model.Experts == mixtral:
		return Q8_0
	case strings.Contains(name, "attn_output.weight") && c.model.Experts == mixtral && c.Mix == mostlyQ4K:
		return Q5_K
	case strings.Contains(name, "ffn_down"):
		i := c.down
		if c.down++; c.model.Experts > 1 {
			i = layerOf(name)
		}
		if c.Mix == mostlyQ4K && useMore(i, c.model.Layers) {
			return Q6_K
		}
	}
	return c.base
}

// useMore reports whether a layer gets more bits: the first and the last eighth, and of the others every third.
func useMore(layer, layers int) bool {
	return layer < layers/8 || layer >= 7*layers/8 || (layer-layers/8)%3 == 2
}

// is70B reports whether llama.cpp calls it a model of 70B parameters, where groups of heads share small projections.
func (m Model) is70B() bool {
	return m.Layers == 80 && (m.Architecture == "qwen2" || m.Architecture == "llama" && m.Heads != m.KVHeads)
}
