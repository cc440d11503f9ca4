// Package safetensors reads and writes the safetensors format, and reads sets of sharded files.
//
// A file is
//
//	8 bytes    n, the size of the header, unsigned little-endian
//	n bytes    the header: a JSON object {name: {"dtype", "shape", "data_offsets": [begin, end]}}, UTF-8, padded with
//	           spaces; "__metadata__" maps to an object of strings
//	the rest   the data: each tensor row-major and little-endian in [begin, end), without gaps and without overlap
//
// Files are untrusted, so reading is strict: a header that is too large, repeats a key, describes more or less
// than the data there is, or does not follow the format in any other way is an error that wraps [ErrFormat]. Reading
// allocates in proportion to the header, never to the sizes that the header claims.
//
// Format: https://huggingface.co/docs/safetensors
package safetensors

import (
	"errors"
	"fmt"
	"maps"

	"github.com/goart-dev/art/internal/mapped"
)

// ErrFormat is wrapped by every error about the content of a file, as opposed to errors of the file system.
var ErrFormat = errors.New("not a valid safetensors file")

// MaxHeader is the size in bytes that a header may have: the limit of the reference implementation.
const MaxHeader = 100_000_000

// MaxRank is the number of dimensions that a tensor may have: numpy's and PyTorch's limit.
const MaxRank = 64

const metadataKey = "__metadata__"

// File is an open safetensors file. It is safe for concurrent use, up to Close.
type File struct {
	tensors  []Tensor // by offset
	index    map[string]int
	metadata map[string]string
	unmap    func() error // nil when there is nothing to release
}

// Open maps a file into memory and checks it. The file must not change while it is open.
func Open(path string) (*File, error) {
	content, unmap, err := mapped.Open(path)
	if err != nil {
		return nil, fmt.Errorf("safetensors: %w", err)
	}
	f, err := Parse(content)
	if err != nil {
		_ = unmap() // the error of Parse is the one to return
		return nil, fmt.Errorf("safetensors: %s: %w", path, err)
	}
	f.unmap = unmap
	return f, nil
}

// Parse reads the content of a file from memory. The tensors share the memory of content.
func Parse(content []byte) (_ *File, err error) {
	defer recoverFormat(&err)
	header, data := split(content)
	tensors, metadata := parseHeader(header)
	f := &File{tensors: assignData(tensors, data), index: make(map[string]int, len(tensors)), metadata: metadata}
	for i, t := range f.tensors {
		f.index[t.Name] = i
	}
	return f, nil
}

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

// Metadata returns a copy of the free-form strings of the header; nil when it has none.
func (f *File) Metadata() map[string]string { return maps.Clone(f.metadata) }

// Release lets the system evict the pages of a tensor of a mapped file. Reading it loads them again.
func (f *File) Release(name string) {
	if t, ok := f.Tensor(name); ok && f.unmap != nil {
		mapped.Release(t.Data)
	}
}

// Close releases the memory map. No tensor of the file may be used afterwards: reading its Data would crash the
// process. A second Close does nothing.
func (f *File) Close() error {
	unmap := f.unmap
	f.unmap, f.tensors, f.index = nil, nil, nil
	if unmap == nil {
		return nil
	}
	return unmap()
}
