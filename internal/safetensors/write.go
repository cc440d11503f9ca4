package safetensors

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// Write writes a file with the tensors in the given order; metadata may be nil. The bytes are a function of the
// arguments. The header is padded so that the data starts at a multiple of 8 bytes; tensors are not padded, because
// the format has no gaps: order them by descending element size to have each one aligned.
func Write(w io.Writer, tensors []Tensor, metadata map[string]string) error {
	sources := make([]Source, len(tensors))
	for i, t := range tensors {
		if err := t.check(); err != nil {
			return err
		}
		sources[i] = Source{t.Name, t.DType, t.Shape, func(w io.Writer) error {
			_, err := w.Write(t.Data)
			return err
		}}
	}
	return WriteSources(w, sources, metadata)
}

// Source is a tensor whose data is produced while it is written.
type Source struct {
	Name  string
	DType DType
	Shape []int
	// Write writes the data, as many bytes as DType and Shape require.
	Write func(w io.Writer) error
}

// Size returns the size of the data in bytes. A shape or type that no file can have is an error.
func (s Source) Size() (uint64, error) { return byteSize(s.DType, s.Shape) }

// WriteSources is [Write] for tensors that need not all be in memory at once.
func WriteSources(w io.Writer, sources []Source, metadata map[string]string) error {
	header, err := encodeHeader(sources, metadata)
	if err != nil {
		return err
	}
	prefix := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	if _, err := w.Write(append(prefix, header...)); err != nil {
		return err
	}
	for _, s := range sources {
		size, err := s.Size()
		if err != nil {
			return err
		}
		counted := &countingWriter{w: w}
		if err := s.Write(counted); err != nil {
			return err
		}
		if counted.n != size {
			return fmt.Errorf("safetensors: tensor %q: shape %v of %s needs %d bytes and there are %d", s.Name, s.Shape, s.DType,
				size, counted.n)
		}
	}
	return nil
}

type countingWriter struct {
	w io.Writer
	n uint64
}

func (c *countingWriter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n += uint64(n) //nolint:gosec // it is not negative
	return n, err
}

// headerTensor is a tensor of the header, its fields in the order in which the reference implementation writes them.
type headerTensor struct {
	DType   DType     `json:"dtype"`
	Shape   []int     `json:"shape"`
	Offsets [2]uint64 `json:"data_offsets"`
}

// encodeHeader returns the padded JSON: the metadata by key, then the tensors in order.
func encodeHeader(sources []Source, metadata map[string]string) ([]byte, error) {
	var h bytes.Buffer
	encoder := json.NewEncoder(&h)
	encoder.SetEscapeHTML(false)
	separator := byte('{')
	field := func(key string, value any) error { // one by one, which keeps their order
		for _, part := range []any{key, value} {
			h.WriteByte(separator)
			if err := encoder.Encode(part); err != nil {
				return err
			}
			h.Truncate(h.Len() - 1) // the newline of Encode
			separator = ':'
		}
		separator = ','
		return nil
	}
	for _, k := range slices.Sorted(maps.Keys(metadata)) {
		if !utf8.ValidString(k) || !utf8.ValidString(metadata[k]) {
			return nil, fmt.Errorf("safetensors: metadata %q is not UTF-8", k)
		}
	}
	if len(metadata) > 0 {
		if err := field(metadataKey, metadata); err != nil {
			return nil, err
		}
	}
	seen, end := map[string]bool{}, uint64(0)
	for _, s := range sources {
		switch {
		case s.Name == metadataKey:
			return nil, fmt.Errorf("safetensors: a tensor may not be named %q", s.Name)
		case !utf8.ValidString(s.Name):
			return nil, fmt.Errorf("safetensors: tensor name %q is not UTF-8", s.Name)
		case seen[s.Name]:
			return nil, fmt.Errorf("safetensors: two tensors are named %q", s.Name)
		}
		size, err := s.Size()
		if err != nil {
			return nil, fmt.Errorf("safetensors: tensor %q: %w", s.Name, err)
		}
		begin := end
		seen[s.Name], end = true, begin+size
		if err := field(s.Name, headerTensor{s.DType, append([]int{}, s.Shape...), [2]uint64{begin, end}}); err != nil {
			return nil, err
		}
	}
	if h.Len() == 0 {
		h.WriteByte('{')
	}
	h.WriteByte('}')
	h.WriteString(strings.Repeat(" ", -h.Len()&7))
	if h.Len() > MaxHeader {
		return nil, fmt.Errorf("safetensors: a header of %d bytes, more than %d; write several files", h.Len(), MaxHeader)
	}
	return h.Bytes(), nil
}
