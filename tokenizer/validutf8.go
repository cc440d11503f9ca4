package tokenizer

import "unicode/utf8"

// appendValid appends b to dst as valid UTF-8, and returns the rest of b: the first bytes of an incomplete rune. Each
// longest sequence of bytes that begins a rune but is not continued becomes one U+FFFD, as Unicode recommends
// ("substitution of maximal subparts") and as Rust and Python do.
func appendValid(dst, b []byte) (text, rest []byte) {
	for len(b) > 0 {
		if r, n := utf8.DecodeRune(b); r != utf8.RuneError || n > 1 {
			dst, b = append(dst, b[:n]...), b[n:]
			continue
		}
		n := subpart(b)
		if n == len(b) && !utf8.FullRune(b) {
			return dst, b
		}
		dst, b = utf8.AppendRune(dst, utf8.RuneError), b[n:]
	}
	return dst, nil
}

// subpart returns the length of the longest prefix of b, which does not begin with a rune, that could begin one.
func subpart(b []byte) int {
	n := 1
	for n < len(b) && !utf8.FullRune(b[:n+1]) {
		n++
	}
	return n
}
