package gguf

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"unicode/utf8"

	"github.com/goart-dev/art/internal/ggml"
)

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
		f.tensors = append(f.tensors, Tensor{Name: name, Shape: r.shape(name), Type: ggml.Type(r.uint32())})
		offsets = append(offsets, r.uint64())
	}
	f.assignData(content, len(content)-len(r.rest), offsets)
}

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

// assignData sets the data of each tensor, one after another behind the header, at multiples of the alignment.
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
		size, err := t.Type.Size(t.Shape)
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

type reader struct{ rest []byte }

// formatError is the panic of a file that is not valid. [Parse] recovers it.
type formatError struct{ error }

func fail(format string, args ...any) {
	panic(formatError{fmt.Errorf("%w: %s", ErrFormat, fmt.Sprintf(format, args...))})
}

func (r *reader) take(n uint64) []byte {
	if n > uint64(len(r.rest)) {
		fail("the header needs %d more bytes and the file has %d; it is truncated", n, len(r.rest))
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b
}

func (r *reader) uint8() uint8     { return r.take(1)[0] }
func (r *reader) uint16() uint16   { return binary.LittleEndian.Uint16(r.take(2)) }
func (r *reader) uint32() uint32   { return binary.LittleEndian.Uint32(r.take(4)) }
func (r *reader) uint64() uint64   { return binary.LittleEndian.Uint64(r.take(8)) }
func (r *reader) int8() int8       { return int8(r.uint8()) }   //nolint:gosec // the bits of a signed number
func (r *reader) int16() int16     { return int16(r.uint16()) } //nolint:gosec // as above
func (r *reader) int32() int32     { return int32(r.uint32()) } //nolint:gosec // as above
func (r *reader) int64() int64     { return int64(r.uint64()) } //nolint:gosec // as above
func (r *reader) float32() float32 { return math.Float32frombits(r.uint32()) }
func (r *reader) float64() float64 { return math.Float64frombits(r.uint64()) }
func (r *reader) string() string   { return string(r.take(r.uint64())) }

func (r *reader) bool() bool {
	b := r.uint8()
	if b > 1 {
		fail("%d where true or false is expected", b)
	}
	return b == 1
}

// kind is a type of metadata: how one value is read, and a list of them.
type kind struct{ one, list func(r *reader) any }

// kindOf is the kind of values that are at least that many bytes in a file.
func kindOf[T any](bytes int, one func(*reader) T) kind {
	return kind{
		one: func(r *reader) any { return one(r) },
		list: func(r *reader) any {
			n := r.uint64()
			if n > uint64(len(r.rest)/bytes) { // there is memory for what the file can hold
				fail("a list claims %d elements and the file has %d more bytes; it is truncated", n, len(r.rest))
			}
			out := make([]T, n)
			for i := range out {
				out[i] = one(r)
			}
			return out
		},
	}
}

// kinds are those of the format, by its numbers.
var kinds = map[uint32]kind{
	0: kindOf(1, (*reader).uint8), 1: kindOf(1, (*reader).int8), 2: kindOf(2, (*reader).uint16),
	3: kindOf(2, (*reader).int16), 4: kindOf(4, (*reader).uint32), 5: kindOf(4, (*reader).int32),
	6: kindOf(4, (*reader).float32), 7: kindOf(1, (*reader).bool), 8: kindOf(8, (*reader).string),
	10: kindOf(8, (*reader).uint64), 11: kindOf(8, (*reader).int64), 12: kindOf(8, (*reader).float64),
}

// listKind is the number of a list. No known file has lists of lists; they are refused, as by ggml.
const listKind = 9

func (r *reader) value(key string) any {
	number := r.uint32()
	if number != listKind {
		k, ok := kinds[number]
		if !ok {
			fail("metadata %q is of the unknown type %d", key, number)
		}
		return k.one(r)
	}
	number = r.uint32()
	k, ok := kinds[number]
	if !ok {
		fail("metadata %q is a list of the unknown type %d", key, number)
	}
	return k.list(r)
}
