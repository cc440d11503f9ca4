package model

import (
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/tensors"
)

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
