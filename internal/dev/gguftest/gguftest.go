// Package gguftest writes GGUF files for tests: tensors under any metadata.
package gguftest

import (
	"bytes"
	"encoding/binary"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/goart-dev/art/internal/ggml"
	"github.com/goart-dev/art/internal/gguf"
)

// Value is one value of the metadata.
type Value struct {
	Key   string
	Value any
}

// Tensor is a tensor, its shape with the outermost dimension first: of float32 Data, or of Blocks of a type.
type Tensor struct {
	Name   string
	Shape  []int
	Data   []float32
	Type   ggml.Type
	Blocks []byte
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

// Encode returns the content of a file.
func Encode(values []Value, tensors []Tensor) []byte {
	var pairs []gguf.Pair
	for _, v := range values {
		pairs = append(pairs, gguf.Pair(v))
	}
	var sources []gguf.Source
	for _, x := range tensors {
		sources = append(sources, gguf.Source{Name: x.Name, Type: x.Type, Shape: x.Shape, Write: func(w io.Writer) error {
			if x.Blocks != nil {
				_, err := w.Write(x.Blocks)
				return err
			}
			return binary.Write(w, binary.LittleEndian, x.Data)
		}})
	}
	var b bytes.Buffer
	if err := gguf.Write(&b, pairs, sources); err != nil {
		panic(err)
	}
	return b.Bytes()
}
