package main

import (
	"bytes"
	"cmp"
	"container/heap"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/dlclark/regexp2/v2"
)

// trainBPE learns a byte-level BPE vocabulary and returns it as a tokenizer.json that Hugging Face's tokenizers and
// our own package read alike. pattern cuts the corpus into words, which no merge crosses. numMerges are learned, and
// their variants follow. The ids are: the 256 bytes, the merges, the specials. The same arguments give the same
// bytes.
func trainBPE(corpus []string, numMerges int, pattern string, specials []string) ([]byte, error) {
	words, err := countWords(corpus, pattern)
	if err != nil {
		return nil, err
	}
	l := newLearner(bareWords(words))
	for len(l.merges) < numMerges && l.mergeBest() {
	}
	v := withVariants(l, words, leastVariants)
	return tokenizerJSON(v.tokens, v.merges, pattern, specials)
}

// leastVariants is how often a token has to occur behind a space to be merged with it.
const leastVariants = 20

// word is a distinct word of the corpus, as ids.
type word struct {
	ids   []int32
	count int
}

// countWords returns the distinct words of a corpus in the order of their bytes.
func countWords(corpus []string, pattern string) ([]word, error) {
	re, err := regexp2.Compile(pattern)
	if err != nil {
		return nil, fmt.Errorf("pattern: %w", err)
	}
	counts := map[string]int{}
	for _, text := range corpus {
		spans, err := re.FindAllStringIndex(text, -1)
		if err != nil {
			return nil, fmt.Errorf("pattern: %w", err)
		}
		done := 0
		for _, s := range spans {
			counts[text[done:s[0]]]++
			counts[text[s[0]:s[1]]]++
			done = s[1]
		}
		counts[text[done:]]++
	}
	delete(counts, "")
	var words []word
	for _, text := range slices.Sorted(maps.Keys(counts)) {
		words = append(words, word{byteIDs(text), counts[text]})
	}
	return words, nil
}

func byteIDs(text string) []int32 {
	ids := make([]int32, len(text))
	for i := range ids {
		ids[i] = int32(text[i])
	}
	return ids
}

type idPair [2]int32

// learner holds the state of training.
type learner struct {
	words  []word
	tokens []string // id -> bytes
	byText map[string]int32
	merges []idPair
	counts map[idPair]int
	where  map[idPair]map[int]bool // words that have, or had, the pair
	queue  pairQueue
}

func newLearner(words []word) *learner {
	l := &learner{words: words, byText: map[string]int32{}, counts: map[idPair]int{}, where: map[idPair]map[int]bool{}}
	for b := range 256 {
		l.tokens = append(l.tokens, string([]byte{byte(b)}))
		l.byText[l.tokens[b]] = int32(b)
	}
	touched := map[idPair]bool{}
	for i := range words {
		l.count(i, 1, touched)
	}
	l.enqueue(touched)
	return l
}

// count adds sign times a word's pairs.
func (l *learner) count(i, sign int, touched map[idPair]bool) {
	w := l.words[i]
	for k := 1; k < len(w.ids); k++ {
		p := idPair{w.ids[k-1], w.ids[k]}
		l.counts[p] += sign * w.count
		if l.where[p] == nil {
			l.where[p] = map[int]bool{}
		}
		l.where[p][i] = true
		touched[p] = true
	}
}

func (l *learner) enqueue(touched map[idPair]bool) {
	for p := range touched {
		if l.counts[p] > 0 {
			heap.Push(&l.queue, countedPair{p, l.counts[p]})
		}
	}
}

// mergeBest merges the pair that occurs most often; of equals, the one with the lowest ids. It returns false when no
// pair occurs twice.
func (l *learner) mergeBest() bool {
	for len(l.queue) > 0 {
		best := heap.Pop(&l.queue).(countedPair)
		if l.counts[best.pair] != best.count {
			continue // counted again since
		}
		if best.count < 2 {
			return false
		}
		l.merge(best.pair)
		return true
	}
	return false
}

func (l *learner) merge(p idPair) {
	text := l.tokens[p[0]] + l.tokens[p[1]]
	id, ok := l.byText[text]
	if !ok { // otherwise other pairs have made the same token
		id = int32(len(l.tokens))
		l.tokens = append(l.tokens, text)
		l.byText[text] = id
	}
	l.merges = append(l.merges, p)
	touched := map[idPair]bool{}
	for i := range l.where[p] {
		l.count(i, -1, touched)
		l.words[i].ids = replacePair(l.words[i].ids, p, id)
		l.count(i, 1, touched)
	}
	delete(l.where, p)
	delete(l.counts, p)
	l.enqueue(touched)
}

func replacePair(ids []int32, p idPair, id int32) []int32 {
	out := ids[:0]
	for i := 0; i < len(ids); i++ {
		if i+1 < len(ids) && ids[i] == p[0] && ids[i+1] == p[1] {
			out = append(out, id)
			i++
			continue
		}
		out = append(out, ids[i])
	}
	return out
}

type countedPair struct {
	pair  idPair
	count int
}

// pairQueue is a heap of pairs, some of which are out of date.
type pairQueue []countedPair

func (q pairQueue) Len() int { return len(q) }
func (q pairQueue) Less(i, j int) bool {
	if q[i].count != q[j].count {
		return q[i].count > q[j].count
	}
	return cmp.Or(cmp.Compare(q[i].pair[0], q[j].pair[0]), cmp.Compare(q[i].pair[1], q[j].pair[1])) < 0
}
func (q pairQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *pairQueue) Push(x any)   { *q = append(*q, x.(countedPair)) }
func (q *pairQueue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}

// object is a JSON object. Its keys are written in alphabetical order.
type object = map[string]any

// tokenizerJSON writes a vocabulary and its merges.
func tokenizerJSON(tokens []string, merged []idPair, pattern string, specials []string) ([]byte, error) {
	byteLevel := object{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": false}
	split := object{"type": "Split", "pattern": object{"Regex": pattern}, "behavior": "Isolated", "invert": false}
	vocab, spellings := object{}, spell(tokens)
	for id, s := range spellings {
		vocab[s] = id
	}
	added, err := addedTokens(specials, vocab)
	if err != nil {
		return nil, err
	}
	merges := [][2]string{}
	for _, p := range merged {
		merges = append(merges, [2]string{spellings[p[0]], spellings[p[1]]})
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	err = e.Encode(object{
		"version": "1.0", "truncation": nil, "padding": nil, "added_tokens": added, "normalizer": nil,
		"pre_tokenizer":  object{"type": "Sequence", "pretokenizers": []object{split, byteLevel}},
		"post_processor": byteLevel,
		"decoder":        byteLevel,
		"model": object{"type": "BPE", "dropout": nil, "unk_token": nil, "continuing_subword_prefix": nil,
			"end_of_word_suffix": nil, "fuse_unk": false, "byte_fallback": false, "ignore_merges": false,
			"vocab": vocab, "merges": merges},
	})
	return out.Bytes(), err
}

// addedTokens gives special tokens the ids after the vocabulary.
func addedTokens(specials []string, vocab object) ([]object, error) {
	out := []object{}
	seen := map[string]bool{}
	for i, s := range specials {
		if _, taken := vocab[s]; s == "" || taken || seen[s] {
			return nil, fmt.Errorf("special token %q is empty, listed twice or an ordinary token", s)
		}
		seen[s] = true
		out = append(out, object{"id": len(vocab) + i, "content": s, "single_word": false, "lstrip": false,
			"rstrip": false, "normalized": false, "special": true})
	}
	return out, nil
}

// spell writes tokens in GPT-2's alphabet, in which each byte is one printable character: bytes that are printable in
// Latin-1 stand for themselves, and the others follow from U+0100 on.
func spell(tokens []string) []string {
	var alphabet [256]rune
	next := rune(256)
	for b := range alphabet {
		if '!' <= b && b <= '~' || 0xA1 <= b && b <= 0xAC || 0xAE <= b {
			alphabet[b] = rune(b)
			continue
		}
		alphabet[b] = next
		next++
	}
	out := make([]string, len(tokens))
	for i, t := range tokens {
		for _, b := range []byte(t) {
			out[i] += string(alphabet[b])
		}
	}
	return out
}
