package local

import (
	"slices"
	"strings"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/engine"
)

// limits are a mask for AllowedTokenIDs and BadWords, within that of a grammar.
type limits struct {
	grammar engine.Mask // nil: any text
	allowed []uint32    // a bit for each id; nil: all
	bad     [][]int32   // words, as tokens
	said    []int32     // the last tokens of the reply, as many as the longest word has
}

// limited returns a mask that restricts further what another one allows, which may be nil.
func (s *base) limited(grammar engine.Mask, settings art.Sampling) engine.Mask {
	if settings.AllowedTokenIDs == nil && len(settings.BadWords) == 0 {
		return grammar
	}
	l := &limits{grammar: grammar}
	if settings.AllowedTokenIDs != nil {
		l.allowed = make([]uint32, (s.config.VocabSize+31)/32)
		for _, id := range settings.AllowedTokenIDs {
			l.allowed[id/32] |= 1 << (id % 32)
		}
	}
	for _, word := range settings.BadWords {
		for _, spelled := range []string{word, " " + strings.TrimLeft(word, " ")} {
			if ids := s.tokenizer.Encode(spelled, false); len(ids) > 0 {
				l.bad = append(l.bad, ids)
			}
		}
	}
	return l
}

// Mask implements [engine.Mask].
func (l *limits) Mask(dst []uint32) {
	if l.grammar != nil {
		l.grammar.Mask(dst)
	} else {
		for i := range dst {
			dst[i] = ^uint32(0)
		}
	}
	for i, word := range l.allowed {
		dst[i] &= word
	}
	for _, word := range l.bad {
		last := len(word) - 1
		if id := word[last]; l.ends(word[:last]) && int(id/32) < len(dst) {
			dst[id/32] &^= 1 << (id % 32)
		}
	}
}

// ends reports whether the reply so far ends with tokens.
func (l *limits) ends(tokens []int32) bool {
	return len(tokens) <= len(l.said) && slices.Equal(l.said[len(l.said)-len(tokens):], tokens)
}

// Accept implements [engine.Mask].
func (l *limits) Accept(id int32) error {
	longest := 0
	for _, word := range l.bad {
		longest = max(longest, len(word))
	}
	l.said = append(l.said, id)
	l.said = l.said[max(0, len(l.said)-longest):]
	if l.grammar == nil {
		return nil
	}
	return l.grammar.Accept(id)
}

// Finished implements [engine.Mask]. Only a grammar finishes a reply.
func (l *limits) Finished() bool { return l.grammar != nil && l.grammar.Finished() }
