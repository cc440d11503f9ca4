package tenancy_test

import (
	"sync"
	"testing"

	"github.com/goart-dev/art/backend/server/internal/tenancy"
)

func TestBudget(t *testing.T) {
	b := tenancy.NewBudget(10)
	for i, c := range []struct {
		n, rest int64
		took    bool
		held    int64
	}{{6, 4, true, 6}, {1, 4, false, 6}, {4, 0, true, 10}, {1, 0, false, 10}, {0, 0, true, 10}} {
		if took := b.Take(c.n, c.rest); took != c.took || b.Held() != c.held {
			t.Errorf("%d: took %v, holds %d; want %+v", i, took, b.Held(), c)
		}
	}
	b.Add(5) // from before a restart: more than there may be
	if b.Take(0, 0) || b.Held() != 15 {
		t.Errorf("beyond the limit it takes more, and holds %d", b.Held())
	}
	b.Add(-15)
	if !b.Take(b.Limit(), 0) {
		t.Error("what was given back is not there")
	}
}

// TestLocks: one holder of each name at a time, and another name is free.
func TestLocks(t *testing.T) {
	var locks tenancy.Locks
	n := map[string]*int{"a": new(int), "b": new(int)}
	var all sync.WaitGroup
	for name, count := range n {
		for range 50 {
			all.Go(func() {
				for range 100 {
					unlock := locks.Lock(name)
					*count++
					unlock()
				}
			})
		}
	}
	all.Wait()
	if *n["a"] != 5000 || *n["b"] != 5000 {
		t.Errorf("counted %d and %d", *n["a"], *n["b"])
	}
	defer locks.Lock("a")()
	locks.Lock("b")()
}
