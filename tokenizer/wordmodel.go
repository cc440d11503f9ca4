package tokenizer

// wordModel turns words into ids. It does not change after it is built.
type wordModel interface {
	// appendIDs appends the ids of a word.
	appendIDs(s *scratch, ids []int32, word string) []int32
	// appendTokens appends the ids of a word with the bytes of it that each covers.
	appendTokens(s *scratch, tokens []token, word string) []token
	// produces reports whether some text can become id.
	produces(id int32) bool
}

// token is an id and the bytes of a word that it covers.
type token struct{ id, start, end int32 }
