package jinja

import (
	"fmt"
	"html"
	"strings"
)

// escape replaces the special characters of HTML by references.
func (r *run) escape(s string) string {
	out := html.EscapeString(s)
	r.size(len(out))
	return out
}

func (r *run) escapeValue(v any) any {
	if m, ok := v.(markup); ok {
		return m
	}
	return markup(r.escape(r.str(v)))
}

// stripTags removes comments and tags, and collapses white space.
func (r *run) stripTags(v any) any {
	s := cutAll(cutAll(r.str(v), "<!--", "-->"), "<", ">")
	return html.UnescapeString(strings.Join(splitSpace(s, -1), " "))
}

// cutAll removes everything from each open to the next end, both included.
func cutAll(s, open, end string) string {
	var b strings.Builder
	for {
		at := strings.Index(s, open)
		if at < 0 {
			return b.String() + s
		}
		n := strings.Index(s[at:], end)
		if n < 0 {
			return b.String() + s
		}
		b.WriteString(s[:at])
		s = s[at+n+len(end):]
	}
}

func (r *run) xmlattrFilter(v any, a arg) any {
	space := a.bind("xmlattr", optional("autospace", true))[0]
	d := dictOf(v)
	var parts []string
	for i, k := range d.keys {
		value := d.values[i]
		if _, ok := value.(*undefined); ok || value == nil {
			continue
		}
		key := textArg(k)
		if strings.ContainsAny(key, " \t\n\r\f\v/>=") {
			raise(valueError, "Invalid character in attribute name: %s", reprString(key))
		}
		parts = append(parts, r.escape(key)+`="`+r.str(r.escapeValue(value))+`"`)
	}
	out := r.joined(parts, " ")
	if truth(space) && out != "" {
		out = " " + out
	}
	return out
}

func (r *run) urlEncode(v any) any {
	if _, ok := text(v); ok || !iterable(v) {
		return r.urlQuote(r.str(v), "/")
	}
	if d, ok := v.(*Dict); ok {
		v = &list{items: d.pairs()}
	}
	var parts []string
	for _, item := range r.items(v) {
		pair := r.unpack(item, 2)
		key, value := r.urlQuote(r.str(pair[0]), ""), r.urlQuote(r.str(pair[1]), "")
		parts = append(parts, strings.ReplaceAll(key, "%20", "+")+"="+strings.ReplaceAll(value, "%20", "+"))
	}
	return r.joined(parts, "&")
}

func (r *run) urlQuote(s, safe string) string {
	var b strings.Builder
	for i := range len(s) {
		c := s[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || isDigit(c) || strings.IndexByte("_.-~"+safe, c) >= 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	r.size(b.Len())
	return b.String()
}
