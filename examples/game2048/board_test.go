package main

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/goart-dev/art"
)

func TestSlide(t *testing.T) {
	for _, c := range []struct {
		move       string
		cells, end []int
	}{
		{"left", []int{0, 2, 2, 4, 4, 4}, []int{4, 0, 0, 8, 4, 0}},
		{"right", []int{0, 2, 2, 4, 4, 4}, []int{0, 0, 4, 0, 4, 8}},
		{"up", []int{2, 0, 8, 2, 4, 2}, []int{4, 4, 8, 0, 0, 2}},
		{"down", []int{2, 4, 8, 2, 0, 2}, []int{0, 0, 8, 4, 4, 2}},
		{"left", []int{2, 4, 2, 4, 2, 4}, []int{2, 4, 2, 4, 2, 4}},
		{"left", []int{2, 2, 4, 0, 0, 0}, []int{4, 4, 0, 0, 0, 0}}, // what has merged does not merge again
	} {
		b := &board{3, slices.Clone(c.cells)}
		if !b.slide(c.move) || !slices.Equal(b.cells, c.end) {
			t.Errorf("%v %s: %v, want %v", c.cells, c.move, b.cells, c.end)
		}
	}
	b := &board{2, []int{2, 0, 2, 0, 0, 0}} // three rows
	if b.slide("up"); !slices.Equal(b.cells, []int{4, 0, 0, 0, 0, 0}) {
		t.Errorf("three rows: %v", b.cells)
	}
	for _, reply := range []string{"", "Up", "up ", "up.", "no"} {
		if b.slide(reply) {
			t.Errorf("%q is taken for a move", reply)
		}
	}
}

func TestString(t *testing.T) {
	b := &board{3, []int{0, 2, 16, 4, 0, 128}}
	if got, want := b.String(), "  _|  2| 16\n  4|  _|128"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestOver(t *testing.T) {
	for _, c := range []struct {
		cells []int
		over  bool
	}{
		{[]int{0, 2, 8, 2}, false},
		{[]int{2, 2, 2, 2}, true}, // full, though tiles could merge
		{[]int{0, 0, 0, 16}, true},
	} {
		if got := (&board{2, c.cells}).over(16); got != c.over {
			t.Errorf("%v: over is %v", c.cells, got)
		}
	}
}

// The expected number is ART's formula, written out for a board of 16 cells and the target 128.
func TestReward(t *testing.T) {
	cells := make([]int, 16)
	copy(cells, []int{32, 16, 8, 4, 2, 2}) // the sum is 64
	want := (5.0-1)/(7-1) + 0.2*(6.0-1)/(11-1)
	if got := reward(&board{4, cells}, 128); math.Abs(got-want) > 1e-12 {
		t.Errorf("reward is %v, want %v", got, want)
	}
	cells[0] = 128
	if got := reward(&board{4, cells}, 128); got != 2 {
		t.Errorf("the target is worth %v", got)
	}
}

func TestPlayGame(t *testing.T) {
	useBoard(t, "2x3")
	rng := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct {
		reply string
		valid bool
	}{{"jump", false}, {"left", true}} {
		trajectory := art.NewTrajectory()
		choose := func(*board) (string, error) { return c.reply, nil }
		err := playGame(trajectory, newBoard(rows, columns, rng), rng, choose)
		m := trajectory.Metrics
		valid := m["invalid_move"] == 0
		if err != nil || m["num_moves"] < 1 || valid != c.valid || (trajectory.Reward != invalid) != c.valid {
			t.Errorf("%q: %v, reward %v, %v", c.reply, err, trajectory.Reward, m)
		}
	}
}

// A game costs a tile for each move, so that the greedy player is better than the random one by far.
func TestPlayers(t *testing.T) {
	useBoard(t, "2x3")
	wins := map[string]float64{}
	for name, player := range map[string]func(*board, *rand.Rand) string{"random": randomMove, "greedy": greedyMove} {
		rng := rand.New(rand.NewPCG(3, 4))
		for range 2000 {
			trajectory := art.NewTrajectory()
			choose := func(b *board) (string, error) { return player(b, rng), nil }
			err := playGame(trajectory, newBoard(rows, columns, rng), rng, choose)
			if err != nil || trajectory.Metrics["invalid_move"] > 0 {
				t.Fatal(err, trajectory.Metrics)
			}
			wins[name] += trajectory.Metrics["win"] / 2000
		}
	}
	if wins["random"] < 0.06 || wins["random"] > 0.14 || wins["greedy"] < 0.4 || wins["greedy"] > 0.52 {
		t.Errorf("shares of games won: %v", wins)
	}
}

func TestValidate(t *testing.T) {
	for _, s := range []string{"", "3", "x", "1x4", "3x1", "9x9", "-2x-2"} {
		*size = s
		if validate() == nil {
			t.Errorf("%q is taken for a size", s)
		}
	}
	useBoard(t, "4x3")
	if rows != 4 || columns != 3 {
		t.Errorf("4x3 is read as %d, %d", rows, columns)
	}
	*target = 24
	if validate() == nil {
		t.Error("24 is taken for a power of 2")
	}
	*target = 16
}

// useBoard sets the flag for a test.
func useBoard(t *testing.T, s string) {
	t.Helper()
	*size = s
	t.Cleanup(func() { *size = "2x3" })
	if err := validate(); err != nil {
		t.Fatal(err)
	}
}
