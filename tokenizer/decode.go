package tokenizer

// Decode returns the text of ids. skipSpecial leaves out special tokens. Bytes that are not UTF-8 become U+FFFD, one for
// each broken beginning of a character. Ids that the file does not define are left out.
func (t *Tokenizer) Decode(ids []int32, skipSpecial bool) string {
	return lossy(t.DecodeBytes(ids, skipSpecial))
}

// DecodeBytes returns the bytes of ids, which need not be UTF-8: a token may hold a part of a character.
func (t *Tokenizer) DecodeBytes(ids []int32, skipSpecial bool) []byte {
	var out []byte
	for _, id := range ids {
		out = t.appendBytes(out, id, skipSpecial)
	}
	return out
}

// TokenBytes returns the bytes of one token; nil for an id that the file does not define.
func (t *Tokenizer) TokenBytes(id int32) []byte { return t.appendBytes(nil, id, false) }

func (t *Tokenizer) appendBytes(dst []byte, id int32, skipSpecial bool) []byte {
	if !t.valid(id) || skipSpecial && t.IsSpecial(id) {
		return dst
	}
	return append(dst, t.bytes[id]...)
}
