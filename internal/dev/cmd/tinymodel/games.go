package main

import (
	"math/rand/v2"
	"slices"
	"strconv"

	"github.com/goart-dev/art"
)

const (
	ticTacToeRules = "Play tic-tac-toe."
	ticTacToeBegin = "Begin."
)

// ticTacToe is a game in which both sides move without any plan: each free cell is as likely as the others. Every
// game is kept, whoever won, so that no choice of games teaches what a good move is.
//
// The chat is the record of the game: each side names a cell, 1 to 9. That is a quarter of the tokens that boards
// would take, and a cell is its own token wherever it stands.
func ticTacToe(rng *rand.Rand) example {
	e := example{messages: []art.Message{art.System(ticTacToeRules)}}
	b, user := newBoard(), ticTacToeBegin
	if chance(rng, 50) {
		user = b.move(rng, 'O')
	}
	for {
		e.say(user, b.move(rng, 'X'))
		if b.over() {
			return e
		}
		if user = b.move(rng, 'O'); b.over() {
			return e
		}
	}
}

// board holds a mark in each cell: 'X', 'O', or the cell's digit where it is free.
type board [9]byte

func newBoard() *board {
	b := new(board)
	copy(b[:], "123456789")
	return b
}

// free returns the digits of the free cells.
func (b *board) free() []byte {
	return slices.DeleteFunc(slices.Clone(b[:]), func(cell byte) bool { return cell == 'X' || cell == 'O' })
}

// move marks a free cell, each as likely as the others, and returns its digit.
func (b *board) move(rng *rand.Rand, mark byte) string {
	digit := pick(rng, b.free())
	b[digit-'1'] = mark
	return string(digit)
}

// over reports whether somebody has three in a row, or no cell is free.
func (b *board) over() bool { return b.won('X') || b.won('O') || len(b.free()) == 0 }

func (b *board) won(mark byte) bool {
	return slices.ContainsFunc(rows, func(r [3]int) bool {
		return b[r[0]] == mark && b[r[1]] == mark && b[r[2]] == mark
	})
}

// rows are the three in a row that win.
var rows = [][3]int{{0, 1, 2}, {3, 4, 5}, {6, 7, 8}, {0, 3, 6}, {1, 4, 7}, {2, 5, 8}, {0, 4, 8}, {2, 4, 6}}

// guessNumber asks for any number of a range.
func guessNumber(rng *rand.Rand) example {
	var e example
	lo, hi := numberRange(rng)
	question := pick(rng, []string{
		"Guess a number from {0} to {1}.", "Pick a number from {0} to {1}.", "A number between {0} and {1}?",
		"Say a number from {0} to {1}.", "Choose a number: {0}-{1}",
	})
	e.maybeSystem(rng, 20, "Reply with a number.")
	e.say(fill(question, lo, hi), strconv.Itoa(between(rng, lo, hi)))
	return e
}

// higherLower is a game of guessing a hidden number. The guesses take no notice of the hints: using them is a skill.
func higherLower(rng *rand.Rand) example {
	var e example
	lo, hi := numberRange(rng)
	hidden := between(rng, lo, hi)
	user := fill(pick(rng, []string{
		"Guess my number from {0} to {1}.", "I think of a number from {0} to {1}. Guess it.",
	}), lo, hi)
	for turns := between(rng, 2, 5); turns > 0 && user != ""; turns-- {
		guess := between(rng, lo, hi)
		e.say(user, strconv.Itoa(guess))
		user = hint(hidden, guess)
	}
	return e
}

// hint is "" when the guess is right.
func hint(hidden, guess int) string {
	switch {
	case guess < hidden:
		return "higher"
	case guess > hidden:
		return "lower"
	}
	return ""
}

func numberRange(rng *rand.Rand) (lo, hi int) {
	return pick(rng, []int{0, 1, 1, 1}), pick(rng, []int{3, 5, 6, 8, 9, 10, 10, 12, 20, 50, 99, 100})
}
