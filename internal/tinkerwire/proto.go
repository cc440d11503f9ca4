// Package tinkerwire has the messages of the Tinker API, for its clients and servers. It knows both dialects: JSON,
// of the SDKs up to 0.24, and protobuf (package tinker_public), which newer ones use for training data and results.
// Field numbers and names are facts of the protocol; unknown fields are skipped.
//
// Arrays of bytes in protobuf are little-endian, in C order.
package tinkerwire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

// ProtoType is the content type of the protobuf dialect.
const ProtoType = "application/x-protobuf"

// JSONType is the content type of the JSON dialect.
const JSONType = "application/json"

// field is one field of a message. bits is a varint or a fixed number, data what has a length.
type field struct {
	number protowire.Number
	kind   protowire.Type
	bits   uint64
	data   []byte
	wrong  *bool // set when the field is read as another type
}

// eachField calls visit for the fields of a message, in their order.
func eachField(message []byte, visit func(field) error) error {
	wrong := false
	for len(message) > 0 {
		f, n, err := nextField(message)
		if err != nil {
			return err
		}
		message, f.wrong = message[n:], &wrong
		if err := visit(f); err != nil {
			return fmt.Errorf("field %d: %w", f.number, err)
		}
		if wrong {
			return fmt.Errorf("field %d has wire type %d", f.number, f.kind)
		}
	}
	return nil
}

// nextField reads a field and returns its length.
func nextField(b []byte) (f field, n int, err error) {
	number, kind, n := protowire.ConsumeTag(b)
	if n < 0 {
		return f, 0, errors.New("it is not protobuf")
	}
	f.number, f.kind = number, kind
	rest, length := b[n:], 0
	switch kind {
	case protowire.VarintType:
		f.bits, length = protowire.ConsumeVarint(rest)
	case protowire.Fixed64Type:
		f.bits, length = protowire.ConsumeFixed64(rest)
	case protowire.BytesType:
		f.data, length = protowire.ConsumeBytes(rest)
	default: // groups, and fixed32, which no field of ours has
		length = protowire.ConsumeFieldValue(number, kind, rest)
	}
	if length < 0 {
		return f, 0, fmt.Errorf("field %d is cut off or damaged", number)
	}
	return f, n + length, nil
}

// as notes whether the field has a wire type.
func (f field) as(kind protowire.Type) bool {
	if f.kind != kind {
		*f.wrong = true
	}
	return f.kind == kind
}

func (f field) bytes() []byte {
	if !f.as(protowire.BytesType) {
		return nil
	}
	return f.data
}

func (f field) text() string { return string(f.bytes()) }

func (f field) integer() int64 {
	if !f.as(protowire.VarintType) {
		return 0
	}
	return int64(f.bits)
}

func (f field) double() float64 {
	if !f.as(protowire.Fixed64Type) {
		return 0
	}
	return math.Float64frombits(f.bits)
}

// maxIntegers bounds repeated integers: they are the dimensions of tensors.
const maxIntegers = 16

// integers appends the values of a repeated integer, packed or not.
func (f field) integers(list []int64) ([]int64, error) {
	packed := f.data
	if f.kind == protowire.VarintType {
		packed = protowire.AppendVarint(nil, f.bits)
	} else if !f.as(protowire.BytesType) {
		return list, nil
	}
	for len(packed) > 0 {
		x, n := protowire.ConsumeVarint(packed)
		if n < 0 {
			return nil, errors.New("a packed integer is cut off")
		}
		if len(list) == maxIntegers {
			return nil, fmt.Errorf("a tensor has more than %d dimensions", maxIntegers)
		}
		list, packed = append(list, int64(x)), packed[n:]
	}
	return list, nil
}

// entry reads an entry of a map.
func (f field) entry(value func(field) error) (key string, err error) {
	err = eachField(f.bytes(), func(f field) error {
		switch f.number {
		case 1:
			key = f.text()
		case 2:
			return value(f)
		}
		return nil
	})
	return key, err
}

func appendText(b []byte, number protowire.Number, s string) []byte {
	if s == "" {
		return b
	}
	return protowire.AppendString(protowire.AppendTag(b, number, protowire.BytesType), s)
}

func appendBytes(b []byte, number protowire.Number, data []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, number, protowire.BytesType), data)
}

func appendInteger(b []byte, number protowire.Number, x int64) []byte {
	if x == 0 {
		return b
	}
	return protowire.AppendVarint(protowire.AppendTag(b, number, protowire.VarintType), uint64(x))
}

func appendDouble(b []byte, number protowire.Number, x float64) []byte {
	return protowire.AppendFixed64(protowire.AppendTag(b, number, protowire.Fixed64Type), math.Float64bits(x))
}

// appendIntegers writes a packed repeated integer.
func appendIntegers(b []byte, number protowire.Number, list []int64) []byte {
	if len(list) == 0 {
		return b
	}
	var packed []byte
	for _, x := range list {
		packed = protowire.AppendVarint(packed, uint64(x))
	}
	return appendBytes(b, number, packed)
}

// putFloats writes numbers as float32.
func putFloats(list []float32) []byte {
	b := make([]byte, 4*len(list))
	for i, x := range list {
		binary.LittleEndian.PutUint32(b[4*i:], math.Float32bits(x))
	}
	return b
}

// putLongs writes numbers as int64.
func putLongs(list []int64) []byte {
	b := make([]byte, 8*len(list))
	for i, x := range list {
		binary.LittleEndian.PutUint64(b[8*i:], uint64(x))
	}
	return b
}

// putInts writes numbers as int32.
func putInts(list []int32) []byte {
	b := make([]byte, 4*len(list))
	for i, x := range list {
		binary.LittleEndian.PutUint32(b[4*i:], uint32(x))
	}
	return b
}

// split checks that an array consists of whole elements and returns their number.
func split(b []byte, size int) (int, error) {
	if len(b)%size != 0 {
		return 0, fmt.Errorf("an array has %d bytes, no multiple of %d", len(b), size)
	}
	return len(b) / size, nil
}

// floats reads float32.
func floats(b []byte) ([]float32, error) {
	n, err := split(b, 4)
	if err != nil {
		return nil, err
	}
	list := make([]float32, n)
	for i := range list {
		list[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return list, nil
}

// longs reads int64.
func longs(b []byte) ([]int64, error) {
	n, err := split(b, 8)
	if err != nil {
		return nil, err
	}
	list := make([]int64, n)
	for i := range list {
		list[i] = int64(binary.LittleEndian.Uint64(b[8*i:]))
	}
	return list, nil
}

// ints reads int32.
func ints(b []byte) ([]int32, error) {
	n, err := split(b, 4)
	if err != nil {
		return nil, err
	}
	list := make([]int32, n)
	for i := range list {
		list[i] = int32(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return list, nil
}
