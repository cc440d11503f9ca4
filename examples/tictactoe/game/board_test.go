package game

import "testing"

func TestBoard(t *testing.T) {
	var b board
	for _, reply := range []string{"", "0", "10", "x", "5 ", "five"} {
		if b.play(reply) {
			t.Errorf("%q is taken for a move", reply)
		}
	}
	if !b.play("5") || b.play("5") || len(b.free()) != 8 {
		t.Error("a cell is taken once")
	}
	for _, l := range lines {
		var b board
		for _, cell := range l {
			if b.over() {
				t.Errorf("line %v: over too early", l)
			}
			b[cell] = 'O'
		}
		if !b.won('O') || b.won('X') || !b.over() {
			t.Errorf("line %v: not won", l)
		}
	}
}

func TestSharp(t *testing.T) {
	first := func(int) int { return 0 }
	b := board{'X', 'O', 'O', 0, 'O', 0, 0, 'X', 'X'}
	if cell := Sharp(first)(&b); cell != 6 {
		t.Errorf("plays %d, want 6: it wins", cell)
	}
	if cell := Random(first)(&b); cell != 3 {
		t.Errorf("plays %d, want the first free cell", cell)
	}
	b[6] = 'X'
	if cell := Sharp(first)(&b); cell != 3 {
		t.Errorf("plays %d, want the first free cell: nothing wins", cell)
	}
	if b[3] != 0 {
		t.Error("looking ahead moved a mark")
	}
}
