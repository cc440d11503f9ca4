// Package gguftest writes GGUF files for tests: tensors under any metadata.
package gguftest

import (
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/goart-dev/art/internal/ggml"
)

// Value is one value of the metadata.
type Value struct {
	Key   string
	Value any // uint32, float32, bool, string, []string, []int32 or []float32
}

// Tensor is a tensor, its shape with the outermost dimension first: of float32 Data, or of Blocks of a type.
type Tensor struct {
	Name   string
	Shape  []int
	Data   []float32
	Type   ggml.Type
	Blocks []byte
}

func (x Tensor) bytes() []byte {
	if x.Blocks != nil {
		return x.Blocks
	}
	var b []byte
	for _, v := range x.Data {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	return b
}

// Write writes a file into a folder of the test, and returns its path.
func Write(t testing.TB, values []Value, tensors []Tensor) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "model.gguf")
	if err := os.WriteFile(path, Encode(values, tensors), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// alignment is that of a file that does not say.
const alignment = 32

// Encode returns the content of a file. It panics at a value of another type than [Value] has.
func Encode(values []Value, tensors []Tensor) []byte {
	b := append([]byte("GGUF"), 3, 0, 0, 0)
	b = binary.LittleEndian.AppendUint64(b, uint64(len(tensors)))
	b = binary.LittleEndian.AppendUint64(b, uint64(len(values)))
	for _, v := range values {
		b = appendValue(appendString(b, v.Key), v.Value)
	}
	offset := 0
	for _, x := range tensors {
		b = binary.LittleEndian.AppendUint32(appendString(b, x.Name), uint32(len(x.Shape)))
		for i := range x.Shape {
			b = binary.LittleEndian.AppendUint64(b, uint64(x.Shape[len(x.Shape)-1-i]))
		}
		b = binary.LittleEndian.AppendUint32(b, uint32(x.Type))
		b = binary.LittleEndian.AppendUint64(b, uint64(offset))
		offset += (len(x.bytes()) + alignment - 1) / alignment * alignment
	}
	for _, x := range tensors {
		b = append(b, make([]byte, -len(b)&(alignment-1))...)
		b = append(b, x.bytes()...)
	}
	return b
}

// appendValue writes the type of a value, and the value.
func appendValue(b []byte, value any) []byte {
	kind := func(n uint32) []byte { return binary.LittleEndian.AppendUint32(b, n) }
	list := func(element uint32, n int) []byte {
		return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint32(kind(9), element), uint64(n))
	}
	switch v := value.(type) {
	case uint32:
		return binary.LittleEndian.AppendUint32(kind(4), v)
	case float32:
		return binary.LittleEndian.AppendUint32(kind(6), math.Float32bits(v))
	case bool:
		if v {
			return append(kind(7), 1)
		}
		return append(kind(7), 0)
	case string:
		return appendString(kind(8), v)
	case []string:
		b = list(8, len(v))
		for _, s := range v {
			b = appendString(b, s)
		}
		return b
	case []int32:
		b = list(5, len(v))
		for _, n := range v {
			b = binary.LittleEndian.AppendUint32(b, uint32(n))
		}
		return b
	case []float32:
		b = list(6, len(v))
		for _, x := range v {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
		}
		return b
	}
	panic("gguftest: a value of another type")
}

func appendString(b []byte, s string) []byte {
	return append(binary.LittleEndian.AppendUint64(b, uint64(len(s))), s...)
}
