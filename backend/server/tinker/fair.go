package tinker

import (
	"context"
	"slices"
	"sync"
	"time"
)

// fair hands out slots of work to tenants and, within a tenant, to runs. A free slot goes to the tenant, and there to
// the run, that has used the least; who has been idle does not save up: it begins where the least used of those at work
// is (start-time fair queuing, Goyal et al. 1996). Who has slots keeps them until the others are behind by more than
// quantum (deficit round robin, Shreedhar and Varghese 1995): the engine decodes one adapter at a time, so that slots
// which all runs share would make many small batches.
type fair struct {
	mu      sync.Mutex
	free    int
	quantum float64
	waiting []*turn
	running map[string]int
	used    map[string]float64 // by tenant, and by tenant and run; in any unit of cost
}

// turn is a request for a slot.
type turn struct {
	tenant, run string
	ready       chan struct{}
}

// fairQuantum is the quantum of each slot, in seconds.
const fairQuantum = 1

func newFair(slots int) *fair {
	return &fair{
		free: slots, quantum: fairQuantum * float64(slots), running: map[string]int{}, used: map[string]float64{},
	}
}

// acquire waits for a slot.
func (f *fair) acquire(ctx context.Context, tenant, run string) (*turn, error) {
	t := &turn{tenant: tenant, run: run, ready: make(chan struct{})}
	f.mu.Lock()
	f.catchUp(tenant, run)
	f.waiting = append(f.waiting, t)
	f.dispatch()
	f.mu.Unlock()
	select {
	case <-t.ready:
		return t, nil
	case <-ctx.Done():
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if at := slices.Index(f.waiting, t); at >= 0 {
		f.waiting = slices.Delete(f.waiting, at, at+1)
		return nil, context.Cause(ctx)
	}
	return t, nil // it was given at the same moment
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
		f.release(t, seconds)
	}()
	work()
	return 0, nil
}

// release gives a slot back, and charges what it cost.
func (f *fair) release(t *turn, cost float64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.free++
	f.count(t, -1)
	f.used[t.tenant] += cost
	f.used[t.key()] += cost
	f.dispatch()
	f.forget()
}

// key names a run of a tenant. A name of a tenant has no slash.
func (t *turn) key() string { return t.tenant + "/" + t.run }

func (f *fair) count(t *turn, n int) {
	f.running[t.tenant] += n
	f.running[t.key()] += n
}

// catchUp raises what an idle tenant and an idle run have used to the least of the others at work. mu is held.
func (f *fair) catchUp(tenant, run string) {
	t := &turn{tenant: tenant, run: run}
	f.raise(tenant, func(other *turn) (string, bool) { return other.tenant, true })
	f.raise(t.key(), func(other *turn) (string, bool) { return other.key(), other.tenant == tenant })
}

// raise raises one count, if who has it is idle.
func (f *fair) raise(key string, of func(*turn) (string, bool)) {
	if f.running[key] > 0 {
		return
	}
	least, found := 0.0, false
	for _, other := range f.waiting {
		k, ok := of(other)
		if k == key {
			return // it waits already
		}
		if ok && (!found || f.used[k] < least) {
			least, found = f.used[k], true
		}
	}
	f.used[key] = max(f.used[key], least)
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
		f.count(t, 1)
		close(t.ready)
	}
}

// before reports whether a is served before b, which was asked for earlier or is a.
func (f *fair) before(a, b *turn) bool {
	if a.tenant != b.tenant {
		x, y := f.load(a.tenant), f.load(b.tenant)
		return x < y
	}
	return f.load(a.key()) < f.load(b.key())
}

// load is what a tenant or a run has used, less the quantum of who has slots.
func (f *fair) load(key string) float64 {
	if f.running[key] > 0 {
		return f.used[key] - f.quantum
	}
	return f.used[key]
}

// forget drops counts when nobody works, so that they do not grow with the number of runs.
func (f *fair) forget() {
	for _, n := range f.running {
		if n > 0 {
			return
		}
	}
	if len(f.waiting) == 0 {
		clear(f.used)
		clear(f.running)
	}
}
