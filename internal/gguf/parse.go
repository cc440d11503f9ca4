package gguf

import (
	"math/bits"
	"unicode/utf8"
)

// parse reads the parts of a file one after the other.
func (f *File) parse(r *reader, content []byte) error {
	magic := string(r.take(4))
	f.version = r.uint32()
	switch {
	case r.err != nil:
		return r.err
	case magic != "GGUF":
		return formatErrorf("it does not begin with GGUF")
	case f.version > 0xffff && bits.ReverseBytes32(f.version) <= 0xffff:
		return formatErrorf("it is big-endian, which is not supported")
	case f.version != 2 && f.version != 3:
		return formatErrorf("it is version %d, and versions 2 and 3 are supported", f.version)
	}
	tensors, values := r.uint64(), r.uint64()
	for i := uint64(0); i < values && r.err == nil; i++ {
		f.readValue(r)
	}
	var offsets []uint64
	for i := uint64(0); i < tensors && r.err == nil; i++ {
		offsets = append(offsets, f.readTensor(r))
	}
	if r.err != nil {
		return r.err
	}
	alignment, err := f.alignment()
	if err != nil {
		return err
	}
	return f.assignData(content, len(content)-len(r.rest), offsets, alignment)
}

// readValue reads one value of the metadata.
func (f *File) readValue(r *reader) {
	key := r.name("a key of the metadata")
	if _, ok := f.metadata[key]; ok {
		r.fail("the metadata has the key %q twice", key)
	}
	value := r.value(key)
	if r.err == nil {
		f.keys = append(f.keys, key)
		f.metadata[key] = value
	}
}

// readTensor reads the header of a tensor, and returns the offset of its data.
func (f *File) readTensor(r *reader) (offset uint64) {
	name := r.name("the name of a tensor")
	if _, ok := f.index[name]; ok {
		r.fail("two tensors are named %q", name)
	}
	t := Tensor{Name: name, Shape: r.shape(name), Type: Type(r.uint32())}
	offset = r.uint64()
	f.index[name] = len(f.tensors)
	f.tensors = append(f.tensors, t)
	return offset
}

// name reads a string that names something.
func (r *reader) name(what string) string {
	s := r.string()
	if r.err == nil && (s == "" || !utf8.ValidString(s)) {
		r.fail("%s is %q", what, s)
	}
	return s
}

// shape reads dimensions, and returns them with the outermost first.
func (r *reader) shape(name string) []int {
	rank := r.uint32()
	if rank > MaxRank {
		r.fail("tensor %q has %d dimensions, more than %d", name, rank, MaxRank)
		return nil
	}
	shape := make([]int, rank)
	for i := range shape {
		dim := r.uint64()
		n := int(dim) //nolint:gosec // checked
		if n < 0 || uint64(n) != dim {
			r.fail("tensor %q has a dimension of %d", name, dim)
			return nil
		}
		shape[len(shape)-1-i] = n
	}
	return shape
}

// alignment returns the alignment of tensors in bytes.
func (f *File) alignment() (uint64, error) {
	value, ok := f.metadata[alignmentKey]
	if !ok {
		return defaultAlignment, nil
	}
	n, ok := value.(uint32)
	if !ok || bits.OnesCount32(n) != 1 {
		return 0, formatErrorf("%s is %v, which is not a uint32 that is a power of two", alignmentKey, value)
	}
	return uint64(n), nil
}

// assignData sets the data of each tensor. It begins after the header, and tensors follow one another.
func (f *File) assignData(content []byte, header int, offsets []uint64, alignment uint64) error {
	begin := alignUp(uint64(header), alignment) //nolint:gosec // a position in the file
	var data []byte
	if begin < uint64(len(content)) {
		data = content[begin:]
	}
	var at uint64
	for i := range f.tensors {
		t := &f.tensors[i]
		size, err := t.Type.byteSize(t.Shape)
		switch {
		case err != nil:
			return formatErrorf("tensor %q: %v", t.Name, err)
		case offsets[i] != at:
			return formatErrorf("tensor %q begins at %d, want %d after the one before it", t.Name, offsets[i], at)
		case at > uint64(len(data)) || size > uint64(len(data))-at:
			return formatErrorf("tensor %q needs %d bytes from %d on, and the data has %d; the file is truncated", t.Name, size,
				at, len(data))
		}
		t.Data = data[at : at+size : at+size]
		at = alignUp(at+size, alignment)
	}
	return nil
}

// alignUp rounds up to a multiple of alignment. It does not overflow: n is within a file, and alignments are below
// 2^32.
func alignUp(n, alignment uint64) uint64 { return (n + alignment - 1) / alignment * alignment }
