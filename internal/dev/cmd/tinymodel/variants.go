package main

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"unicode"
)

// A word is cut into the same pieces wherever it stands: "cancel", "Cancel", " cancel" and " Cancel" differ in their
// first token only. So merges are learned from words in small letters without the space before them, and
// withVariants adds the same merges for a first letter that is a capital, and merges of a space or a newline with
// what a word begins or ends with. A byte-level BPE that is trained as usual cuts the four differently, and a model
// that has to find a word of a request in a tool's name has to learn each pair of spellings by itself.

// bare returns a word in small letters, without a space before and a newline after it. Only words of letters have
// variants.
func bare(word string) string {
	trimmed := strings.TrimSuffix(strings.TrimPrefix(word, " "), "\n")
	if trimmed == "" || strings.ContainsFunc(trimmed, func(r rune) bool { return !unicode.IsLetter(r) }) {
		return word
	}
	return strings.ToLower(trimmed)
}

// bareWords adds up the words that are the same but for their variants.
func bareWords(words []word) []word {
	counts := map[string]int{}
	for _, w := range words {
		counts[bare(w.text())] += w.count
	}
	var out []word
	for _, text := range slices.Sorted(maps.Keys(counts)) {
		out = append(out, word{byteIDs(text), counts[text]})
	}
	return out
}

// text returns a word that is not merged yet.
func (w word) text() string {
	b := make([]byte, len(w.ids))
	for i, id := range w.ids {
		b[i] = byte(id)
	}
	return string(b)
}

// tokenSet holds tokens and the merges that make them, in the order of their ranks.
type tokenSet struct {
	tokens []string
	byText map[string]int32
	merges []idPair
	ranks  map[idPair]int
}

func newTokenSet() *tokenSet {
	v := &tokenSet{byText: map[string]int32{}, ranks: map[idPair]int{}}
	for b := range 256 {
		v.token(string([]byte{byte(b)}))
	}
	return v
}

// token returns the id of a text, which it adds.
func (v *tokenSet) token(text string) int32 {
	id, ok := v.byText[text]
	if !ok {
		id = int32(len(v.tokens))
		v.tokens, v.byText[text] = append(v.tokens, text), id
	}
	return id
}

// merge adds a merge, behind all others.
func (v *tokenSet) merge(left, right string) {
	p := idPair{v.token(left), v.token(right)}
	if _, ok := v.ranks[p]; !ok {
		v.ranks[p] = len(v.merges)
		v.merges = append(v.merges, p)
		v.token(left + right)
	}
}

// cut returns the tokens of a word.
func (v *tokenSet) cut(text string) []int32 {
	ids := byteIDs(text)
	for {
		best := -1
		for i := 1; i < len(ids); i++ {
			rank, ok := v.ranks[idPair{ids[i-1], ids[i]}]
			if ok && (best < 0 || rank < v.ranks[idPair{ids[best-1], ids[best]}]) {
				best = i
			}
		}
		if best < 0 {
			return ids
		}
		p := idPair{ids[best-1], ids[best]}
		ids = replacePair(ids, p, v.byText[v.tokens[p[0]]+v.tokens[p[1]]])
	}
}

// withVariants returns the vocabulary of learned merges and their variants. A space or a newline is merged only with
// tokens that have it at least so many times in the words; other tokens keep it beside them.
func withVariants(l *learner, words []word, least int) *tokenSet {
	v := newTokenSet()
	for _, p := range l.merges {
		left, right := l.tokens[p[0]], l.tokens[p[1]]
		v.merge(left, right)
		if c := capital(left); c != left {
			v.merge(c, right)
		}
	}
	v.join(words, least)
	return v
}

// capital returns a token with a capital as first letter.
func capital(token string) string {
	if 'a' <= token[0] && token[0] <= 'z' {
		return strings.ToUpper(token[:1]) + token[1:]
	}
	return token
}

// join adds merges of a space with the tokens that words begin with, and of the tokens that they end with with a
// newline.
func (v *tokenSet) join(words []word, least int) {
	spaces, newlines := map[string]int{}, map[string]int{}
	for _, w := range words {
		text := w.text()
		if bare(text) == text {
			continue
		}
		ids := v.cut(strings.TrimSuffix(strings.TrimPrefix(text, " "), "\n"))
		if strings.HasPrefix(text, " ") {
			spaces[v.tokens[ids[0]]] += w.count
		}
		if strings.HasSuffix(text, "\n") {
			newlines[v.tokens[ids[len(ids)-1]]] += w.count
		}
	}
	for _, t := range frequent(spaces, least) {
		v.merge(" ", t)
	}
	for _, t := range frequent(newlines, 100*least) {
		v.merge(t, "\n")
	}
}

// frequent returns what occurs at least so many times, the most frequent first.
func frequent(counts map[string]int, least int) []string {
	texts := slices.Collect(maps.Keys(counts))
	texts = slices.DeleteFunc(texts, func(t string) bool { return counts[t] < least })
	slices.SortFunc(texts, func(a, b string) int { return cmp.Or(counts[b]-counts[a], cmp.Compare(a, b)) })
	return texts
}
