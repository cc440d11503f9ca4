package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// modelFile is the "model" of tokenizer.json. UnkToken and FuseUnk have no effect: every byte has a symbol.
type modelFile struct {
	Type            string           `json:"type"`
	Dropout         *float64         `json:"dropout"`
	UnkToken        *string          `json:"unk_token"`
	SubwordPrefix   *string          `json:"continuing_subword_prefix"`
	EndOfWordSuffix *string          `json:"end_of_word_suffix"`
	FuseUnk         bool             `json:"fuse_unk"`
	ByteFallback    bool             `json:"byte_fallback"`
	IgnoreMerges    bool             `json:"ignore_merges"`
	Vocab           map[string]int32 `json:"vocab"`
	Merges          []mergePair      `json:"merges"`
}

// maxHoles bounds the ids that a file may leave out, so that a broken one cannot ask for all the memory.
const maxHoles = 1 << 16

func (t *Tokenizer) setModel(raw json.RawMessage) error {
	if isNull(raw) {
		return errors.New("model is missing")
	}
	kind, err := typeOf(raw)
	if err != nil {
		return fmt.Errorf("model: %w", err)
	}
	if kind != "BPE" && kind != "" { // GPT-2's own file does not say
		return fmt.Errorf("model %q is not supported, only BPE", kind)
	}
	var f modelFile
	if err := decodeStrict(raw, &f); err != nil {
		return fmt.Errorf("model: %w", err)
	}
	if err := f.check(); err != nil {
		return fmt.Errorf("model: %w", err)
	}
	if err := t.setVocab(&f); err != nil {
		return fmt.Errorf("model: %w", err)
	}
	if t.model, err = f.bpe(t.added); err != nil {
		return fmt.Errorf("model: %w", err)
	}
	return nil
}

func (f *modelFile) check() error {
	set := func(s *string) bool { return s != nil && *s != "" }
	var errs []error
	for _, c := range []struct {
		on   bool
		name string
	}{
		{f.Dropout != nil && *f.Dropout != 0, "dropout"},
		{set(f.SubwordPrefix), "continuing_subword_prefix"},
		{set(f.EndOfWordSuffix), "end_of_word_suffix"},
		{f.ByteFallback, "byte_fallback"},
	} {
		if c.on {
			errs = append(errs, fmt.Errorf("%s is not supported", c.name))
		}
	}
	return errors.Join(errs...)
}

// setVocab fills the tables between ids and tokens.
func (t *Tokenizer) setVocab(f *modelFile) error {
	t.ids = make(map[string]int32, len(f.Vocab)+len(t.added.byContent))
	size, limit := int32(0), int32(len(f.Vocab)+len(t.added.byContent)+maxHoles)
	for _, vocab := range []map[string]int32{f.Vocab, t.added.byContent} {
		for token, id := range vocab {
			if id < 0 || id >= limit {
				return fmt.Errorf("id %d of %q is out of range", id, token)
			}
			size = max(size, id+1)
		}
	}
	t.bytes, t.known = make([]string, size), make([]bool, size)
	spelling := make([]string, size)
	for _, vocab := range []map[string]int32{f.Vocab, t.added.byContent} {
		for token, id := range vocab {
			if other, dup := t.ids[token]; dup && other != id {
				return fmt.Errorf("added token %q has id %d, but the vocabulary gives it %d", token, id, other)
			}
			if t.known[id] && spelling[id] != token {
				return fmt.Errorf("%q and %q have the same id %d", spelling[id], token, id)
			}
			t.ids[token], t.known[id], spelling[id] = id, true, token
			t.bytes[id] = decoded(token)
		}
	}
	return nil
}

// decoded is what a token becomes: the bytes that it spells, or itself when it is not in the alphabet.
func decoded(token string) string {
	if text, ok := unspell(token); ok {
		return text
	}
	return token
}

func (f *modelFile) bpe(added *addedVocabulary) (*bpe, error) {
	m := &bpe{merges: make(map[uint64]merge, len(f.Merges)), cache: newWordCache()}
	for b, r := range alphabet {
		id, ok := f.Vocab[string(r)]
		if !ok && inUTF8(byte(b)) {
			return nil, fmt.Errorf("the vocabulary lacks %q, the symbol of byte %#02x: text with it could not be encoded", r, b)
		}
		if ok && added.special[id] {
			return nil, fmt.Errorf("special token %q is the symbol of byte %#02x: text could not be told from control", r, b)
		}
		m.symbol[b] = id
	}
	for rank, p := range f.Merges {
		if err := f.addMerge(m, uint32(rank), p, added); err != nil {
			return nil, err
		}
	}
	if f.IgnoreMerges {
		m.whole = wholeWords(f.Vocab, added)
	}
	return m, nil
}

// addMerge leaves out merges that make a special token: ordinary text must not become one. When special tokens are
// recognised, their text does not get this far.
func (f *modelFile) addMerge(m *bpe, rank uint32, p mergePair, added *addedVocabulary) error {
	left, ok1 := f.Vocab[p.left]
	right, ok2 := f.Vocab[p.right]
	id, ok3 := f.Vocab[p.left+p.right]
	if !ok1 || !ok2 || !ok3 {
		return fmt.Errorf("merge %q %q: the vocabulary lacks a part or the result", p.left, p.right)
	}
	if !added.special[id] {
		m.merges[pairKey(left, right)] = merge{rank, id}
	}
	return nil
}

// wholeWords maps the bytes of the tokens that a word can be without any merge.
func wholeWords(vocab map[string]int32, added *addedVocabulary) map[string]int32 {
	out := make(map[string]int32, len(vocab))
	for token, id := range vocab {
		if text, ok := unspell(token); ok && !added.special[id] {
			out[text] = id
		}
	}
	return out
}

// mergePair is a merge, written "a b" or ["a", "b"].
type mergePair struct{ left, right string }

func (m *mergePair) UnmarshalJSON(data []byte) error {
	if data[0] == '[' {
		var p []string
		if err := json.Unmarshal(data, &p); err != nil {
			return err
		}
		if len(p) != 2 {
			return fmt.Errorf("merge %s must have two parts", data)
		}
		m.left, m.right = p[0], p[1]
		return nil
	}
	var s string
	if err := json.Unmarshal(data, &s); err != nil {
		return err
	}
	var ok bool
	if m.left, m.right, ok = strings.Cut(s, " "); !ok || strings.Contains(m.right, " ") {
		return fmt.Errorf("merge %q must have two parts", s)
	}
	return nil
}
