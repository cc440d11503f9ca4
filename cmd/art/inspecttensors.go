package main

import (
	"fmt"
	"slices"

	"github.com/goart-dev/art/backend/device/cpu"
	"github.com/goart-dev/art/internal/quantity"
	"github.com/goart-dev/art/model"
)

// heldBytes is what tensors take on the CPU device, in bytes, by the type of matrices.
type heldBytes struct {
	Float32  float64 `json:"float32"`
	BFloat16 float64 `json:"bfloat16"`
	Stored   float64 `json:"stored"`
}

// in returns the bytes for a value of --weights.
func (h heldBytes) in(weights string) float64 {
	return map[string]float64{"float32": h.Float32, "bfloat16": h.BFloat16, "stored": h.Stored}[weights]
}

// plus returns a sum. other may be nil.
func (h heldBytes) plus(other *heldBytes) *heldBytes {
	if other == nil {
		return &h
	}
	return &heldBytes{h.Float32 + other.Float32, h.BFloat16 + other.BFloat16, h.Stored + other.Stored}
}

// ratio says how much more or less is stored than a file has, and marks what is more than its scales.
func (h heldBytes) ratio(file int64) (text string, more bool) {
	r := h.Stored / float64(file)
	if more = r > 1.1; more {
		return fmt.Sprintf("%.2f*", r), true
	}
	return fmt.Sprintf("%.2f ", r), false
}

// String is three columns.
func (h heldBytes) String() string {
	return fmt.Sprintf("%11s%11s%11s", quantity.Bytes(int64(h.Float32)), quantity.Bytes(int64(h.BFloat16)),
		quantity.Bytes(int64(h.Stored)))
}

// tensorReport is a tensor of a GGUF file, under its name in a checkpoint.
type tensorReport struct {
	Name  string    `json:"name"`
	Type  string    `json:"type"`
	Shape []int     `json:"shape"`
	File  int64     `json:"file"` // bytes in the file
	Held  heldBytes `json:"held"`
}

// tensorsOf lists the tensors of a checkpoint, and sums up what those of each type of the file take on the CPU device.
func (r *inspection) tensorsOf(c *model.Checkpoint) error {
	device, err := cpu.New(nil)
	if err != nil {
		return err
	}
	defer device.Finalize()
	wide := c.TensorBytes(device, matrixTypes["float32"])
	half := c.TensorBytes(device, matrixTypes["bfloat16"])
	for i, t := range c.TensorBytes(device, matrixTypes["stored"]) {
		held := heldBytes{wide[i].Held, half[i].Held, t.Held}
		r.Tensors = append(r.Tensors, tensorReport{t.Name, t.Type, t.Shape, int64(t.File), held})
		at := slices.IndexFunc(r.Types, func(s storedType) bool { return s.Type == t.Type })
		r.Types[at].Held = held.plus(r.Types[at].Held)
		r.Held = held.plus(r.Held)
	}
	return nil
}

// byteColumns are the heads of bytes in a file and in memory.
var byteColumns = fmt.Sprintf("%11s%11s%11s%11s%7s", "file", "float32", "bfloat16", "stored", "ratio")

// heldLines are the lines of the types of tensors, with what they take in memory.
func (r inspection) heldLines() []string {
	lines := []string{fmt.Sprintf("%-8s%8s%15s%s", "", "tensors", "parameters", byteColumns)}
	tensors, marked := 0, false
	line := func(name string, count int, parameters, file int64, h heldBytes) {
		ratio, more := h.ratio(file)
		lines = append(lines, fmt.Sprintf("%-8s%8d%15d%11s%s%8s", name, count, parameters, quantity.Bytes(file), h, ratio))
		marked = marked || more
	}
	for _, t := range r.Types {
		if t.Held == nil {
			t.Held = &heldBytes{} // of tensors that a model does not hold, such as factors of RoPE
		}
		line(t.Type, t.Tensors, t.Parameters, t.Bytes, *t.Held)
		tensors += t.Tensors
	}
	line("sum", tensors, r.Parameters, r.Bytes, *r.Held)
	if marked {
		lines = append(lines, "* stored with more bits than in the file")
	}
	return lines
}

// tensorTable has a line for each tensor.
func (r inspection) tensorTable() string {
	width := 0
	for _, t := range r.Tensors {
		width = max(width, len(t.Name))
	}
	text := fmt.Sprintf("\n%-*s %-7s%15s%s\n", width, "tensor", "type", "shape", byteColumns)
	for _, t := range r.Tensors {
		ratio, _ := t.Held.ratio(t.File)
		text += fmt.Sprintf("%-*s %-7s%15s%11s%s%8s\n", width, t.Name, t.Type, fmt.Sprint(t.Shape), quantity.Bytes(t.File),
			t.Held, ratio)
	}
	return text
}
