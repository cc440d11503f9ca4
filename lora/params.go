package lora

import (
	"fmt"
	"math"
	"slices"

	"github.com/gomlx/gomlx/core/graph"

	"github.com/goart-dev/art/internal/brief"
)

// Param is one tensor of an adapter, in the layout of graphs.
type Param struct {
	Name  string // "<layer>.lora_A", "<layer>.lora_B" or "<layer>.lora_magnitude_vector"
	Shape []int  // [In, Rank] for A, [Rank, Out] for B, [Out] for the magnitude
	Data  []float32
}

// Params returns copies of all tensors: A, B and with DoRA the magnitude of each layer in turn, layers sorted by name.
// Order and shapes depend on configuration and layers alone, so that optimizer state can be matched by index.
func (a *Adapter) Params() []Param {
	params := make([]Param, 0, a.each()*len(a.layers))
	for _, l := range a.layers {
		params = append(params,
			Param{l.Name + ".lora_A", []int{l.In, l.rank()}, transpose(l.A, l.rank(), l.In)},
			Param{l.Name + ".lora_B", []int{l.rank(), l.Out}, transpose(l.B, l.Out, l.rank())})
		if a.config.DoRA {
			params = append(params, Param{l.Name + magnitudeSuffix, []int{l.Out}, slices.Clone(l.Magnitude)})
		}
	}
	return params
}

// each is the number of tensors of a layer.
func (a *Adapter) each() int {
	if a.config.DoRA {
		return 3
	}
	return 2
}

// SetParams replaces all tensors by data in the order and layout of [Adapter.Params]. On an error nothing changes.
func (a *Adapter) SetParams(data [][]float32) error {
	each := a.each()
	if len(data) != each*len(a.layers) {
		return fmt.Errorf("lora: %d tensors for %d layers, want %d each", len(data), len(a.layers), each)
	}
	var errs []error
	for i, l := range a.layers {
		x := data[each*i:]
		if len(x[0]) != len(l.A) || len(x[1]) != len(l.B) {
			errs = append(errs, fmt.Errorf("lora: layer %q has %d and %d numbers, not %d and %d",
				l.Name, len(l.A), len(l.B), len(x[0]), len(x[1])))
		}
		if each == 3 && len(x[2]) != l.Out {
			errs = append(errs, fmt.Errorf("lora: layer %q has %d magnitudes, not %d", l.Name, l.Out, len(x[2])))
		}
	}
	if err := brief.Errors(errs); err != nil {
		return err
	}
	for i := range a.layers {
		l, x := &a.layers[i], data[each*i:]
		rank := l.rank()
		l.A, l.B = transpose(x[0], l.In, rank), transpose(x[1], rank, l.Out)
		if each == 3 {
			l.Magnitude = slices.Clone(x[2])
		}
	}
	return nil
}

// lookup returns the params of the hooks over nodes in the order of [Adapter.Params], and panics at another number.
func (a *Adapter) lookup(nodes []*graph.Node) func(name string) (a, b *graph.Node, ok bool) {
	each := a.each()
	if len(nodes) != each*len(a.layers) {
		panic(fmt.Errorf("lora: %d nodes for %d layers, want %d each", len(nodes), len(a.layers), each))
	}
	return func(name string) (*graph.Node, *graph.Node, bool) {
		i, ok := a.find(name)
		if !ok {
			return nil, nil, false
		}
		return nodes[each*i], nodes[each*i+1], true
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

// Merge adds the adapter of a layer to its weight w [Out, In], row-major, in place:
//
//	w += Scale·B·A
//
// With DoRA each row then gets the length that is its magnitude. The weight of an embedding is [In, Out], and what is
// said here holds for its transpose. It accumulates in float64 and rounds once. A layer without an adapter is an error;
// see [Adapter.Layer].
func (a *Adapter) Merge(w []float32, layer string) error {
	l, ok := a.Layer(layer)
	if !ok {
		return fmt.Errorf("lora: layer %q has no adapter", layer)
	}
	if len(w) != l.Out*l.In {
		return fmt.Errorf("lora: the weight of %q has %d numbers, want %d x %d", layer, len(w), l.Out, l.In)
	}
	m := &merger{Layer: l, w: w, rows: l.Out, columns: l.In, down: l.A, up: l.B, scale: a.config.Scale(layer)}
	if l.Embedding {
		m.rows, m.columns = l.In, l.Out
		m.down, m.up = transpose(l.B, l.Out, l.rank()), transpose(l.A, l.rank(), l.In)
	}
	m.sum = make([]float64, m.columns)
	gains := m.gains()
	for r := range m.rows {
		row := w[r*m.columns : (r+1)*m.columns]
		for i, v := range m.row(r) {
			if gains != nil {
				v *= gains[m.output(r, i)]
			}
			row[i] = float32(v)
		}
	}
	return nil
}

// merger computes the sum of a weight and its adapter, row by row as the weight is stored.
type merger struct {
	Layer
	w             []float32
	rows, columns int
	down, up      []float32 // [R, columns] and [rows, R]
	scale         float64
	sum           []float64 // what row returns
}

// row returns a row of the sum, valid until the next call.
func (m *merger) row(r int) []float64 {
	clear(m.sum)
	rank := m.rank()
	for k := range rank {
		b := m.scale * float64(m.up[r*rank+k])
		for i, v := range m.down[k*m.columns : (k+1)*m.columns] {
			m.sum[i] += b * float64(v)
		}
	}
	for i, v := range m.w[r*m.columns : (r+1)*m.columns] {
		m.sum[i] += float64(v)
	}
	return m.sum
}

// output is the output of the layer that an element of the weight belongs to.
func (m *merger) output(row, column int) int {
	if m.Embedding {
		return column
	}
	return row
}

// gains returns what DoRA multiplies the weights of each output by, [Out], and nil without DoRA.
func (m *merger) gains() []float64 {
	if m.Magnitude == nil {
		return nil
	}
	gains := make([]float64, m.Out)
	for r := range m.rows {
		for i, v := range m.row(r) {
			gains[m.output(r, i)] += v * v
		}
	}
	for o, squares := range gains {
		gains[o] = float64(m.Magnitude[o]) / max(math.Sqrt(squares), leastNorm)
	}
	return gains
}
