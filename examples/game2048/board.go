package main

import (
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

// moves are the words that the agent may reply with.
var moves = []string{"up", "down", "left", "right"}

// board holds the value of each tile, row by row; 0 is an empty cell.
type board struct {
	columns int
	cells   []int
}

func newBoard(rows, columns int, rng *rand.Rand) *board {
	b := &board{columns, make([]int, rows*columns)}
	b.spawn(rng)
	b.spawn(rng)
	return b
}

// spawn puts a 2 or, in one of ten cases, a 4 into an empty cell. There is one.
func (b *board) spawn(rng *rand.Rand) {
	cells, tile := b.empty(), 2
	at := cells[rng.IntN(len(cells))]
	if rng.IntN(10) == 0 {
		tile = 4
	}
	b.cells[at] = tile
}

func (b *board) empty() (cells []int) {
	for i, cell := range b.cells {
		if cell == 0 {
			cells = append(cells, i)
		}
	}
	return cells
}

func (b *board) highest() int { return slices.Max(b.cells) }

func (b *board) sum() (total int) {
	for _, cell := range b.cells {
		total += cell
	}
	return total
}

// over reports whether the target is reached or no cell is empty. A full board ends the game even where tiles could
// merge.
func (b *board) over(target int) bool { return b.highest() >= target || len(b.empty()) == 0 }

// slide moves all tiles and merges equal ones that meet, each once. It reports whether the word is a move. A move that
// changes nothing is legal, and the game adds a tile after it too.
func (b *board) slide(move string) bool {
	if !slices.Contains(moves, move) {
		return false
	}
	for _, line := range b.lines(move) {
		b.slideLine(line)
	}
	return true
}

// lines returns the indices of the cells of each row or column, beginning at the side that tiles move to.
func (b *board) lines(move string) [][]int {
	count, length, across, along := len(b.cells)/b.columns, b.columns, b.columns, 1
	if move == "up" || move == "down" {
		count, length, across, along = length, count, along, across
	}
	lines := make([][]int, count)
	for i := range lines {
		for j := range length {
			lines[i] = append(lines[i], i*across+j*along)
		}
		if move == "down" || move == "right" {
			slices.Reverse(lines[i])
		}
	}
	return lines
}

// slideLine moves the tiles of one line towards its first cell.
func (b *board) slideLine(line []int) {
	var tiles []int
	merged := false
	for _, i := range line {
		last := len(tiles) - 1
		switch tile := b.cells[i]; {
		case tile == 0:
		case last >= 0 && tiles[last] == tile && !merged:
			tiles[last], merged = 2*tile, true
		default:
			tiles, merged = append(tiles, tile), false
		}
	}
	for j, i := range line {
		b.cells[i] = 0
		if j < len(tiles) {
			b.cells[i] = tiles[j]
		}
	}
}

// String draws the board: a line for each row, cells right-aligned between bars, "_" where there is no tile.
func (b *board) String() string {
	width := len(strconv.Itoa(b.highest()))
	var text strings.Builder
	for i, cell := range b.cells {
		switch {
		case i == 0:
		case i%b.columns == 0:
			text.WriteByte('\n')
		default:
			text.WriteByte('|')
		}
		tile := "_"
		if cell > 0 {
			tile = strconv.Itoa(cell)
		}
		text.WriteString(strings.Repeat(" ", width-len(tile)) + tile)
	}
	return text.String()
}

// randomMove is the player who does not look at the board.
func randomMove(_ *board, rng *rand.Rand) string { return moves[rng.IntN(len(moves))] }

// greedyMove is the player who looks one move ahead: it takes a move that leaves the most cells empty, and one that
// changes nothing only if there is no other.
func greedyMove(b *board, rng *rand.Rand) string {
	best, most := "", -2
	for _, i := range rng.Perm(len(moves)) {
		next := &board{b.columns, slices.Clone(b.cells)}
		next.slide(moves[i])
		left := len(next.empty())
		if slices.Equal(next.cells, b.cells) {
			left = -1
		}
		if left > most {
			best, most = moves[i], left
		}
	}
	return best
}

// invalid is the reward of a game that ended with a reply that is no move.
const invalid = -1.0

// reward says how good the end of a game is. With the target W:
//
//	W is reached: 2
//	otherwise: (log2 highest - 1) / (log2 W - 1) + 0.2 (log2 sum - 1) / (log2 (cells W) - 1)
//
// The highest tile counts most. The sum of all tiles, which grows with every move, makes the rewards of a group differ.
// This is ART's reward for this game, whose boards have 16 cells.
func reward(b *board, target int) float64 {
	if b.highest() >= target {
		return 2
	}
	fraction := func(value, of int) float64 {
		return (math.Log2(float64(value)) - 1) / (math.Log2(float64(of)) - 1)
	}
	return fraction(b.highest(), target) + 0.2*fraction(b.sum(), len(b.cells)*target)
}
