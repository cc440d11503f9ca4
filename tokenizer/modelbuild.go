package tokenizer

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// makes reports whether text could become a special token by merges, or as a piece. If special tokens are recognised,
// their text does not reach the model, unless a normalizer produces it.
func (f *modelFile) makes(special map[int32]bool) bool {
	if f.kind == "Unigram" {
		return f.hidden == nil && len(special) > 0
	}
	for i, left := range f.left {
		if id, ok := f.vocab[left+strings.TrimPrefix(f.right[i], f.options.SubwordPrefix)]; ok && special[id] {
			return true
		}
	}
	return false
}

// build makes the model; it never produces special tokens.
func (f *modelFile) build(special map[int32]bool) (wordModel, error) {
	if f.kind == "Unigram" {
		unknown := int32(absent)
		if f.options.UnkID != nil {
			unknown = *f.options.UnkID
		}
		hidden := f.hidden
		if hidden == nil {
			hidden = func(id int32) bool { return special[id] && id != unknown }
		}
		m, err := newUnigram(f.pieces, unknown, f.options.ByteFallback, hidden)
		if err != nil {
			return nil, err
		}
		if unknown == absent && m.fallback == nil {
			return nil, errors.New("the vocabulary has neither an unknown token nor byte pieces: some text could not be encoded")
		}
		if f.lowest != 0 {
			m.floor = f.lowest - unknownPenalty
		}
		if f.singlePrecision {
			m.singlePrecision, m.floor = true, float64(float32(m.floor))
		}
		return m, nil
	}
	return f.bpe(special)
}

func (f *modelFile) bpe(special map[int32]bool) (*bpe, error) {
	m := &bpe{byBytes: f.byBytes, unknown: absent, fuse: f.options.FuseUnk,
		prefix: f.options.SubwordPrefix, suffix: f.options.EndOfWordSuffix}
	if u := f.options.UnkToken; u != nil {
		if id, ok := f.vocab[*u]; ok {
			m.unknown = id
		}
	}
	if f.options.ByteFallback {
		m.fallback = fallbackIDs(f.vocab)
	}
	if err := f.setSymbols(m, special); err != nil {
		return nil, err
	}
	if err := f.addMerges(m, special); err != nil {
		return nil, err
	}
	_, spaced := m.symbols[string(metaspaceRune)]
	if spaced && m.prefix+m.suffix == "" && m.unknown != absent && f.plainMerges() {
		m.splitter = newWordSplitter(func(yield func(string) bool) { // the results of merges
			for rank, left := range f.left {
				if !yield(left + f.right[rank]) {
					return
				}
			}
		})
	}
	if f.options.IgnoreMerges {
		m.whole = newWordTable(len(f.vocab))
		for text, id := range f.vocab {
			ok := !special[id]
			if ok && f.byBytes {
				text, ok = fromByteLevel(text)
			}
			if ok {
				m.whole.put(text, id)
			}
		}
	}
	return m, nil
}

// setSymbols sets the symbols. A special token cannot be one: text could not be told from control.
func (f *modelFile) setSymbols(m *bpe, special map[int32]bool) error {
	isSymbol := func(text string) bool { return utf8.RuneCountInString(text) == 1 }
	if f.byBytes {
		isSymbol = func(text string) bool { b, ok := fromByteLevel(text); return ok && len(b) == 1 }
		for b, r := range alphabet {
			id, ok := f.vocab[string(r)]
			if m.symbol[b] = id; !ok {
				m.symbol[b] = absent
			}
		}
	}
	m.symbols = make(map[string]int32)
	most := len(m.prefix) + len(m.suffix) + utf8.UTFMax
	for text, id := range f.vocab {
		if special[id] && isSymbol(text) {
			return fmt.Errorf("special token %q is a symbol of text, which could not be told from control", text)
		}
		if f.hidden != nil && f.hidden(id) {
			continue
		}
		if !f.byBytes && len(text) <= most && text != "" && !special[id] {
			m.symbols[text] = id
		}
	}
	return nil
}

// addMerges fills the table of merges, except for those that produce a special token.
func (f *modelFile) addMerges(m *bpe, special map[int32]bool) error {
	m.merges = newPairTable(len(f.left) + len(f.idMerges))
	for _, j := range f.idMerges {
		m.merges.put(j.left, j.right, j.merge)
	}
	var joined []byte
	for rank, left := range f.left {
		right := f.right[rank]
		joined = append(append(joined[:0], left...), strings.TrimPrefix(right, m.prefix)...)
		l, ok1 := f.vocab[left]
		r, ok2 := f.vocab[right]
		id, ok3 := f.vocab[string(joined)]
		if !ok1 || !ok2 || !ok3 {
			return fmt.Errorf("merge %q %q: the vocabulary lacks a part or the result", left, right)
		}
		if !special[id] {
			j := merge{uint32(rank), id}
			if f.ranks != nil {
				j.rank = f.ranks[rank]
			}
			m.merges.put(l, r, j)
		}
	}
	return nil
}

// plainMerges reports whether merges are of ordinary tokens only, not of bytes or the unknown token.
func (f *modelFile) plainMerges() bool {
	return !slices.ContainsFunc(f.left, func(left string) bool {
		_, isByte := fallbackByte(left)
		return isByte || f.options.UnkToken != nil && left == *f.options.UnkToken
	})
}
