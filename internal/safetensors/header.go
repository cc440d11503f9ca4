package safetensors

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"slices"
	"strconv"
	"unicode/utf8"
)

// entry is one tensor of a header: its data is [begin, end) of the data section.
type entry struct {
	Tensor
	begin, end uint64
}

// split returns the header, without its padding, and the data section.
func split(content []byte) (header, data []byte, err error) {
	if len(content) < 8 {
		return nil, nil, formatErrorf("it has %d bytes and starts with a length of 8; it is truncated", len(content))
	}
	size := binary.LittleEndian.Uint64(content)
	if size > MaxHeader {
		return nil, nil, formatErrorf("the header claims %d bytes, more than %d", size, MaxHeader)
	}
	rest := content[8:]
	if size > uint64(len(rest)) {
		return nil, nil, formatErrorf("the header claims %d bytes and the file has %d more; it is truncated", size, len(rest))
	}
	return bytes.TrimRight(rest[:size], " "), rest[size:], nil
}

// parseHeader reads the JSON of a header: the tensors in the order in which they are written, and the metadata.
func parseHeader(header []byte) ([]entry, map[string]string, error) {
	switch {
	case len(header) == 0 || header[0] != '{' || header[len(header)-1] != '}':
		return nil, nil, formatErrorf("the header is not a JSON object")
	case !utf8.Valid(header):
		return nil, nil, formatErrorf("the header is not UTF-8")
	case !json.Valid(header):
		return nil, nil, formatErrorf("the header is not valid JSON")
	}
	p := newParser(header)
	var tensors []entry
	var metadata map[string]string
	err := p.object("the header", func(name string) (err error) {
		if name == metadataKey {
			metadata, err = p.metadata()
			return err
		}
		t, err := p.tensor(name)
		tensors = append(tensors, t)
		return err
	})
	return tensors, metadata, err
}

// headerParser reads the forms that a header and an index have, from JSON that is known to be valid.
type headerParser struct{ *json.Decoder }

func newParser(content []byte) *headerParser {
	p := &headerParser{json.NewDecoder(bytes.NewReader(content))}
	p.UseNumber() // numbers of any size are tokens
	return p
}

// object reads an object, calling field for each key to read its value. Repeated keys are an error.
func (p *headerParser) object(what string, field func(key string) error) error {
	if err := p.open('{', what); err != nil {
		return err
	}
	seen := map[string]bool{}
	for p.More() {
		key, err := p.str(what)
		if err != nil {
			return err
		}
		if seen[key] {
			return formatErrorf("%s has the key %q twice", what, key)
		}
		seen[key] = true
		if err := field(key); err != nil {
			return err
		}
	}
	_, err := p.Token()
	return err
}

func (p *headerParser) open(delim json.Delim, what string) error {
	t, err := p.Token()
	if err != nil {
		return err
	}
	if t != delim {
		return formatErrorf("%s has %v where %q is expected", what, t, delim.String())
	}
	return nil
}

func (p *headerParser) str(what string) (string, error) {
	t, err := p.Token()
	if err != nil {
		return "", err
	}
	s, ok := t.(string)
	if !ok {
		return "", formatErrorf("%s has %v where a string is expected", what, t)
	}
	return s, nil
}

func (p *headerParser) metadata() (map[string]string, error) {
	m := map[string]string{}
	err := p.object(metadataKey, func(key string) (err error) {
		m[key], err = p.str(metadataKey)
		return err
	})
	return m, err
}

// tensor reads {"dtype", "shape", "data_offsets"}, each exactly once and nothing else.
func (p *headerParser) tensor(name string) (entry, error) {
	t := entry{Tensor: Tensor{Name: name}}
	what := "tensor " + strconv.Quote(name)
	fields := 0
	err := p.object(what, func(key string) (err error) {
		fields++
		switch key {
		case "dtype":
			var s string
			s, err = p.str(what)
			t.DType = DType(s)
		case "shape":
			t.Shape, err = p.shape(what)
		case "data_offsets":
			t.begin, t.end, err = p.offsets(what)
		default:
			err = formatErrorf("%s has the unknown key %q", what, key)
		}
		return err
	})
	if err == nil && fields != 3 {
		err = formatErrorf("%s lacks one of dtype, shape and data_offsets", what)
	}
	return t, err
}

func (p *headerParser) shape(what string) ([]int, error) {
	numbers, err := p.numbers(what, "shape", MaxRank)
	if err != nil {
		return nil, err
	}
	shape := make([]int, len(numbers))
	for i, n := range numbers {
		shape[i] = int(n)
		if shape[i] < 0 || uint64(shape[i]) != n {
			return nil, formatErrorf("%s has a dimension of %d", what, n)
		}
	}
	return shape, nil
}

func (p *headerParser) offsets(what string) (begin, end uint64, err error) {
	numbers, err := p.numbers(what, "data_offsets", 2)
	if err != nil {
		return 0, 0, err
	}
	if len(numbers) != 2 {
		return 0, 0, formatErrorf("%s has %d data_offsets", what, len(numbers))
	}
	return numbers[0], numbers[1], nil
}

// numbers reads a list of at most limit unsigned integers, written without sign, point and exponent.
func (p *headerParser) numbers(what, field string, limit int) ([]uint64, error) {
	if err := p.open('[', what); err != nil {
		return nil, err
	}
	var out []uint64
	for p.More() {
		if len(out) == limit {
			return nil, formatErrorf("%s has more than %d numbers in its %s", what, limit, field)
		}
		t, err := p.Token()
		if err != nil {
			return nil, err
		}
		text, _ := t.(json.Number)
		n, err := strconv.ParseUint(string(text), 10, 64)
		if err != nil {
			return nil, formatErrorf("%s has %v in its %s", what, t, field)
		}
		out = append(out, n)
	}
	_, err := p.Token()
	return out, err
}

// assignData checks that the tensors cover the data exactly, and sets the data of each. It returns them by offset;
// empty tensors at the same offset keep the order of the header.
func assignData(entries []entry, data []byte) ([]Tensor, error) {
	slices.SortStableFunc(entries, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.begin, b.begin), cmp.Compare(a.end, b.end))
	})
	tensors := make([]Tensor, len(entries))
	var at uint64
	for i, e := range entries {
		size, err := byteSize(e.DType, e.Shape)
		switch {
		case err != nil:
			return nil, formatErrorf("tensor %q: %v", e.Name, err)
		case e.begin != at:
			return nil, formatErrorf("tensor %q begins at %d and the data before it ends at %d", e.Name, e.begin, at)
		case e.end < e.begin || e.end-e.begin != size:
			return nil, formatErrorf("tensor %q has data_offsets [%d, %d] and its shape needs %d bytes", e.Name, e.begin, e.end,
				size)
		case e.end > uint64(len(data)):
			return nil, formatErrorf("tensor %q ends at %d of %d bytes of data; the file is truncated", e.Name, e.end, len(data))
		}
		e.Data = data[e.begin:e.end:e.end]
		tensors[i], at = e.Tensor, e.end
	}
	if at != uint64(len(data)) {
		return nil, formatErrorf("the tensors end at %d of %d bytes of data", at, len(data))
	}
	return tensors, nil
}
