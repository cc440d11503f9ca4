package main

// size estimates the tokens of a text from below: as if the vocabulary had each of its words, and each group of other
// marks, as one token. Digits count one by one, and a space belongs to what follows unless that is a digit.
func size(text string) int {
	n := 0
	last := kindOfNothing
	for i := range len(text) {
		kind := kindOfByte(text[i])
		if kind == kindOfDigit || kind == kindOfSpace || kind != last {
			n++
		}
		if last == kindOfSpace && text[i-1] == ' ' && (kind == kindOfLetter || kind == kindOfMark) {
			n-- // the space was counted
		}
		last = kind
	}
	return n
}

// The kinds of characters that a vocabulary keeps apart.
const (
	kindOfNothing = iota
	kindOfLetter
	kindOfDigit
	kindOfSpace
	kindOfMark
)

func kindOfByte(c byte) int {
	switch {
	case 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z':
		return kindOfLetter
	case '0' <= c && c <= '9':
		return kindOfDigit
	case c == ' ' || c == '\n':
		return kindOfSpace
	}
	return kindOfMark
}
