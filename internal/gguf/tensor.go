package gguf

import (
	"fmt"

	"github.com/goart-dev/art/internal/ggml"
)

// Tensor is a named array.
type Tensor struct {
	Name  string
	Type  ggml.Type
	Shape []int  // outermost dimension first, as everywhere but in the file
	Data  []byte // encoded as Type says; not aligned in memory
}

// Float32s converts a tensor into a new slice, row-major. Each step of a formula is rounded to float32, as in the
// reference, so the result is the same on every machine.
func (t Tensor) Float32s() ([]float32, error) {
	if err := t.Check(); err != nil {
		return nil, err
	}
	n := 1
	for _, dim := range t.Shape {
		n *= dim
	}
	out := make([]float32, n)
	t.Read(out, 0)
	return out, nil
}

// Check returns why the tensor cannot be converted to float32: its type, or Data of another size than Type and Shape
// require.
func (t Tensor) Check() error {
	if !t.Type.Convertible() {
		return fmt.Errorf("gguf: tensor %q is %v, which cannot be converted: "+
			"use a file of another quantization, such as Q8_0 or Q4_K_M", t.Name, t.Type)
	}
	size, err := t.Type.Size(t.Shape)
	if err != nil {
		return fmt.Errorf("gguf: tensor %q: %w", t.Name, err)
	}
	if size != uint64(len(t.Data)) {
		return fmt.Errorf("gguf: tensor %q: shape %v of %v needs %d bytes and there are %d", t.Name, t.Shape, t.Type, size,
			len(t.Data))
	}
	return nil
}

// Read converts len(dst) elements from element first on, as Float32s does. The tensor must pass Check, and have them.
func (t Tensor) Read(dst []float32, first int) {
	n := t.Type.Block()
	data := t.Data[t.Type.Bytes(first/n*n):]
	var block [ggml.MaxBlock]float32
	if skip := first % n; skip > 0 {
		t.Type.Convert(block[:n], data)
		dst, data = dst[copy(dst, block[skip:n]):], data[t.Type.Bytes(n):]
	}
	whole := len(dst) / n * n
	t.Type.Convert(dst[:whole], data)
	if rest := dst[whole:]; len(rest) > 0 {
		t.Type.Convert(block[:n], data[t.Type.Bytes(whole):])
		copy(rest, block[:])
	}
}
