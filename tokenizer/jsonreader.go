package tokenizer

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// jsonReader parses the large sections of tokenizer.json: encoding/json takes a second for 150,000 tokens.
type jsonReader struct {
	data string
	at   int
	err  error // the first error; nothing is read after it
}

func (r *jsonReader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format+" at byte %d", append(args, r.at)...)
	}
	r.at = len(r.data)
}

// peek skips white space and returns the next byte; 0 at the end.
func (r *jsonReader) peek() byte {
	for r.at < len(r.data) {
		switch c := r.data[r.at]; c {
		case ' ', '\t', '\n', '\r':
			r.at++
		default:
			return c
		}
	}
	return 0
}

// take consumes a byte if it comes next.
func (r *jsonReader) take(c byte) bool {
	if r.peek() != c || r.at >= len(r.data) {
		return false
	}
	r.at++
	return true
}

func (r *jsonReader) want(c byte) {
	if !r.take(c) {
		r.fail("%q expected", c)
	}
}

// members calls yield for each member of an object; yield must read the value.
func (r *jsonReader) members(yield func(key string)) {
	r.want('{')
	if r.take('}') {
		return
	}
	for r.err == nil {
		key := r.text()
		r.want(':')
		if r.err != nil {
			return
		}
		yield(key)
		if !r.take(',') {
			r.want('}')
			return
		}
	}
}

// elements calls yield for each element of an array; yield must read it.
func (r *jsonReader) elements(yield func()) {
	r.want('[')
	if r.take(']') {
		return
	}
	for r.err == nil {
		yield()
		if !r.take(',') {
			r.want(']')
			return
		}
	}
}

// text reads a string. It may share the memory of the data. Invalid UTF-8 becomes U+FFFD.
func (r *jsonReader) text() string {
	r.want('"')
	start, plain := r.at, true
	for ; r.at < len(r.data); r.at++ {
		switch c := r.data[r.at]; {
		case c == '"':
			raw := r.data[start:r.at]
			r.at++
			if plain && utf8.ValidString(raw) {
				return raw
			}
			return r.unescaped(raw)
		case c == '\\':
			plain = false
			r.at++
		case c < ' ':
			r.fail("a string has a control character")
			return ""
		}
	}
	r.fail("a string has no end")
	return ""
}

func (r *jsonReader) unescaped(raw string) string {
	var out strings.Builder
	out.Grow(len(raw))
	for raw != "" {
		if raw[0] != '\\' {
			c, n := utf8.DecodeRuneInString(raw)
			out.WriteRune(c)
			raw = raw[n:]
			continue
		}
		if i := strings.IndexByte(`"\/bfnrt`, raw[1]); i >= 0 {
			out.WriteByte("\"\\/\b\f\n\r\t"[i])
			raw = raw[2:]
			continue
		}
		c, n := escapedRune(raw)
		if n == 0 {
			r.fail("escape %q is not known", raw[:2])
			return ""
		}
		out.WriteRune(c)
		raw = raw[n:]
	}
	return out.String()
}

// escapedRune parses \uXXXX, or a pair of surrogates, and returns its length; 0 if it is neither.
func escapedRune(raw string) (rune, int) {
	unit := func(s string) (rune, bool) {
		if len(s) < 6 || s[:2] != `\u` {
			return 0, false
		}
		n, err := strconv.ParseUint(s[2:6], 16, 16)
		return rune(n), err == nil
	}
	first, ok := unit(raw)
	if !ok {
		return 0, 0
	}
	if second, ok := unit(raw[6:]); ok && utf16.IsSurrogate(first) {
		if c := utf16.DecodeRune(first, second); c != utf8.RuneError {
			return c, 12
		}
	}
	return first, 6 // WriteRune writes a lone surrogate as U+FFFD
}

// number reads a number, as [serdeNumber] does.
func (r *jsonReader) number() float64 {
	r.peek()
	start := r.at
	for r.at < len(r.data) && strings.IndexByte("+-.0123456789eE", r.data[r.at]) >= 0 {
		r.at++
	}
	n, ok := serdeNumber(r.data[start:r.at])
	if !ok {
		r.fail("a number expected")
	}
	return n
}

// id reads an id.
func (r *jsonReader) id() int32 {
	r.peek()
	start, n := r.at, int64(0)
	for r.at < len(r.data) && '0' <= r.data[r.at] && r.data[r.at] <= '9' && n < 1<<31 {
		n = 10*n + int64(r.data[r.at]-'0')
		r.at++
	}
	if r.at == start || n > maxID {
		r.fail("an id from 0 to %d expected", maxID)
		return 0
	}
	return int32(n)
}

// skip skips the next value. It scans only brackets and strings: the caller validates the value.
func (r *jsonReader) skip() {
	for depth := 0; r.at < len(r.data); {
		c := r.data[r.at]
		switch {
		case c == '"':
			r.skipString()
		case depth == 0 && (c == '}' || c == ']' || c == ','): // of what is around the value
			return
		case c == '{' || c == '[':
			depth++
			r.at++
		case c == '}' || c == ']':
			depth--
			r.at++
		default:
			r.at++
		}
		if depth == 0 && (c == '}' || c == ']' || c == '"') {
			return
		}
	}
}

// skipString skips the string that begins here.
func (r *jsonReader) skipString() {
	start := r.at + 1
	for at := start; ; {
		n := strings.IndexByte(r.data[at:], '"')
		if n < 0 {
			r.at = len(r.data)
			return
		}
		at += n + 1
		before := r.data[start : at-1]
		if slashes := len(before) - len(strings.TrimRight(before, `\`)); slashes%2 == 0 {
			r.at = at
			return
		}
	}
}

// end returns the first error, with a prefix. It is an error if anything follows.
func (r *jsonReader) end(prefix string) error {
	if r.err == nil && r.peek() != 0 {
		r.err = errors.New("there is text after the JSON value")
	}
	if r.err != nil {
		return fmt.Errorf("%s%w", prefix, r.err)
	}
	return nil
}

// object returns the texts of the members of an object.
func object(data string) (map[string]string, error) {
	r := &jsonReader{data: data}
	out := map[string]string{}
	r.members(func(key string) {
		if _, twice := out[key]; twice {
			r.fail("%q is repeated", key)
		}
		r.peek()
		start := r.at
		r.skip()
		value := strings.TrimSpace(r.data[start:r.at])
		if value == "" {
			r.fail("a value expected")
		}
		out[key] = value
	})
	return out, r.end("")
}
