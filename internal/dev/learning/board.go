package learning

import (
	"context"
	"slices"
	"strconv"

	"github.com/goart-dev/art"
)

// board holds 'A' (the agent), 'B' (its opponent) or 0 for each cell of tic-tac-toe.
type board [9]byte

var rows = [8][3]int{{0, 1, 2}, {3, 4, 5}, {6, 7, 8}, {0, 3, 6}, {1, 4, 7}, {2, 5, 8}, {0, 4, 8}, {2, 4, 6}}

func (b *board) won(mark byte) bool {
	return slices.ContainsFunc(rows[:], func(r [3]int) bool {
		return b[r[0]] == mark && b[r[1]] == mark && b[r[2]] == mark
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

func (b *board) over() bool { return b.won('A') || b.won('B') || len(b.free()) == 0 }

// play makes the agent's move, and reports whether the reply is a legal one: one free cell, 1 to 9.
func (b *board) play(reply string) bool {
	cell, err := strconv.Atoi(reply)
	if err != nil || cell < 1 || cell > 9 || b[cell-1] != 0 {
		return false
	}
	b[cell-1] = 'A'
	return true
}

// begin starts the conversation of a game.
func begin(first bool) *art.Trajectory {
	t := art.NewTrajectory(art.System("Play tic-tac-toe."))
	if first {
		t.Add(art.User("Begin."))
	}
	return t
}

// Lines is how a player that does not leave anything to chance fares against every line of play.
type Lines struct {
	All, Lost, Illegal int
	// Defeats are the chats of the lines that were lost, up to the last reply of the player.
	Defeats []*art.Trajectory
	// Score is the exact expectation against an opponent for whose move each free cell is as likely: 1 for a win, 0.5 for
	// a draw, 0 for a loss or an illegal move.
	Score float64
}

// line is a game that goes on: the agent is to move.
type line struct {
	chat        *art.Trajectory
	board       board
	probability float64
}

// Reply answers a conversation, and appends the answer to it.
type Reply func(ctx context.Context, h *art.Trajectory) (string, error)

// Explore plays a player through every line of play from the empty board, on one side.
func Explore(ctx context.Context, player Reply, first bool) (*Lines, error) {
	r := &Lines{}
	open := []*line{{chat: begin(first), probability: 1}}
	if !first {
		open = r.answers(open[0])
	}
	for len(open) > 0 {
		replies := make([]string, len(open))
		index := make([]int, len(open))
		for i := range index {
			index[i] = i
		}
		_, err := art.Gather(ctx, index, func(ctx context.Context, i int) (_ *art.Trajectory, err error) {
			replies[i], err = player(ctx, open[i].chat)
			return open[i].chat, err
		}, &art.GatherOptions{Concurrency: 64})
		if err != nil {
			return nil, err
		}
		var next []*line
		for i, l := range open {
			next = append(next, r.move(l, replies[i])...)
		}
		open = next
	}
	return r, nil
}

// move makes the agent's move, and returns the lines that go on.
func (r *Lines) move(l *line, reply string) []*line {
	if !l.board.play(reply) {
		r.All++
		r.Illegal++
		r.Defeats = append(r.Defeats, l.chat)
		return nil
	}
	if l.board.over() {
		r.end(l)
		return nil
	}
	return r.answers(l)
}

// answers makes each move of the opponent, and returns the lines that go on.
func (r *Lines) answers(l *line) []*line {
	var open []*line
	free := l.board.free()
	for _, cell := range free {
		next := &line{chat: l.chat.Clone(), board: l.board, probability: l.probability / float64(len(free))}
		next.board[cell] = 'B'
		next.chat.Add(art.User(strconv.Itoa(cell + 1)))
		if next.board.over() {
			r.end(next)
			continue
		}
		open = append(open, next)
	}
	return open
}

// end counts a line that is over.
func (r *Lines) end(l *line) {
	r.All++
	switch {
	case l.board.won('A'):
		r.Score += l.probability
	case l.board.won('B'):
		r.Lost++
		r.Defeats = append(r.Defeats, l.chat)
	default:
		r.Score += l.probability / 2
	}
}
