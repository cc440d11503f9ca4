package lora

import (
	"fmt"
	"math"
)

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
