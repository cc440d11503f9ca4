package tokenizer

import (
	"strings"
	"unicode/utf8"
)

// alphabet is the byte-level alphabet of GPT-2: a printable character for each byte. Printable bytes of Latin-1 are
// themselves, the others follow from U+0100 on, in order. A space is "Ġ".
var alphabet = func() (a [256]rune) {
	next := rune(256)
	for b := range a {
		if printable(b) {
			a[b] = rune(b)
			continue
		}
		a[b] = next
		next++
	}
	return a
}()

// alphabetBytes is the inverse of alphabet: the byte of each character, or -1.
var alphabetBytes = func() (out [0x144]int16) {
	for i := range out {
		out[i] = -1
	}
	for b, r := range alphabet {
		out[r] = int16(b)
	}
	return out
}()

// byteOf returns the byte that a character of the alphabet stands for.
func byteOf(r rune) (b byte, ok bool) {
	if int(r) >= len(alphabetBytes) || r < 0 || alphabetBytes[r] < 0 {
		return 0, false
	}
	return byte(alphabetBytes[r]), true
}

func printable(b int) bool {
	return '!' <= b && b <= '~' || 0xA1 <= b && b <= 0xAC || 0xAE <= b
}

// fromByteLevel returns the bytes of a token. ok is false if a character is not in the alphabet.
func fromByteLevel(token string) (text string, ok bool) {
	out := make([]byte, 0, len(token))
	for _, r := range token {
		b, known := byteOf(r)
		if !known {
			return "", false
		}
		out = append(out, b)
	}
	return string(out), true
}

// toByteLevel returns bytes in the alphabet.
func toByteLevel(text string) string {
	out := make([]rune, 0, len(text))
	for i := range len(text) {
		out = append(out, alphabet[text[i]])
	}
	return string(out)
}

// byteLevelText is the text of a token of a byte-level model: its bytes, or the token itself if it is not in the
// alphabet.
func byteLevelText(token string) string {
	if text, ok := fromByteLevel(token); ok {
		return text
	}
	return strings.Clone(token)
}

// appendValid appends b to dst as valid UTF-8, and returns the rest of b: the first bytes of an incomplete rune. Each
// longest sequence of bytes that begins a rune but is not continued becomes one U+FFFD, as Unicode recommends
// ("substitution of maximal subparts") and as Rust and Python do.
func appendValid(dst, b []byte) (text, rest []byte) {
	for len(b) > 0 {
		if r, n := utf8.DecodeRune(b); r != utf8.RuneError || n > 1 {
			dst, b = append(dst, b[:n]...), b[n:]
			continue
		}
		n := 1 // the length of the longest prefix of b that could begin a rune
		for n < len(b) && !utf8.FullRune(b[:n+1]) {
			n++
		}
		if n == len(b) && !utf8.FullRune(b) {
			return dst, b
		}
		dst, b = utf8.AppendRune(dst, utf8.RuneError), b[n:]
	}
	return dst, nil
}
