package tokenizer

import "slices"

// Encode returns the ids of text. It recognises added tokens in it: use it for text of your own, and
// [Tokenizer.EncodeOrdinary] for text from outside. special adds the tokens that the file's post-processor puts around
// a text, such as the beginning-of-sequence token. Bytes that are not UTF-8 are encoded as they are if the model works
// on bytes, or falls back to them; patterns and normalizers see them as U+FFFD.
func (t *Tokenizer) Encode(text string, special bool) []int32 {
	s := t.pool.get()
	defer t.pool.Put(s)
	ids := make([]int32, 0, len(text)/bytesPerID+1)
	t.split(newPiece(text, t.tracksOrigins), func(p piece) {
		ids = t.appendIDs(t.exact, s, ids, p)
	}, func(id int32, _ piece) {
		ids = append(ids, id)
	})
	if special {
		ids = t.wrapIDs(ids)
	}
	return ids
}

// EncodeOrdinary returns the ids of text, in which it recognises no added token. No text becomes a special token,
// except for the unknown token of models that have one.
func (t *Tokenizer) EncodeOrdinary(text string) []int32 {
	s := t.ordinaryPool.get()
	defer t.ordinaryPool.Put(s)
	ids := make([]int32, 0, len(text)/bytesPerID+1)
	return t.appendIDs(t.model, s, ids, t.normalized(newPiece(text, t.tracksOrigins)))
}

// bytesPerID is a typical length of tokens, to estimate the memory for ids.
const bytesPerID = 3

// wrapIDs applies the post-processor to ids.
func (t *Tokenizer) wrapIDs(ids []int32) []int32 {
	e := encoding{ids: ids, spans: make([]Span, len(ids))}
	for _, process := range t.processors {
		process(t, &e, true)
	}
	return e.ids
}

// Split cuts a text at its added tokens, as [Tokenizer.Encode] does before anything else. It calls ordinary for the
// text between them, normalized, and added for each of them, in order.
func (t *Tokenizer) Split(text string, ordinary func(normalized string), added func(id int32)) {
	t.split(newPiece(text, false), func(p piece) { ordinary(p.text) }, func(id int32, _ piece) { added(id) })
}

// split is Split for pieces.
func (t *Tokenizer) split(text piece, ordinary func(piece), added func(id int32, p piece)) {
	t.added.raw.split(text, func(p piece) {
		t.added.normalized.split(t.normalized(p), ordinary, added)
	}, added)
}

// normalized applies the normalizer.
func (t *Tokenizer) normalized(p piece) piece {
	for _, n := range t.normalizers {
		p = n(p)
	}
	return p
}

// normalize applies the normalizer to text.
func (t *Tokenizer) normalize(text string) string { return t.normalized(piece{text: text}).text }

// appendIDs appends the ids of a normalized piece.
func (t *Tokenizer) appendIDs(m wordModel, s *scratch, ids []int32, p piece) []int32 {
	t.runSteps(p, func(word piece) { ids = m.appendIDs(s, ids, word.text) })
	return ids
}

// runSteps cuts a normalized piece into words as the model takes them.
func (t *Tokenizer) runSteps(p piece, emit func(word piece)) {
	if !t.fromByteLevel {
		runSteps(t.steps, p, emit)
		return
	}
	runSteps(t.steps, p, func(word piece) { emit(fromByteLevelPiece(word)) })
}

// Span is a range of bytes of a text, the end not included.
type Span struct{ Start, End int }

// EncodeOffsets is [Tokenizer.Encode] with the part of text that each token comes from, as in the reference: tokens
// that share a character all span the whole character, the file's post-processor says whether spaces count, and tokens
// that stand for nothing in the text have an empty span at its beginning. It is slower than Encode.
func (t *Tokenizer) EncodeOffsets(text string, special bool) ([]int32, []Span) {
	s := t.pool.get()
	defer t.pool.Put(s)
	e := encoding{text: text, surface: map[int]string{}}
	m, unknown := t.exact.(*unigram)
	var tokens []token
	t.split(newPiece(text, true), func(p piece) {
		t.runSteps(p, func(word piece) {
			tokens = t.exact.appendTokens(s, tokens[:0], word.text)
			for _, tok := range tokens {
				if unknown && tok.id == m.unknown {
					e.surface[len(e.ids)] = word.text[tok.start:tok.end]
				}
				e.add(tok.id, word.origin(int(tok.start), int(tok.end)))
			}
		})
	}, func(id int32, p piece) {
		if p.text != t.texts[id] { // with the white space around it
			e.surface[len(e.ids)] = p.text
		}
		e.add(id, p.origin(0, len(p.text)))
	})
	for _, process := range t.processors {
		process(t, &e, special)
	}
	return e.ids, e.spans
}

// encoding is ids, and where each comes from.
type encoding struct {
	text    string
	ids     []int32
	spans   []Span
	surface map[int]string // the texts of tokens that differ from the token, by index: unknown ones of Unigram, added ones
}

// surfaceOf returns the text that the i-th token stands for.
func (e *encoding) surfaceOf(t *Tokenizer, i int) string {
	if text, ok := e.surface[i]; ok {
		return text
	}
	return t.texts[e.ids[i]]
}

func (e *encoding) add(id int32, from span) {
	e.ids, e.spans = append(e.ids, id), append(e.spans, Span{from.start, from.end})
}

// wrap puts tokens before and after.
func (e *encoding) wrap(before, after []int32) {
	e.ids = slices.Concat(before, e.ids, after)
	e.spans = slices.Concat(make([]Span, len(before)), e.spans, make([]Span, len(after)))
	moved := make(map[int]string, len(e.surface))
	for i, text := range e.surface {
		moved[i+len(before)] = text
	}
	e.surface = moved
}
