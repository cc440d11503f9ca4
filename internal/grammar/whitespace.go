package grammar

// Whitespace says where JSON text has whitespace. There is none before and after a document.
type Whitespace int

const (
	// SingleSpaces is one space after each comma and colon, as Python's json.dumps and most models write.
	SingleSpaces Whitespace = iota
	// NoSpaces is none, as Go's encoding/json writes.
	NoSpaces
	// AnySpaces is up to MaxSpaces characters wherever JSON allows it. A model then chooses among more spellings,
	// which says nothing about what it means to say.
	AnySpaces
)

// MaxSpaces bounds one run of whitespace with AnySpaces; otherwise a model could write whitespace for ever.
const MaxSpaces = 32

var spaces = repeat(byteSet([2]byte{'\t', '\n'}, [2]byte{'\r', '\r'}, [2]byte{' ', ' '}), 0, MaxSpaces)

// comma separates elements.
func (w Whitespace) comma() fragment { return w.around(",") }

// colon separates a key from its value.
func (w Whitespace) colon() fragment { return w.around(":") }

func (w Whitespace) around(separator string) fragment {
	switch w {
	case NoSpaces:
		return literal(separator)
	case AnySpaces:
		return sequence(spaces, literal(separator), spaces)
	}
	return literal(separator + " ")
}

// bracket is the whitespace after an opening and before a closing bracket.
func (w Whitespace) bracket() fragment {
	if w == AnySpaces {
		return spaces
	}
	return nothing
}
