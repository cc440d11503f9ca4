package tinker

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"
)

// fair hands out slots of work to tenants and, within a tenant, to runs. A free slot goes to the tenant, and there to
// the run, that has used the least.
//
// Who comes begins where those are that are served, so that nobody saves up (start-time fair queuing, Goyal et al.
// 1996). But clients turn from sampling to training and back, so that who is absent for a while is not idle: it keeps
// what it is behind by, up to credit.
//
// Who has slots keeps them until the others are behind by more than quantum (deficit round robin, Shreedhar and
// Varghese 1995): the engine decodes one adapter at a time, so that slots which all runs share would make many small
// batches.
type fair struct {
	mu              sync.Mutex
	free            int
	quantum, credit float64 // in units of cost
	waiting         []*turn
	tenants         accounts
}

// accounts are those of all tenants, or of the runs of one.
type accounts struct {
	served float64 // the most that one had used when it got a slot: the virtual time of fair queuing
	by     map[string]*account
}

// account is what a tenant or a run has used.
type account struct {
	among *accounts
	used  float64 // in any unit of cost
	turns int     // that it has or waits for
	slots int     // that it has
	last  time.Time
	runs  accounts // of a tenant
}

// turn is a request for a slot.
type turn struct {
	accounts [2]*account // of the tenant and of the run
	ready    chan struct{}
}

const (
	// fairQuantum is the quantum of each slot, in seconds.
	fairQuantum = 5
	// fairCredit is the credit for each slot, in seconds.
	fairCredit = 60
	// forgotten is how long who is absent is remembered.
	forgotten = time.Minute
)

func newFair(slots int) *fair {
	n := float64(slots)
	return &fair{free: slots, quantum: fairQuantum * n, credit: fairCredit * n}
}

func (f *fair) acquire(ctx context.Context, tenant, run string) (*turn, error) {
	t := f.ask(tenant, run, time.Now())
	select {
	case <-t.ready:
		return t, nil
	case <-ctx.Done():
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if at := slices.Index(f.waiting, t); at >= 0 {
		f.waiting = slices.Delete(f.waiting, at, at+1)
		for _, a := range t.accounts {
			a.turns--
		}
		return nil, context.Cause(ctx)
	}
	return t, nil // it was given at the same moment
}

// ask queues a request for a slot.
func (f *fair) ask(tenant, run string, now time.Time) *turn {
	f.mu.Lock()
	defer f.mu.Unlock()
	of := f.open(&f.tenants, tenant, now)
	t := &turn{[2]*account{of, f.open(&of.runs, run, now)}, make(chan struct{})}
	for _, a := range t.accounts {
		a.turns++
	}
	f.waiting = append(f.waiting, t)
	f.dispatch()
	return t
}

// open returns an account, which does not lie behind those that are served further than it may. mu is held.
func (f *fair) open(list *accounts, key string, now time.Time) *account {
	maps.DeleteFunc(list.by, func(_ string, a *account) bool { return a.turns == 0 && now.Sub(a.last) > forgotten })
	a := list.by[key]
	if a == nil {
		if list.by == nil {
			list.by = map[string]*account{}
		}
		a = &account{among: list, used: list.served}
		list.by[key] = a
	}
	if a.last = now; a.turns == 0 {
		a.used = max(a.used, list.served-f.credit)
	}
	return a
}

// do runs work in a slot, at the cost of the seconds that it takes.
func (f *fair) do(ctx context.Context, tenant, run string, work func()) (seconds float64, err error) {
	t, err := f.acquire(ctx, tenant, run)
	if err != nil {
		return 0, err
	}
	began := time.Now()
	defer func() {
		seconds = time.Since(began).Seconds()
		f.release(t, seconds, time.Now())
	}()
	work()
	return 0, nil
}

// release gives a slot back, and charges what it cost.
func (f *fair) release(t *turn, cost float64, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.free++
	for _, a := range t.accounts {
		a.turns, a.slots, a.used, a.last = a.turns-1, a.slots-1, a.used+cost, now
	}
	f.dispatch()
}

// dispatch gives free slots to who has used the least. mu is held.
func (f *fair) dispatch() {
	for f.free > 0 && len(f.waiting) > 0 {
		best := 0
		for i, t := range f.waiting {
			if f.before(t, f.waiting[best]) {
				best = i
			}
		}
		t := f.waiting[best]
		f.waiting = slices.Delete(f.waiting, best, best+1)
		f.free--
		for _, a := range t.accounts {
			a.slots++
			a.among.served = max(a.among.served, a.used)
		}
		close(t.ready)
	}
}

// before reports whether a is served before b, which was asked for earlier or is a.
func (f *fair) before(a, b *turn) bool {
	level := 0
	if a.accounts[0] == b.accounts[0] {
		level = 1
	}
	return f.load(a.accounts[level]) < f.load(b.accounts[level])
}

// load is what a tenant or a run has used, less the quantum of who has slots.
func (f *fair) load(a *account) float64 {
	if a.slots > 0 {
		return a.used - f.quantum
	}
	return a.used
}
