package tokenizer

import "strings"

// alphabet spells each byte as one printable character, as GPT-2 does: printable bytes of Latin-1 stand for themselves,
// the others follow from U+0100 on, in order. A space becomes "Ġ".
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

// bytesOf is the inverse of alphabet; -1 for characters that are not in it.
var bytesOf = func() (out [0x144]int16) {
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
	if int(r) >= len(bytesOf) || r < 0 || bytesOf[r] < 0 {
		return 0, false
	}
	return byte(bytesOf[r]), true
}

func printable(b int) bool {
	return '!' <= b && b <= '~' || 0xA1 <= b && b <= 0xAC || 0xAE <= b
}

// unspell returns the bytes that a token stands for. ok is false when a character is not in the alphabet.
func unspell(token string) (text string, ok bool) {
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

// spell returns bytes in the alphabet.
func spell(text string) string {
	out := make([]rune, 0, len(text))
	for i := range len(text) {
		out = append(out, alphabet[text[i]])
	}
	return string(out)
}

// decoded is what a token of a byte-level model becomes: the bytes that it spells, or itself when it is not in the
// alphabet.
func decoded(token string) string {
	if text, ok := unspell(token); ok {
		return text
	}
	return strings.Clone(token)
}
