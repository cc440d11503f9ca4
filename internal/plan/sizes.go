package plan

import (
	"math/bits"

	"github.com/goart-dev/art/internal/pack"
)

// Sizes decide how much memory a training takes.
type Sizes struct {
	Workers     int // micro-batches at once
	MicroTokens int // bound of the tokens of a micro-batch, padding included; a single sequence may exceed it
	// Recompute computes layers again for their gradient: of all micro-batches if it was asked for, otherwise of those
	// that do not fit without.
	Recompute bool
	// Narrow bounds a micro-batch with shared tokens by MicroTokens alone, see [Sizes.Shared].
	Narrow bool
}

// sharedPieces is how many times MicroTokens a micro-batch with shared tokens may have, and sharedLengths how many
// times the length of its longest sequence.
const sharedPieces, sharedLengths = 3, 2

// Rows is how many rows of a length a micro-batch may have.
func (s Sizes) Rows(length int) int { return max(1, s.MicroTokens/length) }

// Shared is how many tokens a micro-batch may have whose sequences, of up to so many tokens, share some of them. It is
// computed alone, where others are computed several at once: so it may have three times MicroTokens, and, unless
// Narrow, twice a sequence. With three times MicroTokens alone, a group of a large model with a long prompt would not
// share it.
func (s Sizes) Shared(length int) int {
	most := sharedPieces * s.MicroTokens
	if !s.Narrow {
		most = max(most, sharedLengths*padLength(length))
	}
	return most
}

// Work is the larger of two numbers of bytes: of the usual micro-batches that are computed at once, and, unless
// sequences are alone, of one whose sequences share tokens. bytes returns those of a micro-batch that has a layout, in
// which every token is trained; but of a layout, tokens may be more than it has: those that it stands for.
//
// A usual micro-batch has as many sequences of the length as it may have. Those of the other one share half of the
// length. It has as many tokens as it may have, though numbers of rows are rounded: shorter sequences may fill it.
// There is none where two sequences have more tokens than that.
func (s Sizes) Work(length int, alone bool, bytes func(l pack.Layout, tokens int) (float64, error)) (float64, error) {
	l := pack.Layout{Rows: s.Rows(padLength(length)), Length: padLength(length)}
	l.Trained = l.Tokens()
	usual, err := bytes(l, l.Tokens())
	usual *= float64(s.Workers)
	half, rows := s.halves(length)
	if alone || rows < 2 || err != nil {
		return usual, err
	}
	l = pack.Layout{Rows: 1, Length: half}
	l.Branches[0] = pack.Branches{Rows: rows, Length: half, Keys: 2 * half}
	l.Trained = l.Tokens()
	shared, err := bytes(l, max(l.Tokens(), s.Shared(length)))
	return max(usual, shared), err
}

// halves are the tokens of half of a sequence, and how many second halves there is room for beside the first.
func (s Sizes) halves(length int) (half, rows int) {
	half = padLength((length + 1) / 2)
	return half, max(0, (s.Shared(length)-half)/half)
}

// LargestGroup is the number of sequences of a length that are computed at once if they share their first half; below 2
// none are.
func (s Sizes) LargestGroup(length int) int {
	_, most := s.halves(length)
	n := most
	for padRows(n) > most {
		n--
	}
	return n
}

// Padding rounds sizes of micro-batches up, so that few layouts occur.
type Padding struct {
	Length func(n int) int // tokens of a row
	// Of micro-batches with shared tokens: numbers of rows, and positions that branches attend to. SameKeys gives both
	// rectangles of branches the keys of the one that needs more.
	Rows, Keys func(n int) int
	SameKeys   bool
}

// Padding is that of a training. On devices that take long to compile, lengths are powers of two, and numbers of rows
// are too or half way between: with powers alone up to a tenth more tokens are computed, and about as many layouts
// occur.
func (t Training) Padding() Padding {
	if t.On.SlowCompile {
		return Padding{powerLength, fewRows, powerLength, true}
	}
	return Padding{padLength, padRows, padKeys, false}
}

// padLength rounds tokens up to steps of 16 up to 256, then of a sixteenth of a power of two.
func padLength(n int) int {
	step := 16
	for n > 16*step {
		step *= 2
	}
	return max(step, roundUp(n, step))
}

// powerLength is the power of two, at least 32, that n tokens are padded to.
func powerLength(n int) int { return 1 << bits.Len(uint(max(n, 32)-1)) }

// RowStep is what the number of rows of micro-batches is rounded up to.
const RowStep = 4

// padRows rounds up to even numbers, multiples of RowStep above 8, and of an eighth of a power of two above 32.
func padRows(n int) int {
	switch {
	case n < 3:
		return n
	case n <= 2*RowStep:
		return roundUp(n, 2)
	}
	step := RowStep
	for n > 8*step {
		step *= 2
	}
	return roundUp(n, step)
}

// fewRows rounds up to a power of two or half way between two of them; no rows are none.
func fewRows(n int) int {
	if n == 0 {
		return 0
	}
	rows := 1 << bits.Len(uint(n-1))
	if between := rows / 4 * 3; n <= between {
		return between
	}
	return rows
}

// padKeys rounds up to multiples of a quarter of a power of two. Positions that no branch has cost little, since the
// device skips what is masked.
func padKeys(n int) int {
	step := 16
	for n > 4*step {
		step *= 2
	}
	return roundUp(n, step)
}

func roundUp(n, step int) int { return (n + step - 1) / step * step }
