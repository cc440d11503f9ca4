package jinja

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/language"
)

// isSpace is str.isspace for one character.
func isSpace(c rune) bool {
	return unicode.IsSpace(c) || c >= 0x1c && c <= 0x1f
}

// isLineEnd reports whether str.splitlines ends a line at a character.
func isLineEnd(c rune) bool {
	switch c {
	case '\n', '\r', '\v', '\f', 0x1c, 0x1d, 0x1e, 0x85, 0x2028, 0x2029:
		return true
	}
	return false
}

// splitLines is str.splitlines.
func splitLines(s string, keep bool) []string {
	var out []string
	for s != "" {
		at := strings.IndexFunc(s, isLineEnd)
		if at < 0 {
			return append(out, s)
		}
		_, n := utf8.DecodeRuneInString(s[at:])
		if strings.HasPrefix(s[at:], "\r\n") {
			n = 2
		}
		line := s[:at]
		if keep {
			line = s[:at+n]
		}
		out = append(out, line)
		s = s[at+n:]
	}
	return out
}

// splitSpace is str.split without a separator, with at most limit splits; unlimited if limit is negative.
func splitSpace(s string, limit int) []string {
	var out []string
	for {
		s = strings.TrimLeftFunc(s, isSpace)
		at := strings.IndexFunc(s, isSpace)
		switch {
		case s == "":
			return out
		case at < 0 || len(out) == limit:
			return append(out, s)
		}
		out = append(out, s[:at])
		s = s[at:]
	}
}

// splitSpaceRight is str.rsplit without a separator.
func splitSpaceRight(s string, limit int) []string {
	var out []string
	for s = strings.TrimRightFunc(s, isSpace); s != ""; s = strings.TrimRightFunc(s, isSpace) {
		at := strings.LastIndexFunc(s, isSpace)
		if at < 0 || len(out) == limit {
			out = append(out, s)
			break
		}
		_, n := utf8.DecodeRuneInString(s[at:])
		out = append(out, s[at+n:])
		s = s[:at]
	}
	slices.Reverse(out)
	return out
}

// splitRight is str.rsplit with a separator.
func splitRight(s, sep string, limit int) []string {
	var out []string
	for limit != 0 {
		at := strings.LastIndex(s, sep)
		if at < 0 {
			break
		}
		out = append(out, s[at+len(sep):])
		s = s[:at]
		limit--
	}
	out = append(out, s)
	slices.Reverse(out)
	return out
}

// toUpper is str.upper, including characters whose upper case is several characters.
func toUpper(s string) string {
	if ascii(s) {
		return strings.ToUpper(s)
	}
	return cases.Upper(language.Und).String(s)
}

// toLower is str.lower, with the final sigma.
func toLower(s string) string {
	if ascii(s) {
		return strings.ToLower(s)
	}
	var b strings.Builder
	runes := []rune(s)
	for i, c := range runes {
		b.WriteString(lowerAt(runes, i, c))
	}
	return b.String()
}

func lowerAt(runes []rune, i int, c rune) string {
	switch c {
	case 'İ':
		return "i̇"
	case 'Σ':
		if isFinalSigma(runes, i) {
			return "ς"
		}
	}
	return string(unicode.ToLower(c))
}

// isFinalSigma reports whether the letter at i ends a word, by Unicode's rule Final_Sigma.
func isFinalSigma(runes []rune, i int) bool {
	before := i - 1
	for before >= 0 && caseIgnorable(runes[before]) {
		before--
	}
	after := i + 1
	for after < len(runes) && caseIgnorable(runes[after]) {
		after++
	}
	return before >= 0 && cased(runes[before]) && (after == len(runes) || !cased(runes[after]))
}

func caseIgnorable(c rune) bool {
	return unicode.In(c, unicode.Mn, unicode.Me, unicode.Cf, unicode.Lm, unicode.Sk) ||
		strings.ContainsRune("'.:·’‧︓﹒﹕＇．：", c)
}

func cased(c rune) bool {
	return unicode.IsUpper(c) || unicode.IsLower(c) || unicode.IsTitle(c) ||
		unicode.Is(unicode.Other_Lowercase, c) || unicode.Is(unicode.Other_Uppercase, c)
}

func isLower(c rune) bool { return unicode.IsLower(c) || unicode.Is(unicode.Other_Lowercase, c) }

func isUpper(c rune) bool { return unicode.IsUpper(c) || unicode.Is(unicode.Other_Uppercase, c) }

// titleCase returns the title case of a character.
func titleCase(c rune) string {
	if c < utf8.RuneSelf {
		return string(unicode.ToUpper(c))
	}
	return cases.Title(language.Und).String(string(c))
}

// caseFold is str.casefold.
func caseFold(s string) string {
	return strings.Map(func(c rune) rune {
		if unicode.Is(unicode.Cherokee, c) { // whose capitals came first: they are the folded letters
			return unicode.ToUpper(c)
		}
		return c
	}, cases.Fold().String(s))
}

func ascii(s string) bool {
	return !strings.ContainsFunc(s, func(c rune) bool { return c >= utf8.RuneSelf })
}

// capitalize is str.capitalize.
func capitalize(s string) string {
	var b strings.Builder
	runes := []rune(s)
	for i, c := range runes {
		if i == 0 {
			b.WriteString(titleCase(c))
		} else {
			b.WriteString(lowerAt(runes, i, c))
		}
	}
	return b.String()
}

// title is str.title.
func title(s string) string {
	var b strings.Builder
	runes := []rune(s)
	inWord := false
	for i, c := range runes {
		if inWord {
			b.WriteString(lowerAt(runes, i, c))
		} else {
			b.WriteString(titleCase(c))
		}
		inWord = cased(c)
	}
	return b.String()
}

// swapCase is str.swapcase.
func swapCase(s string) string {
	var b strings.Builder
	runes := []rune(s)
	for i, c := range runes {
		switch {
		case isUpper(c):
			b.WriteString(lowerAt(runes, i, c))
		case isLower(c):
			b.WriteString(toUpper(string(c)))
		default:
			b.WriteRune(c)
		}
	}
	return b.String()
}

// isTitle is str.istitle.
func isTitle(s string) bool {
	found, inWord := false, false
	for _, c := range s {
		switch {
		case isUpper(c) || unicode.IsTitle(c):
			if inWord {
				return false
			}
			found, inWord = true, true
		case isLower(c):
			if !inWord {
				return false
			}
			found = true
		default:
			inWord = false
		}
	}
	return found
}

// all reports whether s is not empty, and is holds for each of its characters.
func all(s string, is func(c rune) bool) bool {
	return s != "" && !strings.ContainsFunc(s, func(c rune) bool { return !is(c) })
}

// oneCase reports whether s has cased characters, but none that is title case or for which not holds.
func oneCase(s string, not func(c rune) bool) bool {
	found := false
	for _, c := range s {
		if not(c) || unicode.IsTitle(c) {
			return false
		}
		found = found || cased(c)
	}
	return found
}

// isDigitRune is str.isdigit for one character: decimal digits, and circled ones, superscripts and so on.
func isDigitRune(c rune) bool {
	if unicode.Is(unicode.Nd, c) {
		return true
	}
	switch {
	case c == 0xb2 || c == 0xb3 || c == 0xb9 || c >= 0x1369 && c <= 0x1371 || c == 0x19da,
		c == 0x2070, c >= 0x2074 && c <= 0x2079,
		c >= 0x2080 && c <= 0x2089, c >= 0x2460 && c <= 0x2468, c >= 0x2474 && c <= 0x247c, c >= 0x2488 && c <= 0x2490,
		c == 0x24ea, c >= 0x24f5 && c <= 0x24fd, c == 0x24ff, c >= 0x2776 && c <= 0x277e, c >= 0x2780 && c <= 0x2788,
		c >= 0x278a && c <= 0x2792, c >= 0x10a40 && c <= 0x10a43, c >= 0x10e60 && c <= 0x10e68, c >= 0x11052 && c <= 0x1105a,
		c >= 0x1f100 && c <= 0x1f10a:
		return true
	}
	return false
}

// isNumericRune is str.isnumeric for one character, except that of numeric ideographs it knows only the common ones.
func isNumericRune(c rune) bool {
	return unicode.In(c, unicode.N) || strings.ContainsRune("〇一二三四五六七八九十百千万億兆零壱弐参", c)
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
