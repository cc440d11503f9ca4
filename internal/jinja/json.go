package jinja

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
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
	if v, err = readJSON(d, maxJSONDepth); err != nil {
		return nil, fmt.Errorf("jinja: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("jinja: there is text after the JSON value")
	}
	return v, nil
}

func readJSON(d *json.Decoder, depth int) (any, error) {
	t, err := d.Token()
	if err != nil {
		return nil, err
	}
	if depth == 0 {
		return nil, fmt.Errorf("JSON nests more than %d deep", maxJSONDepth)
	}
	switch t := t.(type) {
	case json.Delim:
		if t == '[' {
			return readArray(d, depth)
		}
		return readObject(d, depth)
	case json.Number:
		return jsonNumber(string(t))
	}
	return t, nil
}

func readArray(d *json.Decoder, depth int) (any, error) {
	out := newList()
	for d.More() {
		v, err := readJSON(d, depth-1)
		if err != nil {
			return nil, err
		}
		out.items = append(out.items, v)
	}
	_, err := d.Token()
	return out, err
}

func readObject(d *json.Decoder, depth int) (any, error) {
	out := NewDict()
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, err
		}
		v, err := readJSON(d, depth-1)
		if err != nil {
			return nil, err
		}
		out.put(key, v)
	}
	_, err := d.Token()
	return out, err
}

func jsonNumber(s string) (any, error) {
	if !strings.ContainsAny(s, ".eE") {
		if len(s) > maxIntDigits { // before parsing, which takes quadratic time
			return nil, fmt.Errorf("number of %d digits", len(s))
		}
		n, ok := new(big.Int).SetString(s, 10)
		if !ok {
			return nil, fmt.Errorf("%q is not a number", s)
		}
		return normInt(n), nil
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil && !math.IsInf(f, 0) {
		return nil, err
	}
	return f, nil
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
	case nil:
		j.w.write("null")
	case bool:
		j.w.write(strconv.FormatBool(v))
	case int:
		j.w.write(strconv.Itoa(v))
	case *big.Int:
		j.w.write(intText(v))
	case float64:
		j.w.write(jsonFloat(v))
	case string:
		j.text(v)
	case markup:
		j.text(string(v))
	case *list:
		j.list(v.items, line)
	case *Dict:
		j.dict(v, line)
	default:
		raise(typeError, "Object of type %s is not JSON serializable", typeName(v))
	}
}

func jsonFloat(f float64) string {
	switch {
	case math.IsInf(f, 1):
		return "Infinity"
	case math.IsInf(f, -1):
		return "-Infinity"
	case math.IsNaN(f):
		return "NaN"
	}
	return floatText(f)
}

// between writes the separator before the i-th item, or, if i < 0, after the last.
func (j *jsonWriter) between(i int, line string) {
	if i > 0 {
		j.w.write(j.item)
	}
	if !j.lines {
		return
	}
	j.w.write(line)
	if i >= 0 {
		j.w.write(j.indent)
	}
}

func (j *jsonWriter) list(items []any, line string) {
	if len(items) == 0 {
		j.w.write("[]")
		return
	}
	defer j.w.r.enter()()
	j.w.write("[")
	for i, item := range items {
		j.between(i, line)
		j.value(item, line+j.indent)
	}
	j.between(-1, line)
	j.w.write("]")
}

func (j *jsonWriter) dict(d *Dict, line string) {
	if d.Len() == 0 {
		j.w.write("{}")
		return
	}
	defer j.w.r.enter()()
	pairs := d.pairs()
	if j.sort {
		pairs = j.w.r.sorted(pairs, func(p any) any { return p }, false)
	}
	j.w.write("{")
	for i, p := range pairs {
		pair := p.(*list).items
		j.between(i, line)
		j.text(j.keyText(pair[0]))
		j.w.write(j.key)
		j.value(pair[1], line+j.indent)
	}
	j.between(-1, line)
	j.w.write("}")
}

// keyText returns a key as a string.
func (j *jsonWriter) keyText(k any) string {
	switch k := k.(type) {
	case string:
		return k
	case markup:
		return string(k)
	case nil:
		return "null"
	case bool:
		return strconv.FormatBool(k)
	case int:
		return strconv.Itoa(k)
	case *big.Int:
		return intText(k)
	case float64:
		return jsonFloat(k)
	}
	raise(typeError, "keys must be str, int, float, bool or None, not %s", typeName(k))
	return ""
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
