package lora

import (
	"errors"
	"fmt"

	"github.com/gomlx/gomlx/core/graph"
)

// Param is one tensor of an adapter, in the layout of graphs.
type Param struct {
	Name  string // "<layer>.lora_A" or "<layer>.lora_B"
	Shape []int  // [In, Rank] for A, [Rank, Out] for B
	Data  []float32
}

// Params returns copies of all tensors: A and B of each layer in turn, layers sorted by name. Order and shapes depend
// on configuration and layers alone, so that optimizer state can be matched by index.
func (a *Adapter) Params() []Param {
	params := make([]Param, 0, 2*len(a.layers))
	for _, l := range a.layers {
		params = append(params,
			Param{l.Name + ".lora_A", []int{l.In, l.rank()}, transpose(l.A, l.rank(), l.In)},
			Param{l.Name + ".lora_B", []int{l.rank(), l.Out}, transpose(l.B, l.Out, l.rank())})
	}
	return params
}

// SetParams replaces all tensors by data in the order and layout of [Adapter.Params]. On an error nothing changes.
func (a *Adapter) SetParams(data [][]float32) error {
	if len(data) != 2*len(a.layers) {
		return fmt.Errorf("lora: %d tensors for %d layers, want two each", len(data), len(a.layers))
	}
	var errs []error
	for i, l := range a.layers {
		if len(data[2*i]) != len(l.A) || len(data[2*i+1]) != len(l.B) {
			errs = append(errs, fmt.Errorf("lora: layer %q has %d and %d numbers, not %d and %d",
				l.Name, len(l.A), len(l.B), len(data[2*i]), len(data[2*i+1])))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	for i := range a.layers {
		l := &a.layers[i]
		rank := l.rank()
		l.A = transpose(data[2*i], l.In, rank)
		l.B = transpose(data[2*i+1], rank, l.Out)
	}
	return nil
}

// Lookup returns the params function of [Config.Hook] over nodes that are in the order of [Adapter.Params]. It panics
// when their number is wrong.
func (a *Adapter) Lookup(nodes []*graph.Node) func(name string) (a, b *graph.Node, ok bool) {
	if len(nodes) != 2*len(a.layers) {
		panic(fmt.Errorf("lora: %d nodes for %d layers, want two each", len(nodes), len(a.layers)))
	}
	return func(name string) (*graph.Node, *graph.Node, bool) {
		i, ok := a.find(name)
		if !ok {
			return nil, nil, false
		}
		return nodes[2*i], nodes[2*i+1], true
	}
}

// transpose returns x [rows, cols] as [cols, rows].
func transpose(x []float32, rows, cols int) []float32 {
	out := make([]float32, len(x))
	for r := range rows {
		for c := range cols {
			out[c*rows+r] = x[r*cols+c]
		}
	}
	return out
}
