package gguf

import (
	"encoding/binary"
	"fmt"
	"io"
	"reflect"

	"github.com/goart-dev/art/internal/ggml"
)

// Pair is a value of the metadata with its key.
type Pair struct {
	Key   string
	Value any // as [File.Value] returns it
}

// Source is a tensor whose data is produced while it is written.
type Source struct {
	Name  string
	Type  ggml.Type
	Shape []int // outermost dimension first
	// Write writes the data, as many bytes as Type and Shape require.
	Write func(w io.Writer) error
}

// numbers are those of the format for the types of values.
var numbers = map[reflect.Kind]uint32{
	reflect.Uint8: 0, reflect.Int8: 1, reflect.Uint16: 2, reflect.Int16: 3, reflect.Uint32: 4, reflect.Int32: 5,
	reflect.Float32: 6, reflect.Bool: 7, reflect.String: 8, reflect.Uint64: 10, reflect.Int64: 11, reflect.Float64: 12,
}

// Write writes a file of version 3. Only its header is in memory. The alignment is that of the metadata.
func Write(w io.Writer, metadata []Pair, tensors []Source) error {
	header, alignment, err := encodeHeader(metadata, tensors)
	if err != nil {
		return err
	}
	out := &countingWriter{w: w}
	if _, err := out.Write(header); err != nil {
		return err
	}
	for _, t := range tensors {
		if _, err := out.Write(make([]byte, -out.n&(alignment-1))); err != nil {
			return err
		}
		before := out.n
		if err := t.Write(out); err != nil {
			return err
		}
		if size, _ := t.Type.Size(t.Shape); out.n-before != size { // encodeHeader found no error
			return fmt.Errorf("gguf: tensor %q: shape %v of %v needs %d bytes and there are %d", t.Name, t.Shape, t.Type, size,
				out.n-before)
		}
	}
	_, err = out.Write(make([]byte, -out.n&(alignment-1))) // as llama.cpp does
	return err
}

// encodeHeader returns all that precedes the data, and the alignment.
func encodeHeader(metadata []Pair, tensors []Source) (b []byte, alignment uint64, err error) {
	alignment = defaultAlignment
	b = append([]byte("GGUF"), 3, 0, 0, 0)
	b = binary.LittleEndian.AppendUint64(b, uint64(len(tensors)))
	b = binary.LittleEndian.AppendUint64(b, uint64(len(metadata)))
	names := map[string]bool{}
	for _, p := range metadata {
		if p.Key == "" || names[p.Key] {
			return nil, 0, fmt.Errorf("gguf: the metadata has the key %q twice, or it is empty", p.Key)
		}
		names[p.Key] = true
		if p.Key == alignmentKey {
			n, ok := p.Value.(uint32)
			if !ok || n == 0 || n&(n-1) != 0 {
				return nil, 0, fmt.Errorf("gguf: %s is %v, which is not a uint32 that is a power of two", p.Key, p.Value)
			}
			alignment = uint64(n)
		}
		if b, err = appendValue(appendString(b, p.Key), p.Value); err != nil {
			return nil, 0, fmt.Errorf("gguf: %s: %w", p.Key, err)
		}
	}
	clear(names)
	offset := uint64(0)
	for _, t := range tensors {
		size, err := t.Type.Size(t.Shape)
		switch {
		case err != nil:
			return nil, 0, fmt.Errorf("gguf: tensor %q: %w", t.Name, err)
		case t.Name == "" || names[t.Name] || len(t.Shape) > MaxRank:
			return nil, 0, fmt.Errorf("gguf: the tensor %q of %d dimensions is there twice, or has no name or more than %d",
				t.Name, len(t.Shape), MaxRank)
		}
		names[t.Name] = true
		b = binary.LittleEndian.AppendUint32(appendString(b, t.Name), uint32(len(t.Shape))) //nolint:gosec // at most MaxRank
		for i := range t.Shape {
			b = binary.LittleEndian.AppendUint64(b, uint64(t.Shape[len(t.Shape)-1-i])) //nolint:gosec // not negative
		}
		b = binary.LittleEndian.AppendUint32(b, uint32(t.Type))
		b = binary.LittleEndian.AppendUint64(b, offset)
		offset = (offset + size + alignment - 1) &^ (alignment - 1)
	}
	return b, alignment, nil
}

// appendValue writes the type of a value, and the value.
func appendValue(b []byte, value any) ([]byte, error) {
	v := reflect.ValueOf(value)
	if v.IsValid() && v.Kind() == reflect.Slice {
		kind, ok := numbers[v.Type().Elem().Kind()]
		if !ok {
			return nil, fmt.Errorf("a list of the type %T cannot be written", value)
		}
		b = binary.LittleEndian.AppendUint32(b, listKind)
		b = binary.LittleEndian.AppendUint32(b, kind)
		b = binary.LittleEndian.AppendUint64(b, uint64(v.Len())) //nolint:gosec // not negative
		if list, ok := value.([]string); ok {
			for _, s := range list {
				b = appendString(b, s)
			}
			return b, nil
		}
		return binary.Append(b, binary.LittleEndian, value)
	}
	kind, ok := numbers[v.Kind()]
	if !ok {
		return nil, fmt.Errorf("a value of the type %T cannot be written", value)
	}
	b = binary.LittleEndian.AppendUint32(b, kind)
	if s, ok := value.(string); ok {
		return appendString(b, s), nil
	}
	return binary.Append(b, binary.LittleEndian, value)
}

func appendString(b []byte, s string) []byte {
	return append(binary.LittleEndian.AppendUint64(b, uint64(len(s))), s...)
}

// countingWriter counts what it passes on.
type countingWriter struct {
	w io.Writer
	n uint64
}

func (c *countingWriter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n += uint64(n) //nolint:gosec // it is not negative
	return n, err
}
