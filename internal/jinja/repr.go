package jinja

import (
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// str is str(v).
func (r *run) str(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case markup:
		return string(v)
	case *undefined:
		return ""
	}
	return r.repr(v)
}

// repr is repr(v).
func (r *run) repr(v any) string {
	w := &writer{r: r}
	w.value(v)
	return w.b.String()
}

// writer writes the repr of values.
type writer struct {
	r    *run
	b    strings.Builder
	open []*namespace // those being written
}

func (w *writer) write(s string) {
	w.r.charge(len(s))
	if w.b.Len()+len(s) > w.r.limits.Output {
		w.r.size(w.r.limits.Output + 1)
	}
	w.b.WriteString(s)
}

func (w *writer) value(v any) {
	switch v := v.(type) {
	case nil:
		w.write("None")
	case bool:
		w.write(map[bool]string{true: "True", false: "False"}[v])
	case int:
		w.write(strconv.Itoa(v))
	case *big.Int:
		w.write(intText(v))
	case float64:
		w.write(floatText(v))
	case string:
		w.write(reprString(v))
	case markup:
		w.write("Markup(" + reprString(string(v)) + ")")
	case *list:
		switch {
		case !v.tuple:
			w.items("[", v.items, "]")
		case len(v.items) == 1:
			w.items("(", v.items, ",)")
		default:
			w.items("(", v.items, ")")
		}
	case *Dict:
		w.dict(v)
	case *undefined:
		w.write("Undefined")
	case *view:
		w.items("dict_"+v.what+"([", v.items(), "])")
	case span:
		if v.step == 1 {
			w.write(fmt.Sprintf("range(%d, %d)", v.start, v.stop))
		} else {
			w.write(fmt.Sprintf("range(%d, %d, %d)", v.start, v.stop, v.step))
		}
	case *namespace:
		w.namespace(v)
	case *macro:
		name := "anonymous"
		if v.code.name != "" {
			name = reprString(v.code.name)
		}
		w.write("<Macro " + name + ">")
	case *loop:
		w.write(fmt.Sprintf("<LoopContext %d/%d>", v.index0+1, v.length()))
	case slice:
		w.items("slice(", []any{v.start, v.stop, v.step}, ")")
	default:
		w.write("<" + typeName(v) + ">")
	}
}

func (w *writer) items(open string, items []any, end string) {
	defer w.r.enter()()
	w.write(open)
	for i, item := range items {
		if i > 0 {
			w.write(", ")
		}
		w.value(item)
	}
	w.write(end)
}

func (w *writer) dict(d *Dict) {
	defer w.r.enter()()
	w.write("{")
	for i, k := range d.keys {
		if i > 0 {
			w.write(", ")
		}
		w.value(k)
		w.write(": ")
		w.value(d.values[i])
	}
	w.write("}")
}

// namespace writes a namespace, which may contain itself.
func (w *writer) namespace(n *namespace) {
	if slices.Contains(w.open, n) {
		w.write("<Namespace {...}>")
		return
	}
	w.open = append(w.open, n)
	w.write("<Namespace ")
	w.dict(n.attrs)
	w.write(">")
	w.open = w.open[:len(w.open)-1]
}

// reprString is repr(s): in single quotes unless s has only those.
func reprString(s string) string {
	quote := '\''
	if strings.Contains(s, "'") && !strings.Contains(s, `"`) {
		quote = '"'
	}
	var b strings.Builder
	b.WriteRune(quote)
	for _, c := range s {
		switch {
		case c == quote || c == '\\':
			b.WriteString(`\` + string(c))
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\r':
			b.WriteString(`\r`)
		case c == '\t':
			b.WriteString(`\t`)
		case c != ' ' && !unicode.IsPrint(c):
			writeEscape(&b, c)
		default:
			b.WriteRune(c)
		}
	}
	b.WriteRune(quote)
	return b.String()
}

// writeEscape writes a code point as Python's escapes \x, \u and \U.
func writeEscape(b *strings.Builder, c rune) {
	switch {
	case c < 0x100:
		fmt.Fprintf(b, `\x%02x`, c)
	case c < 0x10000:
		fmt.Fprintf(b, `\u%04x`, c)
	default:
		fmt.Fprintf(b, `\U%08x`, c)
	}
}

// asciiRepr is ascii(v), given repr(v).
func asciiRepr(s string) string {
	var b strings.Builder
	for _, c := range s {
		if c < 0x80 {
			b.WriteRune(c)
		} else {
			writeEscape(&b, c)
		}
	}
	return b.String()
}
