package agents

import (
	"math"
	"strings"
	"unicode"
)

// alikeAbove is the similarity from which two texts ask for the same.
const alikeAbove = 0.8

// Alike tells whether two texts are duplicates: the same words but for case and punctuation, or a [Similarity] of 0.8
// and more. Texts whose words with digits differ, such as ids and dates, are not: they ask for different things.
func Alike(a, b string) bool {
	x, y := words(a), words(b)
	for w := range x {
		if hasDigit(w) && !y[w] {
			return false
		}
	}
	for w := range y {
		if hasDigit(w) && !x[w] {
			return false
		}
	}
	return jaccard(x, y) >= alikeAbove
}

// Similarity is the share of words that two texts have in common (Jaccard):
//
//	|A ∩ B| / |A ∪ B|
//
// where A and B are their sets of words, in lower case. It is 1 for two texts without words.
func Similarity(a, b string) float64 { return jaccard(words(a), words(b)) }

// Spread is how much texts differ: 1 minus the mean over the texts of the similarity to the most similar other one. It
// is 0 when each has a copy, and NaN for fewer than two.
func Spread(texts []string) float64 {
	if len(texts) < 2 {
		return math.NaN()
	}
	sets := make([]map[string]bool, len(texts))
	for i, text := range texts {
		sets[i] = words(text)
	}
	sum := 0.0
	for i := range sets {
		closest := 0.0
		for j := range sets {
			if i != j {
				closest = max(closest, jaccard(sets[i], sets[j]))
			}
		}
		sum += closest
	}
	return 1 - sum/float64(len(texts))
}

func words(text string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsSymbol(r)
	}) {
		set[w] = true
	}
	return set
}

func hasDigit(w string) bool { return strings.ContainsFunc(w, unicode.IsDigit) }

func jaccard(a, b map[string]bool) float64 {
	both := 0
	for w := range a {
		if b[w] {
			both++
		}
	}
	all := len(a) + len(b) - both
	if all == 0 {
		return 1
	}
	return float64(both) / float64(all)
}
