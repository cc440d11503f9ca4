package reward

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// Normalize returns text as SQuAD compares it (Rajpurkar et al. 2016): in lower case, without punctuation and without
// the articles a, an and the, words separated by one space. Compatibility forms of Unicode are replaced as far as
// they are common: full-width characters, ligatures, superscript and subscript digits, Latin letters with a combining
// accent.
//
// Text that is nothing but punctuation or articles keeps them: "A" may be a choice, "+" an operator. Punctuation of
// numbers goes as well, so that "3.5" is "35": compare numbers with [Number] or [Math].
func Normalize(text string) string {
	words := strings.Fields(strings.ToLower(compatible(text)))
	noPunctuation := strings.Map(func(r rune) rune {
		if unicode.IsPunct(r) || r < unicode.MaxASCII && unicode.IsSymbol(r) { // SQuAD drops the symbols of ASCII too
			return -1
		}
		return r
	}, strings.Join(words, " "))
	// What punctuation stood between may be a letter and its accent.
	if bare := strings.Fields(compatible(noPunctuation)); len(bare) > 0 {
		words = bare
	}
	isArticle := func(word string) bool { return word == "a" || word == "an" || word == "the" }
	if kept := slices.DeleteFunc(slices.Clone(words), isArticle); len(kept) > 0 {
		words = kept
	}
	return strings.Join(words, " ")
}

// ExactMatch returns 1 when answer is one of the references after [Normalize], else 0.
func ExactMatch(answer string, want ...string) float64 {
	got := Normalize(answer)
	return score(got != "" && slices.ContainsFunc(want, func(w string) bool { return got == Normalize(w) }))
}

// F1 returns how much answer and the closest of the references have in common, as SQuAD does: with the words that are
// left by [Normalize], each as often as it occurs,
//
//	precision = common words / words of answer
//	recall    = common words / words of reference
//	F1        = 2 precision recall / (precision + recall)
//
// Words are what spaces separate, so that text without spaces is one word.
func F1(answer string, want ...string) float64 {
	got := strings.Fields(Normalize(answer))
	best := 0.0
	for _, w := range want {
		reference, left := strings.Fields(Normalize(w)), map[string]int{}
		for _, word := range reference {
			left[word]++
		}
		common := 0
		for _, word := range got {
			if left[word] > 0 {
				left[word]--
				common++
			}
		}
		if common > 0 {
			best = max(best, 2*float64(common)/float64(len(got)+len(reference)))
		}
	}
	return best
}

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

// Matches returns 1 when re matches somewhere in text, else 0. Anchor the pattern with \A and \z to match all of it.
func Matches(re *regexp.Regexp, text string) float64 {
	return score(re != nil && re.MatchString(text))
}

// LastMatch returns the first group of the last match of re in text, or all of the match where re has no group. ok is
// false when there is none. The last one is usually the answer: what stands before it is a draft.
func LastMatch(re *regexp.Regexp, text string) (found string, ok bool) {
	if re == nil {
		return "", false
	}
	for _, match := range re.FindAllStringSubmatch(text, -1) {
		found, ok = match[min(1, len(match)-1)], true
	}
	return found, ok
}
