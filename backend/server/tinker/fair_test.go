package tinker

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

// queue asks for slots and says who has them.
type queue struct {
	*fair
	now   time.Time
	turns []*turn
	names map[*turn]string
}

func newQueue(slots int) *queue {
	return &queue{fair: newFair(slots), now: time.Now(), names: map[*turn]string{}}
}

// ask queues requests: tenant and run are a letter each.
func (q *queue) ask(list ...string) (last *turn) {
	for _, who := range list {
		last = q.fair.ask(who[:1], who[1:], q.now)
		q.turns, q.names[last] = append(q.turns, last), who
	}
	return last
}

// served removes those that have a slot from the requests, and returns them in the order in which they asked.
func (q *queue) served() (list []*turn, names string) {
	var waiting []*turn
	for _, t := range q.turns {
		select {
		case <-t.ready:
			list, names = append(list, t), names+" "+q.names[t]
		default:
			waiting = append(waiting, t)
		}
	}
	q.turns = waiting
	return list, strings.TrimSpace(names)
}

// drain serves one after the other at a cost each, and returns the order.
func (q *queue) drain(cost float64) string {
	var order []string
	for {
		list, names := q.served()
		if len(list) == 0 {
			return strings.Join(order, " ")
		}
		order = append(order, names)
		for _, t := range list {
			q.fair.release(t, cost, q.now)
		}
	}
}

func wantOrder(t *testing.T, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("served %s, want %s", got, want)
	}
}

// TestFair_Alternates: slots go to who has used the least, whoever asked first.
func TestFair_Alternates(t *testing.T) {
	q := newQueue(1)
	q.ask("a1", "a1", "a1", "a2", "b1", "b1", "b1")
	wantOrder(t, q.drain(10), "a1 b1 a2 b1 a1 b1 a1")
}

// TestFair_Quantum: runs are served one after the other while they are within a quantum, and then the one that waits.
func TestFair_Quantum(t *testing.T) {
	q := newQueue(4)
	q.quantum = 4
	q.ask("a1", "a1", "a1", "a1")
	for range 4 {
		q.ask("a1", "a2", "a3")
	}
	first, names := q.served()
	wantOrder(t, names, "a1 a1 a1 a1")
	// Run 1 goes on while it has used no more than the quantum.
	for i, want := range []string{
		"a1", "a1",
		"a2", // 5 now: run 2 is behind by more
		"a2", // it has a slot now, and run 3 none
	} {
		q.fair.release(first[i], []float64{1, 2, 2, 1}[i], q.now)
		_, names = q.served()
		wantOrder(t, names, want)
	}
}

// TestFair_Absent: who is absent for a while keeps what it is behind by, up to the credit, and who is absent for long
// begins with the others.
func TestFair_Absent(t *testing.T) {
	for _, c := range []struct {
		name     string
		absent   time.Duration
		used     float64 // by another meanwhile
		inFavour int     // that many times it is served before the other is
	}{
		{"behind", time.Second, 30, 3},
		{"behind by more than the credit", time.Second, 500, 6},
		{"absent for long", time.Hour, 30, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			q := newQueue(1)
			q.ask("a1")
			q.drain(0)
			q.ask("b1")
			q.drain(c.used)
			q.now = q.now.Add(c.absent)
			held := q.ask("b1")
			q.served()
			for range 8 {
				q.ask("b1", "a1")
			}
			q.fair.release(held, 0, q.now)
			got := q.drain(10)
			if n := strings.Index(got, "b1") / 3; n != c.inFavour {
				t.Errorf("a is served %d times before b, want %d: %s", n, c.inFavour, got)
			}
		})
	}
}

// TestFair_Newcomer: who comes while one has used much, and another little but is absent, is not served for as long as
// the first was.
func TestFair_Newcomer(t *testing.T) {
	q := newQueue(1)
	q.ask("b1")
	q.drain(10)
	q.ask("a1")
	q.drain(1000)
	q.ask("a1")
	q.drain(0)
	q.now = q.now.Add(time.Second)
	held := q.ask("a1")
	q.served()
	q.ask("c1", "a1", "c1", "a1", "c1", "a1")
	q.fair.release(held, 10, q.now)
	wantOrder(t, q.drain(10), "c1 a1 c1 a1 c1 a1")
}

// TestFair_Cancelled: who does not wait any more gets no slot.
func TestFair_Cancelled(t *testing.T) {
	q := newQueue(1)
	held := q.ask("a1")
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("gone")
	cancel(gone)
	if _, err := q.acquire(ctx, "b", "1"); !errors.Is(err, gone) {
		t.Errorf("the error is %v", err)
	}
	q.ask("a1")
	q.served()
	q.fair.release(held, 1, q.now)
	wantOrder(t, q.drain(1), "a1")
	for _, a := range q.tenants.by {
		if a.turns != 0 || a.slots != 0 {
			t.Errorf("an account has %d turns and %d slots", a.turns, a.slots)
		}
	}
}
