package reward

import (
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
	if bare := strings.Fields(withoutPunctuation(strings.Join(words, " "))); len(bare) > 0 {
		words = bare
	}
	var kept []string
	for _, word := range words {
		if word != "a" && word != "an" && word != "the" {
			kept = append(kept, word)
		}
	}
	if len(kept) > 0 {
		words = kept
	}
	return strings.Join(words, " ")
}

func withoutPunctuation(text string) string {
	return compatible(strings.Map(func(r rune) rune {
		if isPunctuation(r) {
			return -1
		}
		return r
	}, text))
}

// isPunctuation reports punctuation, and the symbols of ASCII, which SQuAD drops too.
func isPunctuation(r rune) bool {
	return unicode.IsPunct(r) || r < unicode.MaxASCII && unicode.IsSymbol(r)
}

// ExactMatch returns 1 when answer is one of the references after [Normalize], else 0.
func ExactMatch(answer string, want ...string) float64 {
	got := Normalize(answer)
	for _, w := range want {
		if got != "" && got == Normalize(w) {
			return 1
		}
	}
	return 0
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
		best = max(best, wordF1(got, strings.Fields(Normalize(w))))
	}
	return best
}

// wordF1 is F1 of two lists of words: 2 common / (a + b).
func wordF1(got, want []string) float64 {
	left := map[string]int{}
	for _, word := range want {
		left[word]++
	}
	common := 0
	for _, word := range got {
		if left[word] > 0 {
			left[word]--
			common++
		}
	}
	if common == 0 {
		return 0
	}
	return 2 * float64(common) / float64(len(got)+len(want))
}
