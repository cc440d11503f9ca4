package tokenizer

import "slices"

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
