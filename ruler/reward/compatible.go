package reward

import (
	"strings"
	"unicode"
)

// compatible replaces common compatibility forms of Unicode by the characters that they stand for, most of what NFKC
// does to Latin text. Characters without a shape, such as a zero-width space, are dropped.
func compatible(text string) string {
	var b strings.Builder
	last := rune(-1) // not written yet
	for _, r := range text {
		if last >= 0 {
			if composed, ok := composedForms[[2]rune{last, r}]; ok {
				last = composed
				continue
			}
			b.WriteRune(last)
		}
		last = -1
		switch plain, ok := plainForms[r]; {
		case ok:
			b.WriteString(plain)
		case r >= '！' && r <= '～': // full-width ASCII
			last = r - '！' + '!'
		case unicode.IsSpace(r):
			last = ' '
		case !unicode.Is(unicode.Cf, r):
			last = r
		}
	}
	if last >= 0 {
		b.WriteRune(last)
	}
	return b.String()
}

// plainForms are characters that stand for others.
var plainForms = func() map[rune]string {
	forms := map[rune]string{'ﬀ': "ff", 'ﬁ': "fi", 'ﬂ': "fl", 'ﬃ': "ffi", 'ﬄ': "ffl", 'ﬅ': "st", 'ﬆ': "st", '…': "..."}
	for i, r := range []rune("⁰¹²³⁴⁵⁶⁷⁸⁹") {
		forms[r] = string(rune('0' + i))
	}
	for i := range rune(10) {
		forms['₀'+i] = string('0' + i)
	}
	return forms
}()

// composedForms are the letters that a letter and a combining accent make.
var composedForms = func() map[[2]rune]rune {
	forms := map[[2]rune]rune{}
	for accent, pairs := range map[rune]string{
		'\u0300': "AÀEÈIÌOÒUÙaàeèiìoòuù",
		'\u0301': "AÁCĆEÉIÍNŃOÓSŚUÚYÝZŹaácćeéiínńoósśuúyýzź",
		'\u0302': "AÂEÊIÎOÔUÛaâeêiîoôuû",
		'\u0303': "AÃNÑOÕaãnñoõ",
		'\u0306': "AĂGĞaăgğ",
		'\u0307': "EĖIİZŻeėzż",
		'\u0308': "AÄEËIÏOÖUÜYŸaäeëiïoöuüyÿ",
		'\u030a': "AÅUŮaåuů",
		'\u030b': "OŐUŰoőuű",
		'\u030c': "CČDĎEĚNŇRŘSŠTŤZŽcčdďeěnňrřsštťzž",
		'\u0327': "CÇSŞcçsş",
		'\u0328': "AĄEĘaąeę",
	} {
		letters := []rune(pairs)
		for i := 0; i < len(letters); i += 2 {
			forms[[2]rune{letters[i], accent}] = letters[i+1]
		}
	}
	return forms
}()
