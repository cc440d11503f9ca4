package tokenizer

import "unicode/utf8"

// Encode returns the ids of text. Added tokens in it are recognised: use it for text of your own, and
// [Tokenizer.EncodeOrdinary] for text from elsewhere. special adds the tokens that the file's post-processor puts around
// a text, such as the one that begins a sequence. Bytes that are not UTF-8 are
// encoded as U+FFFD.
func (t *Tokenizer) Encode(text string, special bool) []int32 {
	var ids []int32
	if special {
		ids = append(ids, t.wrap.before...)
	}
	t.scan(toValid(text), func(words string) {
		ids = t.appendWords(ids, words)
	}, func(id int32) {
		ids = append(ids, id)
	})
	if special {
		ids = append(ids, t.wrap.after...)
	}
	return ids
}

// EncodeOrdinary returns the ids of text, in which it recognises no added token. No special token comes out of it,
// whatever the text says.
func (t *Tokenizer) EncodeOrdinary(text string) []int32 {
	return t.appendWords(nil, t.normalize(toValid(text)))
}

// scan calls words for the normalized text between added tokens, and token for each of them.
func (t *Tokenizer) scan(text string, words func(string), token func(id int32)) {
	t.added.raw.split(text, func(piece string) {
		t.added.normalized.split(t.normalize(piece), words, token)
	}, token)
}

func (t *Tokenizer) appendWords(ids []int32, normalized string) []int32 {
	t.pre.words(normalized, func(word string) { ids = t.model.appendWord(ids, word) })
	return ids
}

// toValid returns text as valid UTF-8, broken where [Tokenizer.Decode] would break it.
func toValid(text string) string {
	if utf8.ValidString(text) {
		return text
	}
	return lossy([]byte(text))
}
