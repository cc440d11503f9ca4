// Package game is the task of the example tictactoe: the game, opponents, and the agent that plays it.
package game

import (
	"context"
	"slices"
	"strconv"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/model/tiny"
)

// Rewards of a game. A draw is worth nearly a win; Illegal is that of a reply that is no move.
const (
	Win     = 1.0
	Draw    = 0.8
	Loss    = 0.0
	Illegal = -0.5
)

// begin starts the conversation of a game. The built-in model knows what a move looks like; others get the rules and
// examples.
func begin(model *art.Model) *art.Trajectory {
	if model.Options().Base == tiny.Name {
		return art.NewTrajectory(art.System("Play tic-tac-toe."))
	}
	return art.NewTrajectory(
		art.System("We play tic-tac-toe. The cells are numbered 1 to 9, row by row. Reply with the number of a free cell,"+
			" nothing else."),
		art.User("Begin."), art.Assistant("5"), art.User("1"), art.Assistant("3"), art.User("7"), art.Assistant("4"),
		art.User("A new game."), art.Assistant("Ready."),
	)
}

// Play is the agent: an ordinary loop around a chat. first is set when it moves first.
func Play(
	ctx context.Context, model *art.Model, first bool, next Opponent, opts *art.ChatOptions,
) (*art.Trajectory, error) {
	t := begin(model)
	var b board
	message, legal, moves := "Begin.", true, 0.0
	for turn := 0; legal && !b.over(); turn++ {
		if turn > 0 || !first {
			cell := next(&b)
			b[cell] = 'O'
			message = strconv.Itoa(cell + 1)
		}
		t.Add(art.User(message))
		if b.over() {
			break
		}
		reply, err := model.Chat(ctx, t, opts)
		if err != nil {
			return nil, err
		}
		moves++
		legal = b.play(reply.Content)
	}
	switch t.Reward = Draw; {
	case !legal:
		t.Reward = Illegal
	case b.won('O'):
		t.Reward = Loss
	case b.won('X'):
		t.Reward = Win
	}
	t.Metrics = map[string]float64{"moves": moves, "illegal": 0, "not_lost": 0, "won": 0}
	if t.Reward >= Draw {
		t.Metrics["not_lost"] = 1
		if t.Reward == Win {
			t.Metrics["won"] = 1
		}
	} else if !legal {
		t.Metrics["illegal"] = 1
	}
	return t, nil
}

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
