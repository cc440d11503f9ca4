package tokenizer

import (
	"fmt"
	"slices"

	"github.com/goart-dev/art/internal/onig"
)

// The patterns by which OpenAI's encodings split text into words. They mean the same in every regular expression
// engine.
const (
	CL100KWords = cl100kPattern
	O200KWords  = o200kPattern
)

// FromRanks builds a tokenizer from a vocabulary as tiktoken has it: the bytes of the tokens by rank, which is both the
// order of merges and the id; the pattern that splits text into words; and the special tokens. A word that is a token
// needs no merges. The pattern is in the syntax of tiktoken's engine, fancy-regex, which differs from that of
// tokenizer.json; unsupported syntax is an error.
func FromRanks(tokens []string, words string, special map[string]int32) (*Tokenizer, error) {
	re, err := onig.CompileFancy(words)
	if err != nil {
		return nil, fmt.Errorf("tokenizer: %w", err)
	}
	if len(tokens) > maxID {
		return nil, fmt.Errorf("tokenizer: %d tokens are more than %d", len(tokens), maxID)
	}
	f := &modelFile{kind: "BPE", byBytes: true, vocab: make(map[string]int32, len(tokens))}
	f.options.IgnoreMerges = true
	byBytes := make(map[string]int32, len(tokens))
	for id, text := range tokens {
		if _, twice := byBytes[text]; twice || text == "" {
			return nil, fmt.Errorf("tokenizer: token %d, %q, is empty or repeated", id, text)
		}
		byBytes[text], f.vocab[toByteLevel(text)] = int32(id), int32(id)
	}
	for id, text := range tokens {
		for at := 1; at < len(text); at++ {
			left, ok1 := byBytes[text[:at]]
			right, ok2 := byBytes[text[at:]]
			if ok1 && ok2 {
				f.idMerges = append(f.idMerges, idMerge{left, right, merge{uint32(id), int32(id)}})
			}
		}
	}
	t := &Tokenizer{
		steps:   []step{cutStep{find: matchRegex(re), invert: true, behavior: removed}},
		decoder: decoder{func() stage { return &bytesStage{} }},
	}
	f.keepIDs = true
	var added []addedToken
	for text, id := range special {
		added = append(added, addedToken{ID: id, Content: text, Special: true})
	}
	slices.SortFunc(added, func(a, b addedToken) int { return int(a.ID - b.ID) })
	if err := t.setVocab(f, added); err != nil {
		return nil, fmt.Errorf("tokenizer: %w", err)
	}
	t.setDecoding()
	return t, nil
}
