package safetensors

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"unicode/utf8"
)

// formatError is the panic of content that is not valid. recoverFormat turns it into an error.
type formatError struct{ error }

func fail(format string, args ...any) { panic(formatError{formatErrorf(format, args...)}) }

func formatErrorf(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrFormat, fmt.Sprintf(format, args...))
}

// recoverFormat is deferred by what parses.
func recoverFormat(err *error) {
	switch problem := recover().(type) {
	case nil:
	case formatError:
		*err = problem.error
	default:
		panic(problem)
	}
}

// entry is one tensor of a header: its data is [begin, end) of the data section.
type entry struct {
	Tensor
	begin, end uint64
}

// split returns the header, without its padding, and the data section.
func split(content []byte) (header, data []byte) {
	if len(content) < 8 {
		fail("it has %d bytes and starts with a length of 8; it is truncated", len(content))
	}
	size := binary.LittleEndian.Uint64(content)
	if size > MaxHeader {
		fail("the header claims %d bytes, more than %d", size, MaxHeader)
	}
	rest := content[8:]
	if size > uint64(len(rest)) {
		fail("the header claims %d bytes and the file has %d more; it is truncated", size, len(rest))
	}
	return bytes.TrimRight(rest[:size], " "), rest[size:]
}

// parseHeader reads the JSON of a header: the tensors in the order in which they are written, and the metadata.
func parseHeader(header []byte) (tensors []entry, metadata map[string]string) {
	switch {
	case len(header) == 0 || header[0] != '{' || header[len(header)-1] != '}':
		fail("the header is not a JSON object")
	case !utf8.Valid(header):
		fail("the header is not UTF-8")
	case !json.Valid(header):
		fail("the header is not valid JSON")
	}
	p := newParser(header)
	p.object("the header", func(name string) {
		if name != metadataKey {
			tensors = append(tensors, p.tensor(name))
			return
		}
		metadata = map[string]string{}
		p.object(metadataKey, func(key string) { metadata[key] = p.str(metadataKey) })
	})
	return tensors, metadata
}

// headerParser reads the forms that a header and an index have, from JSON that is known to be valid.
type headerParser struct{ *json.Decoder }

func newParser(content []byte) *headerParser {
	p := &headerParser{json.NewDecoder(bytes.NewReader(content))}
	p.UseNumber() // numbers of any size are tokens
	return p
}

func (p *headerParser) token() json.Token {
	t, err := p.Token()
	if err != nil {
		panic(formatError{err})
	}
	return t
}

// object reads an object, calling field for each key to read its value. Repeated keys are an error.
func (p *headerParser) object(what string, field func(key string)) {
	p.open('{', what)
	seen := map[string]bool{}
	for p.More() {
		key := p.str(what)
		if seen[key] {
			fail("%s has the key %q twice", what, key)
		}
		seen[key] = true
		field(key)
	}
	p.token()
}

func (p *headerParser) open(delim json.Delim, what string) {
	if t := p.token(); t != delim {
		fail("%s has %v where %q is expected", what, t, delim.String())
	}
}

func (p *headerParser) str(what string) string {
	t := p.token()
	s, ok := t.(string)
	if !ok {
		fail("%s has %v where a string is expected", what, t)
	}
	return s
}

// tensor reads {"dtype", "shape", "data_offsets"}, each exactly once and nothing else.
func (p *headerParser) tensor(name string) entry {
	t := entry{Tensor: Tensor{Name: name}}
	what := "tensor " + strconv.Quote(name)
	fields := 0
	p.object(what, func(key string) {
		fields++
		switch key {
		case "dtype":
			t.DType = DType(p.str(what))
		case "shape":
			numbers := p.numbers(what, key, MaxRank)
			t.Shape = make([]int, len(numbers))
			for i, n := range numbers {
				t.Shape[i] = int(n)
				if t.Shape[i] < 0 || uint64(t.Shape[i]) != n {
					fail("%s has a dimension of %d", what, n)
				}
			}
		case "data_offsets":
			numbers := p.numbers(what, key, 2)
			if len(numbers) != 2 {
				fail("%s has %d data_offsets", what, len(numbers))
			}
			t.begin, t.end = numbers[0], numbers[1]
		default:
			fail("%s has the unknown key %q", what, key)
		}
	})
	if fields != 3 {
		fail("%s lacks one of dtype, shape and data_offsets", what)
	}
	return t
}

// numbers reads a list of at most limit unsigned integers, written without sign, point and exponent.
func (p *headerParser) numbers(what, field string, limit int) []uint64 {
	p.open('[', what)
	var out []uint64
	for p.More() {
		if len(out) == limit {
			fail("%s has more than %d numbers in its %s", what, limit, field)
		}
		t := p.token()
		text, _ := t.(json.Number)
		n, err := strconv.ParseUint(string(text), 10, 64)
		if err != nil {
			fail("%s has %v in its %s", what, t, field)
		}
		out = append(out, n)
	}
	p.token()
	return out
}

// assignData checks that the tensors cover the data exactly, and sets the data of each. It returns them by offset;
// empty tensors at the same offset keep the order of the header.
func assignData(entries []entry, data []byte) []Tensor {
	slices.SortStableFunc(entries, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.begin, b.begin), cmp.Compare(a.end, b.end))
	})
	tensors := make([]Tensor, len(entries))
	var at uint64
	for i, e := range entries {
		size, err := byteSize(e.DType, e.Shape)
		switch {
		case err != nil:
			fail("tensor %q: %v", e.Name, err)
		case e.begin != at:
			fail("tensor %q begins at %d and the data before it ends at %d", e.Name, e.begin, at)
		case e.end < e.begin || e.end-e.begin != size:
			fail("tensor %q has data_offsets [%d, %d] and its shape needs %d bytes", e.Name, e.begin, e.end, size)
		case e.end > uint64(len(data)):
			fail("tensor %q ends at %d of %d bytes of data; the file is truncated", e.Name, e.end, len(data))
		}
		e.Data = data[e.begin:e.end:e.end]
		tensors[i], at = e.Tensor, e.end
	}
	if at != uint64(len(data)) {
		fail("the tensors end at %d of %d bytes of data", at, len(data))
	}
	return tensors
}
