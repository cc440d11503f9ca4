package tokenizer

// wordModel encodes words. It does not change after it is built.
type wordModel interface {
	// appendIDs appends the ids of a word.
	appendIDs(s *scratch, ids []int32, word string) []int32
	// appendTokens appends the ids of a word, and which of its bytes each id covers.
	appendTokens(s *scratch, tokens []token, word string) []token
	// produces reports whether some text may become id.
	produces(id int32) bool
}

// token is an id and the bytes of a word that it covers.
type token struct{ id, start, end int32 }
