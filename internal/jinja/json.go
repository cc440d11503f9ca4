package jinja

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"slices"
	"strconv"
	"strings"
)

// maxJSONDepth bounds the nesting of JSON.
const maxJSONDepth = 150

// FromJSON parses JSON as Python's json.loads does: an object is a *Dict with its keys in order, the last of repeated
// keys counts, and numbers without point and exponent are ints.
func FromJSON(data []byte) (v any, err error) {
	defer catch(&err, nil)
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	v = jsonReader{d}.value(maxJSONDepth)
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("jinja: there is text after the JSON value")
	}
	return v, nil
}

// jsonReader reads JSON. Its methods panic with a failure.
type jsonReader struct{ *json.Decoder }

func (d jsonReader) fail(err error) { panic(failure{fmt.Errorf("jinja: %w", err)}) }

func (d jsonReader) token() json.Token {
	t, err := d.Token()
	if err != nil {
		d.fail(err)
	}
	return t
}

func (d jsonReader) value(depth int) any {
	t := d.token()
	if depth == 0 {
		d.fail(fmt.Errorf("JSON nests more than %d deep", maxJSONDepth))
	}
	switch t := t.(type) {
	case json.Delim:
		if t == '[' {
			out := newList()
			for d.More() {
				out.items = append(out.items, d.value(depth-1))
			}
			d.token()
			return out
		}
		out := NewDict()
		for d.More() {
			key := d.token()
			out.insert(key, key, d.value(depth-1))
		}
		d.token()
		return out
	case json.Number:
		s := string(t)
		if strings.ContainsAny(s, ".eE") {
			f, _ := strconv.ParseFloat(s, 64) // infinite if it is too large
			return f
		}
		if len(s) > maxIntDigits { // before parsing, which takes quadratic time
			d.fail(fmt.Errorf("number of %d digits", len(s)))
		}
		n, _ := new(big.Int).SetString(s, 10)
		return normInt(n)
	}
	return t
}

// tojsonFilter is json.dumps with the arguments that transformers gives the filter.
func (r *run) tojsonFilter(v any, a arg) any {
	args := a.bind("tojson", optional("ensure_ascii", false), optional("indent", nil), optional("separators", nil),
		optional("sort_keys", false))
	w := &jsonWriter{w: &writer{r: r}, ascii: truth(args[0]), sort: truth(args[3]), item: ", ", key: ": "}
	if args[1] != nil {
		w.item, w.lines = ",", true
		if s, ok := text(args[1]); ok {
			w.indent = s
		} else {
			w.indent, _ = text(r.operate("*", " ", args[1]))
		}
	}
	if args[2] != nil {
		parts := r.unpack(args[2], 2)
		w.item, w.key = textArg(parts[0]), textArg(parts[1])
	}
	w.value(v, "\n")
	return w.w.b.String()
}

// jsonWriter writes values as json.dumps does.
type jsonWriter struct {
	w           *writer
	ascii, sort bool
	lines       bool // each item is on its own line
	indent      string
	item, key   string // separators
}

// value writes a value; line is a line break and the current indentation.
func (j *jsonWriter) value(v any, line string) {
	switch v := v.(type) {
	case string:
		j.text(v)
	case markup:
		j.text(string(v))
	case *list:
		j.items("[]", len(v.items), line, func(i int) { j.value(v.items[i], line+j.indent) })
	case *Dict:
		j.dict(v, line)
	default:
		s, ok := jsonScalar(v)
		if !ok {
			raise(typeError, "Object of type %s is not JSON serializable", typeName(v))
		}
		j.w.write(s)
	}
}

// jsonScalar returns a number, a bool or None in JSON.
func jsonScalar(v any) (s string, ok bool) {
	switch v := v.(type) {
	case nil:
		return "null", true
	case bool:
		return strconv.FormatBool(v), true
	case int:
		return strconv.Itoa(v), true
	case *big.Int:
		return intText(v), true
	case float64:
		s = floatText(v)
		return cmp.Or(map[string]string{"inf": "Infinity", "-inf": "-Infinity", "nan": "NaN"}[s], s), true
	}
	return "", false
}

// items writes n items in brackets, each with write.
func (j *jsonWriter) items(brackets string, n int, line string, write func(i int)) {
	if n == 0 {
		j.w.write(brackets)
		return
	}
	defer j.w.r.enter()()
	newline := func(indent string) {
		if j.lines {
			j.w.write(line)
			j.w.write(indent)
		}
	}
	j.w.write(brackets[:1])
	for i := range n {
		if i > 0 {
			j.w.write(j.item)
		}
		newline(j.indent)
		write(i)
	}
	newline("")
	j.w.write(brackets[1:])
}

func (j *jsonWriter) dict(d *Dict, line string) {
	pairs := d.pairs()
	if j.sort {
		pairs = j.w.r.sorted(pairs, func(p any) any { return p }, false)
	}
	j.items("{}", len(pairs), line, func(i int) {
		pair := pairs[i].(*list).items
		key, ok := text(pair[0])
		if !ok {
			if key, ok = jsonScalar(pair[0]); !ok {
				raise(typeError, "keys must be str, int, float, bool or None, not %s", typeName(pair[0]))
			}
		}
		j.text(key)
		j.w.write(j.key)
		j.value(pair[1], line+j.indent)
	})
}

var jsonEscapes = map[rune]string{'"': `\"`, '\\': `\\`, '\n': `\n`, '\r': `\r`, '\t': `\t`, '\f': `\f`, '\b': `\b`}

func (j *jsonWriter) text(s string) {
	plain := func(c rune) bool { return c >= 0x20 && c != '"' && c != '\\' && (c < 0x7f || !j.ascii) }
	if !slices.ContainsFunc([]byte(s), func(c byte) bool { return !plain(rune(c)) }) {
		j.w.write(`"` + s + `"`)
		return
	}
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range s {
		switch e, ok := jsonEscapes[c]; {
		case ok:
			b.WriteString(e)
		case plain(c):
			b.WriteRune(c)
		case c > 0xffff:
			c -= 0x10000
			fmt.Fprintf(&b, `\u%04x\u%04x`, 0xd800+c>>10, 0xdc00+c&0x3ff)
		default:
			fmt.Fprintf(&b, `\u%04x`, c)
		}
	}
	b.WriteByte('"')
	j.w.write(b.String())
}
