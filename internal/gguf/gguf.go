// Package gguf reads and writes GGUF, the file format of llama.cpp for quantized models.
//
// A file, version 2 or 3, little-endian, is
//
//	"GGUF", version uint32, number of tensors uint64, number of metadata values uint64
//	metadata   key string, type uint32, value
//	tensors    name string, rank uint32, dimensions uint64 (innermost first), type uint32, offset uint64
//	the data   from the next multiple of the alignment on; each tensor begins at the next multiple after the one before
//
// A string is its length, uint64, and its bytes. A list is the type of its elements, uint32, their number, uint64, and
// the elements. The alignment is the value of general.alignment, 32 by default.
//
// Files are untrusted, so reading is strict: counts, lengths and offsets that do not fit the file, repeated keys
// and names, and tensors that overlap or leave holes are errors that wrap [ErrFormat]. Reading allocates in proportion
// to the size of the file, never to sizes that it claims.
//
// Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
package gguf

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/goart-dev/art/internal/mapped"
)

// ErrFormat is wrapped by every error about the content of a file, as opposed to errors of the file system.
var ErrFormat = errors.New("not a valid GGUF file")

// MaxRank is the number of dimensions that a tensor may have: ggml's limit.
const MaxRank = 4

const (
	alignmentKey     = "general.alignment" // the metadata with the alignment of tensors in bytes
	defaultAlignment = 32
)

// File is an open GGUF file. It is safe for concurrent use, up to Close.
type File struct {
	version  uint32
	keys     []string // in the order of the file
	metadata map[string]any
	tensors  []Tensor // in the order of the file
	index    map[string]int
	unmap    func() error // nil when there is nothing to release
}

// Open maps a file into memory and checks it. The file must not change while it is open.
func Open(path string) (*File, error) {
	content, unmap, err := mapped.Open(path)
	if err != nil {
		return nil, fmt.Errorf("gguf: %w", err)
	}
	f, err := Parse(content)
	if err != nil {
		_ = unmap() // the error of Parse is the one to return
		return nil, fmt.Errorf("gguf: %s: %w", path, err)
	}
	f.unmap = unmap
	return f, nil
}

// Parse reads the content of a file from memory. The tensors share the memory of content.
func Parse(content []byte) (f *File, err error) {
	defer func() {
		switch problem := recover().(type) {
		case nil:
		case formatError:
			f, err = nil, problem.error
		default:
			panic(problem)
		}
	}()
	f = &File{metadata: map[string]any{}, index: map[string]int{}}
	f.parse(content)
	return f, nil
}

// Keys returns the keys of the metadata in the order of the file.
func (f *File) Keys() []string { return slices.Clone(f.keys) }

// Value returns a value of the metadata: a uint8, int8, uint16, int16, uint32, int32, uint64, int64, float32, float64,
// bool or string, or a slice of one of them. Slices are not copied: they must not be written to.
func (f *File) Value(key string) (any, bool) {
	v, ok := f.metadata[key]
	return v, ok
}

// Metadata returns a copy of all keys with their values, which are as [File.Value] returns them.
func (f *File) Metadata() map[string]any { return maps.Clone(f.metadata) }

// Names returns the names of the tensors in the order of their data.
func (f *File) Names() []string {
	names := make([]string, len(f.tensors))
	for i, t := range f.tensors {
		names[i] = t.Name
	}
	return names
}

// Tensor returns the tensor of that name. Its Data is part of the mapped file: it must not be written to, nor used
// after Close.
func (f *File) Tensor(name string) (Tensor, bool) {
	i, ok := f.index[name]
	if !ok {
		return Tensor{}, false
	}
	return f.tensors[i], true
}

// Release lets the system evict the pages of a tensor of a mapped file. Reading it loads them again.
func (f *File) Release(name string) {
	if t, ok := f.Tensor(name); ok && f.unmap != nil {
		mapped.Release(t.Data)
	}
}

// Close releases the memory map. No tensor of the file may be used afterwards: reading its Data would crash the
// process. Metadata stays. A second Close does nothing.
func (f *File) Close() error {
	unmap := f.unmap
	f.unmap, f.tensors, f.index = nil, nil, nil
	if unmap == nil {
		return nil
	}
	return unmap()
}
