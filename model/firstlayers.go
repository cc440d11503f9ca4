package model

import (
	"slices"
	"strconv"
	"strings"
)

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
