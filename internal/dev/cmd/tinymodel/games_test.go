package main

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// turn is the board that the assistant sees, and its reply.
type turn struct {
	board board
	reply byte
}

// replay follows a game, and fails when a side names a cell that is not free or moves after the end. It returns the
// assistant's turns and the last board.
func replay(t *testing.T, e example) (turns []turn, last *board) {
	t.Helper()
	b := newBoard()
	mark := func(text string, mark byte) byte {
		if b.over() || len(text) != 1 || !slices.Contains(b.free(), text[0]) {
			t.Fatalf("illegal move %q of %c on %q", text, mark, b[:])
		}
		b[text[0]-'1'] = mark
		return text[0]
	}
	for i := 1; i < len(e.messages); i += 2 {
		if text := e.messages[i].Content; i > 1 || text != ticTacToeBegin {
			mark(text, 'O')
		}
		now := *b
		turns = append(turns, turn{now, mark(e.messages[i+1].Content, 'X')})
	}
	return turns, b
}

// TestTicTacToe_Rules replays games: each side names free cells in turn, and the last reply or the opponent's answer
// to it ends the game.
func TestTicTacToe_Rules(t *testing.T) {
	const games = 5000
	opponentFirst, ends := 0, map[string]int{}
	for _, e := range draws(games, ticTacToe) {
		turns, last := replay(t, e)
		if len(turns[0].board.free()) == 8 {
			opponentFirst++
		}
		ends[ending(last)]++
	}
	if opponentFirst < games*48/100 || opponentFirst > games*52/100 {
		t.Errorf("the opponent begins %d of %d games", opponentFirst, games)
	}
	if ends["going on"] > 0 || ends["won"] == 0 || ends["full"] == 0 || ends["lost"] == 0 {
		t.Errorf("ends of games: %v", ends)
	}
	t.Logf("ends of games: %v", ends)
}

// ending tells how a game ended, after the assistant's last move. "lost" is that one move of the opponent can end it.
func ending(b *board) string {
	switch {
	case b.won('X'):
		return "won"
	case len(b.free()) == 0:
		return "full"
	}
	for _, digit := range b.free() {
		next := *b
		next[digit-'1'] = 'O'
		if next.over() {
			return "lost"
		}
	}
	return "going on"
}

// TestTicTacToe_Uniform checks that no reply is preferred: on the empty board, on the boards after one mark, and on
// later boards by the rank of the reply among the free cells.
func TestTicTacToe_Uniform(t *testing.T) {
	var first [9]int
	answers, ranks := map[string][]int{}, map[int][]int{}
	for _, e := range draws(40_000, ticTacToe) {
		turns, _ := replay(t, e)
		for _, x := range turns {
			free, rank := x.board.free(), slices.Index(x.board.free(), x.reply)
			if len(free) == 9 {
				first[rank]++
			}
			count(ranks, len(free), rank, len(free))
			count(answers, string(x.board[:]), rank, len(free))
		}
	}
	checkUniform(t, "first move", first[:])
	for n, counts := range ranks {
		checkUniform(t, fmt.Sprintf("with %d free cells", n), counts)
	}
	for b, counts := range answers {
		if len(counts) == 8 {
			checkUniform(t, "on "+b, counts)
		}
	}
}

// count adds one to the counts of a key.
func count[K comparable](counts map[K][]int, key K, i, n int) {
	if counts[key] == nil {
		counts[key] = make([]int, n)
	}
	counts[key][i]++
}

// TestTicTacToe_NoSkill looks at boards where the assistant could win, or must stop the opponent: it does so no more
// often than chance would.
func TestTicTacToe_NoSkill(t *testing.T) {
	for _, mark := range []byte("XO") {
		hits, want, n := 0, 0.0, 0
		for _, e := range draws(20_000, ticTacToe) {
			turns, _ := replay(t, e)
			for _, x := range turns {
				good := winning(&x.board, mark)
				if len(good) == 0 {
					continue
				}
				n++
				want += float64(len(good)) / float64(len(x.board.free()))
				if slices.Contains(good, x.reply) {
					hits++
				}
			}
		}
		if off := (float64(hits) - want) / float64(n); n < 1000 || off > 0.01 || off < -0.01 {
			t.Errorf("%c completes a row on %d of %d boards, chance is %.0f", mark, hits, n, want)
		}
	}
}

// winning returns the free cells that complete a row of a mark.
func winning(b *board, mark byte) []byte {
	return slices.DeleteFunc(b.free(), func(digit byte) bool {
		next := *b
		next[digit-'1'] = mark
		return !next.won(mark)
	})
}

// TestGuesses checks that guesses lie in the range of the question, do not depend on hints, and that games stop when
// the guess is right.
func TestGuesses(t *testing.T) {
	firsts, seconds := make([]int, 10), make([]int, 10)
	for _, e := range append(draws(5000, guessNumber), draws(60_000, higherLower)...) {
		i := len(e.messages) % 2
		limits := digits.FindAllString(strings.ReplaceAll(e.messages[i].Content, "-", " "), -1)
		lo, hi := number(t, limits[0]), number(t, limits[1])
		for k := i + 1; k < len(e.messages); k += 2 {
			guess := number(t, e.messages[k].Content)
			if guess < lo || guess > hi {
				t.Fatalf("%d is not between %d and %d", guess, lo, hi)
			}
			if lo != 1 || hi != 10 {
				continue
			}
			if k == i+1 {
				firsts[guess-1]++
			} else if e.messages[i+2].Content == "higher" && k == i+3 && e.messages[i+1].Content == "5" {
				seconds[guess-1]++
			}
		}
	}
	checkUniform(t, "first guess", firsts)
	checkUniform(t, "guess after 5, higher", seconds)
}

var digits = regexp.MustCompile(`-?\d+`)

func number(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	if err != nil || strconv.Itoa(n) != text {
		t.Fatalf("%q is no plain number", text)
	}
	return n
}
