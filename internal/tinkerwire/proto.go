// Package tinkerwire has the messages of the Tinker API, for its clients and servers. It knows both dialects: JSON,
// of the SDKs up to 0.24, and protobuf (package tinker_public), which newer ones use for training data and results.
// Field numbers and names are facts of the protocol; unknown fields are skipped.
//
// Arrays of bytes in protobuf are little-endian, in C order.
package tinkerwire

import (
	"encoding/binary"
	"fmt"
	"iter"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

// ProtoType is the content type of the protobuf dialect.
const ProtoType = "application/x-protobuf"

// JSONType is the content type of the JSON dialect.
const JSONType = "application/json"

// damage is the panic of what parses a message, which [catch] makes an error.
type damage struct{ error }

// damaged ends the parsing of a message.
func damaged(format string, args ...any) { panic(damage{fmt.Errorf(format, args...)}) }

// catch makes an error of damage, behind a prefix. It is deferred.
func catch(err *error, prefix string) {
	switch p := recover().(type) {
	case nil:
	case damage:
		*err = fmt.Errorf("%s%w", prefix, p.error)
	default:
		panic(p)
	}
}

// field is one field of a message. bits is a varint or a fixed number, data what has a length.
type field struct {
	number protowire.Number
	kind   protowire.Type
	bits   uint64
	data   []byte
}

// fields yields the fields of a message, in their order. Damage within one names it.
func fields(message []byte) iter.Seq[field] {
	return func(yield func(field) bool) {
		for len(message) > 0 {
			f, n := nextField(message)
			if message = message[n:]; !f.yield(yield) {
				return
			}
		}
	}
}

func (f field) yield(to func(field) bool) bool {
	defer func() {
		p := recover()
		if d, ok := p.(damage); ok {
			damaged("field %d: %w", f.number, d.error)
		}
		if p != nil {
			panic(p)
		}
	}()
	return to(f)
}

// nextField reads a field and returns its length.
func nextField(b []byte) (f field, n int) {
	number, kind, n := protowire.ConsumeTag(b)
	if n < 0 {
		damaged("it is not protobuf")
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
		damaged("field %d is cut off or damaged", number)
	}
	return f, n + length
}

// as checks the wire type of a field.
func (f field) as(kind protowire.Type) field {
	if f.kind != kind {
		damaged("it has wire type %d", f.kind)
	}
	return f
}

func (f field) bytes() []byte   { return f.as(protowire.BytesType).data }
func (f field) text() string    { return string(f.bytes()) }
func (f field) integer() int64  { return int64(f.as(protowire.VarintType).bits) }
func (f field) double() float64 { return math.Float64frombits(f.as(protowire.Fixed64Type).bits) }

// maxIntegers bounds repeated integers: they are the dimensions of tensors.
const maxIntegers = 16

// integers appends the values of a repeated integer, packed or not.
func (f field) integers(list []int64) []int64 {
	packed := f.data
	if f.kind == protowire.VarintType {
		packed = protowire.AppendVarint(nil, f.bits)
	} else {
		f.as(protowire.BytesType)
	}
	for len(packed) > 0 {
		x, n := protowire.ConsumeVarint(packed)
		if n < 0 {
			damaged("a packed integer is cut off")
		}
		if len(list) == maxIntegers {
			damaged("a tensor has more than %d dimensions", maxIntegers)
		}
		list, packed = append(list, int64(x)), packed[n:]
	}
	return list
}

func (f field) entry(value func(field)) (key string) {
	for f := range fields(f.bytes()) {
		switch f.number {
		case 1:
			key = f.text()
		case 2:
			value(f)
		}
	}
	return key
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

func appendEntry(b []byte, number protowire.Number, key string, value []byte) []byte {
	return appendBytes(b, number, append(appendText(nil, 1, key), value...))
}

// put writes the numbers of an array.
func put[T float32 | int32 | int64](list []T) []byte {
	b, _ := binary.Append(nil, binary.LittleEndian, list) // never fails for numbers
	return b
}

// numbersOf reads the numbers of an array.
func numbersOf[T float32 | int32 | int64](b []byte) []T {
	size := binary.Size(T(0))
	if len(b)%size != 0 {
		damaged("an array has %d bytes, no multiple of %d", len(b), size)
	}
	list := make([]T, len(b)/size)
	_, _ = binary.Decode(b, binary.LittleEndian, list) // never fails for numbers
	return list
}
