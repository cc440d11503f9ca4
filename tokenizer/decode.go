package tokenizer

import (
	"slices"
	"strings"
)

// Decode returns the text of ids. skipSpecial omits special tokens. Bytes that are not UTF-8 become U+FFFD, as the
// file's decoder does it: a byte-level one writes one for each truncated character. Ids that the file does not define
// are omitted.
//
// An added token that is searched in normalized text decodes to its normalized text. As in Hugging Face's tokenizers
// 0.23, it is omitted only if that is the text of a special token.
func (t *Tokenizer) Decode(ids []int32, skipSpecial bool) string {
	r := t.decoder.start()
	for _, id := range ids {
		if t.shown(id, skipSpecial) {
			r.push(t.decoded[id])
		}
	}
	r.flush()
	return r.take()
}

// shown reports whether decoding writes an id.
func (t *Tokenizer) shown(id int32, skipSpecial bool) bool {
	return t.valid(id) && (!skipSpecial || !t.skipped[id])
}

// DecodeBytes returns the concatenation of the bytes of ids; see [Tokenizer.TokenBytes]. They need not be UTF-8: a
// token may be a part of a character.
func (t *Tokenizer) DecodeBytes(ids []int32, skipSpecial bool) []byte {
	var out []byte
	for _, id := range ids {
		if t.shown(id, skipSpecial) {
			out = append(out, t.bytes[id]...)
		}
	}
	return out
}

// TokenBytes returns the bytes of one token within a text; nil for an id that the file does not define. They include a
// space that the decoder would drop at the beginning of a text.
func (t *Tokenizer) TokenBytes(id int32) []byte {
	if !t.valid(id) {
		return nil
	}
	return []byte(t.bytes[id])
}

// setDecoding fills the tables of what decoders read, of what decoding omits, and of the bytes of tokens.
func (t *Tokenizer) setDecoding() {
	t.decoded = t.texts
	if len(t.added.shown) > 0 {
		t.decoded = slices.Clone(t.texts)
	}
	for id, text := range t.added.shown {
		t.decoded[id] = text
	}
	special := map[string]bool{}
	for id := range t.added.special {
		special[t.texts[id]] = true
	}
	t.skipped = map[int32]bool{}
	for id, text := range t.decoded {
		if special[text] && t.known[id] {
			t.skipped[int32(id)] = true
		}
	}
	t.bytes = make([]string, len(t.decoded))
	stages := t.decoder.start().stages
	for id, text := range t.decoded {
		t.bytes[id] = inText(stages, text)
	}
}

// inText returns what the stages of a decoder write for a token that is not the first.
func inText(stages []stage, text string) string {
	for _, s := range stages {
		switch s := s.(type) {
		case *byteFallbackStage:
			if b, ok := fallbackByte(text); ok {
				return string([]byte{b})
			}
		case *metaspaceStage:
			text = strings.ReplaceAll(text, s.replacement, " ")
		case *bytesStage:
			text = byteLevelText(text)
		case mapStage:
			text = s(text)
		case *suffixStage:
			text = strings.ReplaceAll(text, s.suffix, " ")
		}
	}
	return text
}
