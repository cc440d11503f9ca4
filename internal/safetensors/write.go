package safetensors

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
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

// headerTensor is a tensor of the header, its fields in the order in which the reference implementation writes them.
type headerTensor struct {
	DType   DType     `json:"dtype"`
	Shape   []int     `json:"shape"`
	Offsets [2]uint64 `json:"data_offsets"`
}

// encodeHeader returns the padded JSON: the metadata by key, then the tensors in order.
func encodeHeader(sources []Source, metadata map[string]string) ([]byte, error) {
	h := headerWriter{seen: map[string]bool{}}
	if err := h.metadata(metadata); err != nil {
		return nil, err
	}
	for _, s := range sources {
		if err := h.tensor(s); err != nil {
			return nil, err
		}
	}
	if h.Len() == 0 {
		h.WriteByte('{')
	}
	h.WriteByte('}')
	if padding := -h.Len() & 7; padding != 0 {
		h.Write(bytes.Repeat([]byte(" "), padding))
	}
	if h.Len() > MaxHeader {
		return nil, fmt.Errorf("safetensors: a header of %d bytes, more than %d; write several files", h.Len(), MaxHeader)
	}
	return h.Bytes(), nil
}

// headerWriter builds an object key by key, which keeps their order.
type headerWriter struct {
	bytes.Buffer
	seen   map[string]bool
	offset uint64
}

func (h *headerWriter) metadata(m map[string]string) error {
	if len(m) == 0 {
		return nil
	}
	for _, k := range slices.Sorted(maps.Keys(m)) {
		if !utf8.ValidString(k) || !utf8.ValidString(m[k]) {
			return fmt.Errorf("safetensors: metadata %q is not UTF-8", k)
		}
	}
	return h.field(metadataKey, m)
}

func (h *headerWriter) tensor(t Source) error {
	switch {
	case t.Name == metadataKey:
		return fmt.Errorf("safetensors: a tensor may not be named %q", t.Name)
	case !utf8.ValidString(t.Name):
		return fmt.Errorf("safetensors: tensor name %q is not UTF-8", t.Name)
	case h.seen[t.Name]:
		return fmt.Errorf("safetensors: two tensors are named %q", t.Name)
	}
	size, err := t.Size()
	if err != nil {
		return fmt.Errorf("safetensors: tensor %q: %w", t.Name, err)
	}
	h.seen[t.Name] = true
	begin := h.offset
	h.offset += size
	return h.field(t.Name, headerTensor{t.DType, append([]int{}, t.Shape...), [2]uint64{begin, h.offset}})
}

// field appends "key":value.
func (h *headerWriter) field(key string, value any) error {
	separator := byte(',')
	if h.Len() == 0 {
		separator = '{'
	}
	h.WriteByte(separator)
	if err := h.json(key); err != nil {
		return err
	}
	h.WriteByte(':')
	return h.json(value)
}

func (h *headerWriter) json(value any) error {
	e := json.NewEncoder(&h.Buffer)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		return err
	}
	h.Truncate(h.Len() - 1) // the newline of Encode
	return nil
}
