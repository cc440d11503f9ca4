package tokenizer

import (
	"strings"
	"unicode"
)

// lowercase maps each character independently of its context: a sigma at the end of a word is like any other.
func lowercase(p piece) piece {
	if strings.IndexFunc(p.text, func(r rune) bool { return r == 0x130 || lower(r) != r }) < 0 {
		return p
	}
	var changes []change
	for _, r := range p.text {
		if r == 0x130 { // İ becomes an i and the dot above
			changes = append(changes, change{'i', 0}, change{0x307, 1})
			continue
		}
		changes = append(changes, change{lower(r), 0})
	}
	return p.rewrite(changes)
}

// lower returns the lower case of Unicode 17.
func lower(r rune) rune {
	switch {
	case r == 0xa7cb:
		return 0x264
	case r == 0xa7dc:
		return 0x19b
	case r == 0x1c89, r == 0xa7cc, r == 0xa7ce, r == 0xa7d2, r == 0xa7d4, r == 0xa7da:
		return r + 1
	case 0x10d50 <= r && r <= 0x10d65:
		return r + 0x20
	case 0x16ea0 <= r && r <= 0x16eb8:
		return r + 0x1b
	}
	return unicode.ToLower(r)
}
