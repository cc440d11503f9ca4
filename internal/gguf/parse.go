package gguf

import (
	"math/bits"
	"unicode/utf8"
)

// parse reads the parts of a file one after the other.
func (f *File) parse(content []byte) {
	r := &reader{rest: content}
	magic := string(r.take(4))
	f.version = r.uint32()
	switch {
	case magic != "GGUF":
		fail("it does not begin with GGUF")
	case f.version > 0xffff && bits.ReverseBytes32(f.version) <= 0xffff:
		fail("it is big-endian, which is not supported")
	case f.version != 2 && f.version != 3:
		fail("it is version %d, and versions 2 and 3 are supported", f.version)
	}
	tensors, values := r.uint64(), r.uint64()
	for range values {
		key := r.name("a key of the metadata")
		if _, ok := f.metadata[key]; ok {
			fail("the metadata has the key %q twice", key)
		}
		f.keys, f.metadata[key] = append(f.keys, key), r.value(key)
	}
	var offsets []uint64
	for range tensors {
		name := r.name("the name of a tensor")
		if _, ok := f.index[name]; ok {
			fail("two tensors are named %q", name)
		}
		f.index[name] = len(f.tensors)
		f.tensors = append(f.tensors, Tensor{Name: name, Shape: r.shape(name), Type: Type(r.uint32())})
		offsets = append(offsets, r.uint64())
	}
	f.assignData(content, len(content)-len(r.rest), offsets)
}

// name reads a string that names something.
func (r *reader) name(what string) string {
	s := r.string()
	if s == "" || !utf8.ValidString(s) {
		fail("%s is %q", what, s)
	}
	return s
}

// shape reads dimensions, and returns them with the outermost first.
func (r *reader) shape(name string) []int {
	rank := r.uint32()
	if rank > MaxRank {
		fail("tensor %q has %d dimensions, more than %d", name, rank, MaxRank)
	}
	shape := make([]int, rank)
	for i := range shape {
		dim := r.uint64()
		n := int(dim) //nolint:gosec // checked
		if n < 0 || uint64(n) != dim {
			fail("tensor %q has a dimension of %d", name, dim)
		}
		shape[len(shape)-1-i] = n
	}
	return shape
}

// assignData sets the data of each tensor. It begins after the header, and tensors follow one another, each at a
// multiple of the alignment.
func (f *File) assignData(content []byte, header int, offsets []uint64) {
	alignment := uint64(defaultAlignment)
	if value, ok := f.metadata[alignmentKey]; ok {
		n, ok := value.(uint32)
		if !ok || bits.OnesCount32(n) != 1 {
			fail("%s is %v, which is not a uint32 that is a power of two", alignmentKey, value)
		}
		alignment = uint64(n)
	}
	// It does not overflow: n is within a file, and alignments are below 2^32.
	alignUp := func(n uint64) uint64 { return (n + alignment - 1) / alignment * alignment }
	var data []byte
	if begin := alignUp(uint64(header)); begin < uint64(len(content)) { //nolint:gosec // a position in the file
		data = content[begin:]
	}
	var at uint64
	for i := range f.tensors {
		t := &f.tensors[i]
		size, err := t.Type.byteSize(t.Shape)
		switch {
		case err != nil:
			fail("tensor %q: %v", t.Name, err)
		case offsets[i] != at:
			fail("tensor %q begins at %d, want %d after the one before it", t.Name, offsets[i], at)
		case at > uint64(len(data)) || size > uint64(len(data))-at:
			fail("tensor %q needs %d bytes from %d on, and the data has %d; the file is truncated", t.Name, size, at, len(data))
		}
		t.Data = data[at : at+size : at+size]
		at = alignUp(at + size)
	}
}
