package game

import (
	"slices"
	"strconv"
)

// board holds 'X' (the agent), 'O' (its opponent) or 0 for each cell.
type board [9]byte

var lines = [8][3]int{{0, 1, 2}, {3, 4, 5}, {6, 7, 8}, {0, 3, 6}, {1, 4, 7}, {2, 5, 8}, {0, 4, 8}, {2, 4, 6}}

func (b *board) won(mark byte) bool {
	return slices.ContainsFunc(lines[:], func(l [3]int) bool {
		return b[l[0]] == mark && b[l[1]] == mark && b[l[2]] == mark
	})
}

func (b *board) free() (cells []int) {
	for i, mark := range b {
		if mark == 0 {
			cells = append(cells, i)
		}
	}
	return cells
}

func (b *board) over() bool { return b.won('X') || b.won('O') || len(b.free()) == 0 }

// play makes the agent's move, and reports whether the reply is a legal one: one free cell, 1 to 9.
func (b *board) play(reply string) bool {
	cell, err := strconv.Atoi(reply)
	if err != nil || cell < 1 || cell > 9 || b[cell-1] != 0 {
		return false
	}
	b[cell-1] = 'X'
	return true
}

// Opponent chooses a free cell.
type Opponent func(*board) int

// Random moves at random: intn is that of [rand.Rand].
func Random(intn func(int) int) Opponent {
	return func(b *board) int { free := b.free(); return free[intn(len(free))] }
}

// Sharp wins where it can, and moves at random otherwise.
func Sharp(intn func(int) int) Opponent {
	return func(b *board) int {
		for _, cell := range b.free() {
			next := *b
			if next[cell] = 'O'; next.won('O') {
				return cell
			}
		}
		return Random(intn)(b)
	}
}
