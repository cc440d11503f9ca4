package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxID bounds ids, so that a broken file cannot ask for all the memory.
const maxID = 1 << 24

// maxHoles bounds the ids that a file may leave out.
const maxHoles = 1 << 16

// modelFile is the "model" of tokenizer.json, of either kind.
type modelFile struct {
	kind        string
	options     modelOptions
	byBytes     bool             // BPE over bytes
	vocab       map[string]int32 // text in the spelling of the file -> id
	pieces      []vocabPiece     // of Unigram
	left, right []string         // merges
	ranks       []uint32         // of merges; nil: in their order
	joins       []idMerge        // merges by ids, in the place of all these
	hidden      func(int32) bool // ids that do not come out of text; nil: special tokens
	lowest      float64          // score that unknown characters are measured from; 0: the lowest of all
	single      bool             // scores are added in 32 bits
	sparse      bool             // added tokens keep the ids that they have
}

// idMerge is a merge of two ids.
type idMerge struct {
	left, right int32
	merge
}

// modelOptions are the small fields of both kinds.
type modelOptions struct {
	Dropout         *float64 `json:"dropout"`
	UnkToken        *string  `json:"unk_token"`
	SubwordPrefix   string   `json:"continuing_subword_prefix"`
	EndOfWordSuffix string   `json:"end_of_word_suffix"`
	FuseUnk         bool     `json:"fuse_unk"`
	ByteFallback    bool     `json:"byte_fallback"`
	IgnoreMerges    bool     `json:"ignore_merges"`
	UnkID           *int32   `json:"unk_id"`
}

// parseModel reads a model. spelled says that the text it gets is in the alphabet of byte-level models.
func parseModel(raw string, spelled bool) (*modelFile, error) {
	if raw == "" || raw == "null" {
		return nil, errors.New("it is missing")
	}
	members, err := object(raw)
	if err != nil {
		return nil, err
	}
	f := &modelFile{}
	if f.kind, err = kindOf(members); err != nil {
		return nil, err
	}
	vocab, merges := members["vocab"], members["merges"]
	delete(members, "vocab")
	delete(members, "merges")
	if err := f.readOptions(members); err != nil {
		return nil, err
	}
	if f.kind == "Unigram" {
		return f, f.readPieces(vocab)
	}
	if d := f.options.Dropout; d != nil && *d != 0 {
		return nil, errors.New("dropout is not supported: it makes ids random; set it to null")
	}
	f.byBytes = spelled && f.options.SubwordPrefix == "" && f.options.EndOfWordSuffix == ""
	if err := f.readVocab(vocab); err != nil {
		return nil, err
	}
	return f, f.readMerges(merges)
}

// readOptions reads the small fields.
func (f *modelFile) readOptions(members map[string]string) error {
	raw := map[string]json.RawMessage{}
	for name := range members {
		raw[name] = member(members, name)
	}
	small, err := json.Marshal(raw)
	if err != nil {
		return err
	}
	return json.Unmarshal(small, &f.options)
}

// kindOf returns the type of a model. Old files leave it out: those with a list of pieces are Unigram, those with a
// vocabulary and merges BPE.
func kindOf(members map[string]string) (string, error) {
	_, merges := members["merges"]
	_, typed := members["type"]
	kind := "BPE"
	switch {
	case typed:
		if err := json.Unmarshal(member(members, "type"), &kind); err != nil {
			return "", err
		}
	case strings.HasPrefix(strings.TrimSpace(members["vocab"]), "["):
		kind = "Unigram"
	case !merges:
		return "", errors.New(`it has no "type", no "merges" as BPE has, and its "vocab" is not a list as that of Unigram: ` +
			"WordPiece and WordLevel are not supported")
	}
	if kind != "BPE" && kind != "Unigram" {
		return "", fmt.Errorf("%q is not supported, only BPE and Unigram", kind)
	}
	return kind, nil
}

func (f *modelFile) readVocab(raw string) error {
	f.vocab = make(map[string]int32, len(raw)/24)
	r := &jsonReader{data: raw}
	r.members(func(text string) {
		if _, twice := f.vocab[text]; twice {
			r.fail("token %q is there twice", text)
		}
		f.vocab[strings.Clone(text)] = r.id()
	})
	if err := r.end(); err != nil {
		return fmt.Errorf("vocab: %w", err)
	}
	return nil
}

// readMerges reads merges, each "a b" or ["a", "b"].
func (f *modelFile) readMerges(raw string) error {
	r := &jsonReader{data: raw}
	f.left, f.right = make([]string, 0, len(raw)/20), make([]string, 0, len(raw)/20)
	r.elements(func() {
		if r.peek() == '"' {
			text := r.text()
			left, right, ok := strings.Cut(text, " ")
			if !ok || strings.Contains(right, " ") {
				r.fail("merge %q must have two parts", text)
			}
			f.left, f.right = append(f.left, left), append(f.right, right)
			return
		}
		var parts [2]string
		n := 0
		r.elements(func() {
			parts[n%2] = r.text()
			n++
		})
		if n != 2 {
			r.fail("a merge must have two parts, not %d", n)
		}
		f.left, f.right = append(f.left, parts[0]), append(f.right, parts[1])
	})
	if err := r.end(); err != nil {
		return fmt.Errorf("merges: %w", err)
	}
	return nil
}

// readPieces reads the vocabulary of a Unigram: [text, score] each.
func (f *modelFile) readPieces(raw string) error {
	r := &jsonReader{data: raw}
	f.vocab = map[string]int32{}
	r.elements(func() {
		var p vocabPiece
		n := 0
		r.elements(func() {
			switch n++; n {
			case 1:
				p.text = strings.Clone(r.text())
			case 2:
				p.score = r.number()
			default:
				r.fail("a piece must have a text and a score")
			}
		})
		if n != 2 {
			r.fail("a piece must have a text and a score")
		}
		f.vocab[p.text] = int32(len(f.pieces))
		f.pieces = append(f.pieces, p)
	})
	if err := r.end(); err != nil {
		return fmt.Errorf("vocab: %w", err)
	}
	if len(f.pieces) > maxID {
		return fmt.Errorf("vocab has more than %d pieces", maxID)
	}
	return nil
}

// makes reports whether text could become a special token by merges, or as a piece. Where special tokens are recognised
// their text does not get to the model, unless a normalizer makes it.
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

// build makes the model; special are the tokens that text does not become.
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
		if err == nil && f.lowest != 0 {
			m.floor = f.lowest - unknownPenalty
		}
		if err == nil && unknown == absent && m.fallback == nil {
			err = errNoUnknown
		}
		if err == nil && f.single {
			m.single, m.floor = true, float64(float32(m.floor))
		}
		return m, err
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
	if _, spaced := m.symbols[string(metaspaceRune)]; spaced && m.prefix+m.suffix == "" && m.unknown != absent && f.plainMerges() {
		m.parts = newParter(f.mergedTexts)
	}
	if f.options.IgnoreMerges {
		m.whole = f.wholeWords(special)
	}
	return m, nil
}

// setSymbols sets what a word begins as. A special token is no symbol: text could not be told from control.
func (f *modelFile) setSymbols(m *bpe, special map[int32]bool) error {
	isSymbol := func(text string) bool { return utf8.RuneCountInString(text) == 1 }
	if f.byBytes {
		isSymbol = func(text string) bool { b, ok := unspell(text); return ok && len(b) == 1 }
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

// addMerges fills the table of merges, but for those that make a special token.
func (f *modelFile) addMerges(m *bpe, special map[int32]bool) error {
	m.merges = newPairTable(len(f.left) + len(f.joins))
	for _, j := range f.joins {
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
			m.merges.put(l, r, merge{f.rank(rank), id})
		}
	}
	return nil
}

// rank is how early a merge is made.
func (f *modelFile) rank(i int) uint32 {
	if f.ranks != nil {
		return f.ranks[i]
	}
	return uint32(i)
}

// plainMerges reports whether every merge is of tokens that stand for their texts.
func (f *modelFile) plainMerges() bool {
	return !slices.ContainsFunc(f.left, func(left string) bool {
		_, isByte := fallbackByte(left)
		return isByte || f.options.UnkToken != nil && left == *f.options.UnkToken
	})
}

// mergedTexts lists what merges make.
func (f *modelFile) mergedTexts(yield func(string)) {
	for rank, left := range f.left {
		yield(left + f.right[rank])
	}
}

// wholeWords lists the words that are tokens without any merge.
func (f *modelFile) wholeWords(special map[int32]bool) *wordTable {
	out := newWordTable(len(f.vocab))
	for text, id := range f.vocab {
		if special[id] {
			continue
		}
		if f.byBytes {
			var ok bool
			if text, ok = unspell(text); !ok {
				continue
			}
		}
		out.put(text, id)
	}
	return out
}

// setVocab makes the model, and fills the tables between ids and tokens. An added token that the model knows has the model's id; others get
// the ids behind all that are taken, in the order of the file. So does the reference, whatever "id" says. Where it would
// give an id twice, because the model leaves ids out, the file's counts.
func (t *Tokenizer) setVocab(m *modelFile, added []addedToken) error {
	vocab := m.vocab
	size := int32(len(m.pieces))
	for _, id := range vocab {
		size = max(size, id+1)
	}
	if int(size) > max(len(vocab), len(m.pieces))+maxHoles {
		return fmt.Errorf("model: ids go up to %d, but there are %d tokens", size-1, len(vocab))
	}
	added = slices.DeleteFunc(slices.Clone(added), func(a addedToken) bool { return a.Content == "" })
	ids, err := m.addedIDs(added)
	if err != nil {
		return err
	}
	for _, id := range ids {
		size = max(size, id+1)
	}
	t.texts = make([]string, size)
	t.known = make([]bool, size)
	for text, id := range vocab {
		if t.known[id] {
			return fmt.Errorf("model: %q and %q have the same id %d", min(text, t.texts[id]), max(text, t.texts[id]), id)
		}
		t.texts[id], t.known[id] = text, true
	}
	for id, p := range m.pieces { // a text that is there twice has the last of its ids
		t.texts[id], t.known[id] = p.text, true
	}
	if t.added, err = newAddedVocabulary(added, t.normalize); err != nil {
		return fmt.Errorf("added_tokens: %w", err)
	}
	if t.model, err = m.build(t.added.special); err != nil {
		return fmt.Errorf("model: %w", err)
	}
	t.exact = t.model
	if m.makes(t.added.special) {
		if t.exact, err = m.build(nil); err != nil {
			return fmt.Errorf("model: %w", err)
		}
	}
	t.ids = vocab // what is added to it now, the model does not see
	for text, id := range ids {
		t.ids[text], t.texts[id], t.known[id] = id, text, true
	}
	return nil
}

// addedIDs gives added tokens their ids, and returns them by text.
func (f *modelFile) addedIDs(added []addedToken) (map[string]int32, error) {
	next, taken := int32(len(f.vocab)), make(map[int32]bool)
	limit := len(f.vocab) + len(added) + maxHoles
	for _, id := range f.vocab {
		if id >= next {
			taken[id] = true // those below are not given out
		}
	}
	ids := make(map[string]int32, len(added))
	for i := range added {
		a := &added[i]
		id, ok := ids[a.Content]
		if !ok {
			id, ok = f.vocab[a.Content]
		}
		if !ok {
			if id = next; taken[id] || f.sparse {
				id = a.ID
			}
			if id < 0 || int(id) > limit || taken[id] {
				return nil, fmt.Errorf("added token %q: its id %d is taken, or out of range", a.Content, id)
			}
		}
		taken[id] = true
		a.ID, ids[a.Content] = id, id
		next = max(next, id+1)
	}
	return ids, nil
}
