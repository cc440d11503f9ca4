package gguf

import (
	"encoding/binary"
	"math"
)

// reader reads a file field by field. After the first error, which it keeps, it returns zeros.
type reader struct {
	rest []byte
	err  error
}

// fail keeps the first error.
func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = formatErrorf(format, args...)
	}
}

// take returns the next n bytes, nil when there are fewer.
func (r *reader) take(n uint64) []byte {
	if n > uint64(len(r.rest)) {
		r.fail("the header needs %d more bytes and the file has %d; it is truncated", n, len(r.rest))
	}
	if r.err != nil {
		return nil
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b
}

func (r *reader) uint8() uint8 {
	if b := r.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *reader) uint16() uint16 {
	if b := r.take(2); b != nil {
		return binary.LittleEndian.Uint16(b)
	}
	return 0
}

func (r *reader) uint32() uint32 {
	if b := r.take(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (r *reader) uint64() uint64 {
	if b := r.take(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

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
		r.fail("%d where true or false is expected", b)
	}
	return b == 1
}
