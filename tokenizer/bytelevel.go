package tokenizer

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

// byteOf is the inverse of alphabet.
var byteOf = func() map[rune]byte {
	m := make(map[rune]byte, 256)
	for b, r := range alphabet {
		m[r] = byte(b)
	}
	return m
}()

func printable(b int) bool {
	return '!' <= b && b <= '~' || 0xA1 <= b && b <= 0xAC || 0xAE <= b
}

// unspell returns the bytes that a token stands for. ok is false when a character is not in the alphabet.
func unspell(token string) (text string, ok bool) {
	out := make([]byte, 0, len(token))
	for _, r := range token {
		b, known := byteOf[r]
		if !known {
			return "", false
		}
		out = append(out, b)
	}
	return string(out), true
}

// inUTF8 reports whether a byte occurs in valid UTF-8.
func inUTF8(b byte) bool { return b != 0xC0 && b != 0xC1 && b <= 0xF4 }
