// Package protofield reads and writes the fields of protobuf messages of which only the numbers of the fields are known
// here.
package protofield

import (
	"iter"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

// Number is the number of a field.
type Number = protowire.Number

// Field is a field of a message.
type Field struct {
	Number Number
	Bits   uint64 // of a varint or of a fixed number, else 0
	Data   []byte // of text, bytes, a message or a packed list, else nil
}

// All returns the fields of a message in their order. A damaged message ends with an error, in place of a field.
func All(b []byte) iter.Seq2[Field, error] {
	return func(yield func(Field, error) bool) {
		for len(b) > 0 {
			f, n := next(b)
			if n < 0 {
				yield(Field{}, protowire.ParseError(n))
				return
			}
			if b = b[n:]; !yield(f, nil) {
				return
			}
		}
	}
}

// next reads a field. n is its length, or below 0 an error of protowire.
func next(b []byte) (f Field, n int) {
	number, kind, tag := protowire.ConsumeTag(b)
	if tag < 0 {
		return f, tag
	}
	f.Number = number
	switch b = b[tag:]; kind {
	case protowire.VarintType:
		f.Bits, n = protowire.ConsumeVarint(b)
	case protowire.Fixed32Type:
		var bits uint32
		bits, n = protowire.ConsumeFixed32(b)
		f.Bits = uint64(bits)
	case protowire.Fixed64Type:
		f.Bits, n = protowire.ConsumeFixed64(b)
	case protowire.BytesType:
		f.Data, n = protowire.ConsumeBytes(b)
	default:
		n = protowire.ConsumeFieldValue(number, kind, b)
	}
	if n < 0 {
		return f, n
	}
	return f, tag + n
}

// Varints returns the numbers of a repeated field of varints: those of a packed list, or the one that f is.
func (f Field) Varints() ([]uint64, error) {
	if f.Data == nil {
		return []uint64{f.Bits}, nil
	}
	var list []uint64
	for b := f.Data; len(b) > 0; {
		x, n := protowire.ConsumeVarint(b)
		if n < 0 {
			return nil, protowire.ParseError(n)
		}
		list, b = append(list, x), b[n:]
	}
	return list, nil
}

// AppendVarint writes a whole number or a bool.
func AppendVarint(b []byte, field Number, x uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), x)
}

// AppendFixed32 writes a fixed32.
func AppendFixed32(b []byte, field Number, x uint32) []byte {
	return protowire.AppendFixed32(protowire.AppendTag(b, field, protowire.Fixed32Type), x)
}

// AppendFixed64 writes a fixed64.
func AppendFixed64(b []byte, field Number, x uint64) []byte {
	return protowire.AppendFixed64(protowire.AppendTag(b, field, protowire.Fixed64Type), x)
}

// AppendFloat writes a float.
func AppendFloat(b []byte, field Number, x float32) []byte {
	return protowire.AppendFixed32(protowire.AppendTag(b, field, protowire.Fixed32Type), math.Float32bits(x))
}

// AppendDouble writes a double.
func AppendDouble(b []byte, field Number, x float64) []byte {
	return protowire.AppendFixed64(protowire.AppendTag(b, field, protowire.Fixed64Type), math.Float64bits(x))
}

// AppendDoubles writes a packed list of doubles.
func AppendDoubles(b []byte, field Number, list []float64) []byte {
	b = protowire.AppendVarint(protowire.AppendTag(b, field, protowire.BytesType), 8*uint64(len(list)))
	for _, x := range list {
		b = protowire.AppendFixed64(b, math.Float64bits(x))
	}
	return b
}

// AppendBytes writes bytes or a message.
func AppendBytes(b []byte, field Number, data []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), data)
}

// AppendMessage writes a message that write appends, and moves it where its length takes more than a byte.
func AppendMessage(b []byte, field Number, write func([]byte) []byte) []byte {
	b = protowire.AppendTag(b, field, protowire.BytesType)
	at := len(b)
	b = write(append(b, 0))
	n := len(b) - at - 1
	more := protowire.SizeVarint(uint64(n)) - 1
	b = append(b, make([]byte, more)...)
	copy(b[at+1+more:], b[at+1:at+1+n])
	protowire.AppendVarint(b[:at], uint64(n))
	return b
}

// AppendText writes a text, or nothing where it is empty.
func AppendText(b []byte, field Number, text string) []byte {
	if text == "" {
		return b
	}
	return protowire.AppendString(protowire.AppendTag(b, field, protowire.BytesType), text)
}
