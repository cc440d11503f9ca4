package tokenizer

// Encode returns the ids of text. Added tokens in it are recognised: use it for text of your own, and
// [Tokenizer.EncodeOrdinary] for text from elsewhere. special adds the tokens that the file's post-processor puts around
// a text, such as the one that begins a sequence. Bytes that are not UTF-8 are encoded as they are where the model works
// on bytes, or falls back on them, and count as U+FFFD where characters are told apart.
func (t *Tokenizer) Encode(text string, special bool) []int32 {
	s := t.pool.get()
	defer t.pool.Put(s)
	ids := make([]int32, 0, len(text)/bytesPerID+1)
	t.split(newPiece(text, t.tracks), func(p piece) {
		ids = t.appendIDs(t.exact, s, ids, p)
	}, func(id int32, _ piece) {
		ids = append(ids, id)
	})
	if special {
		ids = t.wrapIDs(ids)
	}
	return ids
}

// EncodeOrdinary returns the ids of text, in which it recognises no added token. No special token comes out of it,
// whatever the text says, but for the unknown token of models that have one.
func (t *Tokenizer) EncodeOrdinary(text string) []int32 {
	s := t.ordinaryPool.get()
	defer t.ordinaryPool.Put(s)
	ids := make([]int32, 0, len(text)/bytesPerID+1)
	return t.appendIDs(t.model, s, ids, t.normalized(newPiece(text, t.tracks)))
}

// bytesPerID is a usual length of tokens. It is a guess at how much memory ids will take.
const bytesPerID = 3

// wrapIDs is what the post-processor does to ids.
func (t *Tokenizer) wrapIDs(ids []int32) []int32 {
	e := encoding{ids: ids, spans: make([]Span, len(ids))}
	for _, process := range t.processors {
		process(t, &e, true)
	}
	return e.ids
}

// Split cuts a text at its added tokens, as [Tokenizer.Encode] does before anything else. It calls ordinary for the text
// between them, normalized, and added for each of them, in order.
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

// runSteps cuts a normalized piece into words, in the characters of the model.
func (t *Tokenizer) runSteps(p piece, emit func(word piece)) {
	if !t.unspell {
		runSteps(t.steps, p, emit)
		return
	}
	runSteps(t.steps, p, func(word piece) { emit(unspelled(word)) })
}
