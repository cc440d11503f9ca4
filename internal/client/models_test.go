package client

import (
	"errors"
	"slices"
	"testing"

	"github.com/goart-dev/art"
)

// TestModels: what is registered is found until it is removed, and after Close by Known only.
func TestModels(t *testing.T) {
	l, a, b, c := NewModels[int](), art.NewModel("a", nil), art.NewModel("b", nil), art.NewModel("c", nil)
	for i, m := range []*art.Model{a, b, c} {
		if err := l.Add(m, i, m != b); err != nil {
			t.Fatal(err)
		}
	}
	l.Remove(b)
	if e, err := l.Get("x", c); e != 2 || err != nil || !slices.Equal(l.All(), []*art.Model{a, c}) {
		t.Errorf("entry %d of %v: %v", e, l.All(), err)
	}
	if _, err := l.Get("x", b); !errors.Is(err, art.ErrNotRegistered) {
		t.Errorf("of a model that was removed: %v", err)
	}
	if entries, first := l.Close(); len(entries) != 2 || !first {
		t.Errorf("closed with %v, for the first time: %v", entries, first)
	}
	if e, err := l.Known("x", c); e != 2 || err != nil {
		t.Errorf("entry %d after Close: %v", e, err)
	}
	_, err := l.Get("x", c)
	if _, first := l.Close(); first || !errors.Is(err, art.ErrClosed) || !errors.Is(l.Add(b, 1, true), art.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}
