// Package pool runs loops on a fixed set of workers.
//
// The goroutine that calls [Pool.For] works too, and waits only for iterations that another goroutine is running. So a
// loop may run inside of a loop, several may run at once, and none can wait for another: there is no deadlock.
package pool

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A goroutine that waits for a loop, or for its end, spins for a while before it sleeps. To wake it takes from 60 us
// to more than a millisecond, and the loops of a graph take as long, or less. Workers often wait for the last iteration
// of a long loop, which takes milliseconds.
const (
	spinTime = 5 * time.Millisecond
	looks    = 32 // between two offers to let another goroutine run: 1.9 us on a Cascade Lake
	pauses   = 8  // rounds of the pause instruction between two looks
	offers   = 4  // to let another goroutine run, between two offers to let another process run
)

// Pool is a set of workers. Its methods may be called from several goroutines. Nil is a pool of the caller alone.
type Pool struct {
	workers int
	mu      sync.Mutex
	wake    sync.Cond
	loops   []*loop       // that may have iterations left
	posted  atomic.Uint64 // number of loops so far; a worker that spins watches it
	closed  bool
}

// loop is a call of For.
type loop struct {
	body    func(i int)
	n       int64
	taken   atomic.Int64 // iterations that somebody took
	first   atomic.Int64 // of them, the ones from the beginning on
	last    atomic.Int64 // and from the end on
	left    atomic.Int64 // iterations that are not finished
	done    chan struct{}
	failure atomic.Pointer[failure]
}

// failure is a panic of a body.
type failure struct{ value any }

// New returns a pool of so many workers, the caller of For included. 0 is as many as the process may use.
func New(workers int) *Pool {
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	p := &Pool{workers: workers}
	p.wake.L = &p.mu
	for range workers - 1 {
		go p.work()
	}
	return p
}

// Workers is the number of goroutines that can run a loop at once.
func (p *Pool) Workers() int {
	if p == nil {
		return 1
	}
	return p.workers
}

// Close ends the workers. Loops that run are finished by their callers, and so are later ones.
func (p *Pool) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	p.posted.Add(1)
	p.wake.Broadcast()
}

// For calls body(i) for each i of [0, n), in no order and on several workers, and returns when all calls did. A panic
// in body is raised again by For, after the calls that run; those that did not begin are left out.
func (p *Pool) For(n int, body func(i int)) {
	if n <= 1 || p.Workers() == 1 {
		for i := range n {
			body(i)
		}
		return
	}
	l := &loop{body: body, n: int64(n), done: make(chan struct{})}
	l.left.Store(int64(n))
	p.post(l)
	l.run(func() int64 { return l.first.Add(1) - 1 })
	p.retire(l)
	l.wait()
	if f := l.failure.Load(); f != nil {
		panic(f.value)
	}
}

func (p *Pool) post(l *loop) {
	p.mu.Lock()
	p.loops = append(p.loops, l)
	p.posted.Add(1)
	p.mu.Unlock()
	for range min(int64(p.workers), l.n) - 1 {
		p.wake.Signal()
	}
}

// retire takes a loop without iterations left from the list.
func (p *Pool) retire(l *loop) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(p.loops, l); i >= 0 {
		p.loops = slices.Delete(p.loops, i, i+1) // which forgets the loop, and what its body holds
	}
}

// work is the life of a worker.
func (p *Pool) work() {
	for {
		seen := p.posted.Load()
		if l := p.find(); l != nil {
			l.run(func() int64 { return l.n - l.last.Add(1) })
			continue
		}
		if p.await(seen) {
			return
		}
	}
}

// find returns the newest loop that has iterations left: an inner loop goes before the one that waits for it.
func (p *Pool) find() *loop {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := len(p.loops) - 1; i >= 0; i-- {
		if l := p.loops[i]; l.taken.Load() < l.n {
			return l
		}
	}
	return nil
}

// await returns when a loop was posted after the first seen, and reports whether the pool is closed.
func (p *Pool) await(seen uint64) bool {
	if spin(func() bool { return p.posted.Load() != seen }) {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.posted.Load() == seen && !p.closed {
		p.wake.Wait()
	}
	return p.closed
}

// spin looks for a while whether something happened, and reports whether it did.
func spin(happened func() bool) bool {
	start := time.Now()
	for n := 1; time.Since(start) < spinTime; n++ {
		for range looks {
			if happened() {
				return true
			}
			pause(pauses)
		}
		runtime.Gosched()
		if n%offers == 0 {
			yield()
		}
	}
	return false
}

// run takes iterations until none is left. The goroutine that asked for the loop takes the first ones, and others the
// last ones: so the next loop over the same memory finds it, by and large, in the caches of the same cores.
func (l *loop) run(next func() int64) {
	for l.taken.Add(1) <= l.n {
		l.call(int(next()))
	}
}

func (l *loop) call(i int) {
	defer func() {
		if value := recover(); value != nil {
			l.failure.CompareAndSwap(nil, &failure{value})
			skipped := l.n - min(l.n, l.taken.Swap(l.n))
			l.finish(skipped)
		}
		l.finish(1)
	}()
	l.body(i)
}

func (l *loop) finish(n int64) {
	if n > 0 && l.left.Add(-n) == 0 {
		close(l.done)
	}
}

// wait returns when all iterations are finished.
func (l *loop) wait() {
	if !spin(func() bool { return l.left.Load() == 0 }) {
		<-l.done
	}
}
