package backendtest

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"testing"
	"time"

	"github.com/goart-dev/art"
)

// patience bounds a test. It is long: a real model may have to compile graphs.
const patience = 4 * time.Minute

// subtest is a test that a defective backend can only fail: it runs on a goroutine of its own, so that a call that
// never returns can be given up, and a panic is a failure. What comes from it after its end is dropped.
type subtest struct {
	*testing.T
	mu    sync.Mutex
	over  bool
	inner int // tests within this one that are running
}

// tests runs named tests of a backend in their order, until one of them has to be given up.
func tests(t *testing.T, b art.Backend, list []named) {
	for _, test := range list {
		if !runSubtest(t, test.name, func(t *subtest) { test.run(t, b) }) {
			t.Fatalf("the tests after %s did not run", test.name)
		}
	}
}

type named struct {
	name string
	run  func(*subtest, art.Backend)
}

// runSubtest runs a test. It returns false when a call did not return.
func runSubtest(t *testing.T, name string, test func(*subtest)) (returned bool) {
	t.Run(name, func(t *testing.T) { returned = (&subtest{T: t}).supervise(timeLimit(t), test) })
	return returned
}

// Run runs a test within a test.
func (t *subtest) Run(name string, test func(*subtest)) {
	t.count(1)
	defer t.count(-1)
	runSubtest(t.T, name, test)
}

func (t *subtest) count(n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.inner += n
}

// supervise runs the test until it ends or takes too long, and returns false then.
func (t *subtest) supervise(limit time.Duration, test func(*subtest)) (returned bool) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := protect(func() error { test(t); return nil }); err != nil {
			t.Errorf("%v", err)
		}
	}()
	for !ended(done, limit) {
		if t.giveUp(false) {
			t.T.Errorf("the test did not end within %v: a call of the backend does not return", limit)
			return false
		}
	}
	t.giveUp(true)
	return true
}

// giveUp drops what the test reports from now on, unless it waits for tests within it.
func (t *subtest) giveUp(always bool) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.over = always || t.inner == 0
	return t.over
}

func ended(done <-chan struct{}, limit time.Duration) bool {
	select {
	case <-done:
		return true
	case <-time.After(limit):
		return false
	}
}

// timeLimit is how long a call or a test may take: less than patience where go test ends earlier.
func timeLimit(t *testing.T) time.Duration {
	if deadline, ok := t.Deadline(); ok {
		return min(patience, time.Until(deadline)/3)
	}
	return patience
}

// protect returns what do returns, and its panic as an error.
func protect(do func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v\n%s", r, debug.Stack())
		}
	}()
	return do()
}

// Errorf implements [testing.TB], as the methods below do.
func (t *subtest) Errorf(format string, args ...any) {
	t.Helper()
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.over {
		t.T.Errorf(format, args...)
	}
}

func (t *subtest) Error(args ...any) {
	t.Helper()
	t.Errorf("%s", fmt.Sprint(args...))
}

func (t *subtest) Fatalf(format string, args ...any) {
	t.Helper()
	t.Errorf(format, args...)
	runtime.Goexit()
}

func (t *subtest) Fatal(args ...any) {
	t.Helper()
	t.Fatalf("%s", fmt.Sprint(args...))
}

func (t *subtest) Logf(format string, args ...any) {
	t.Helper()
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.over {
		t.T.Logf(format, args...)
	}
}

// Skipf marks the test as skipped and ends it.
func (t *subtest) Skipf(format string, args ...any) {
	t.Helper()
	t.mu.Lock()
	over := t.over
	t.mu.Unlock()
	if over {
		runtime.Goexit()
	}
	t.T.Skipf(format, args...)
}

// opened opens a backend that is closed when t ends.
func opened(t *testing.T, open func(*testing.T) art.Backend) art.Backend {
	t.Helper()
	b := open(t)
	if b == nil {
		t.Fatal("open returned no backend")
	}
	t.Cleanup(func() {
		done, limit := make(chan struct{}), timeLimit(t)
		go func() {
			defer close(done)
			_ = protect(b.Close) // what it must return is tested by Close
		}()
		if !ended(done, limit) {
			t.Errorf("Close did not return within %v", limit)
		}
	})
	return b
}
