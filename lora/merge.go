package lora

import "fmt"

// Merge adds the adapter of a layer to its weight w [Out, In], row-major, in place:
//
//	w += Scale·B·A
//
// The weight of an embedding is [In, Out], and gets the transposed sum. It accumulates in float64 and rounds once. A
// layer without an adapter is an error; see [Adapter.Layer].
func (a *Adapter) Merge(w []float32, layer string) error {
	l, ok := a.Layer(layer)
	if !ok {
		return fmt.Errorf("lora: layer %q has no adapter", layer)
	}
	if len(w) != l.Out*l.In {
		return fmt.Errorf("lora: the weight of %q has %d numbers, want %d x %d", layer, len(w), l.Out, l.In)
	}
	rank, scale := l.rank(), a.config.Scale(layer)
	if l.Embedding {
		l.LayerShape.In, l.LayerShape.Out = l.Out, l.In
		l.A, l.B = transpose(l.B, l.In, rank), transpose(l.A, rank, l.Out)
	}
	delta := make([]float64, l.In)
	for o := range l.Out {
		clear(delta)
		for r := range rank {
			b := scale * float64(l.B[o*rank+r])
			for i, v := range l.A[r*l.In : (r+1)*l.In] {
				delta[i] += b * float64(v)
			}
		}
		row := w[o*l.In : (o+1)*l.In]
		for i, d := range delta {
			row[i] = float32(float64(row[i]) + d)
		}
	}
	return nil
}
