package servertest

import (
	"net/http"
	"strings"
	"sync"
)

// faults cuts connections of rollouts: before a request is served, or in the middle of the answer. Other requests have
// no faults.
type faults struct {
	next    http.Handler
	dice    *dice
	mu      sync.Mutex
	cuts    int
	running map[string]int // requests, by rollout
	ended   *sync.Cond     // a request has, by mu. A WaitGroup must not be added to while it is waited for
}

func newFaults(next http.Handler, dice *dice) *faults {
	f := &faults{next: next, dice: dice, running: map[string]int{}}
	f.ended = sync.NewCond(&f.mu)
	return f
}

// ServeHTTP implements [http.Handler].
func (f *faults) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	rest, played := strings.CutPrefix(r.URL.Path, "/r/")
	if !played {
		f.next.ServeHTTP(w, r)
		return
	}
	id, _, _ := strings.Cut(rest, "/")
	f.count(id, 1)
	defer f.count(id, -1)
	if f.dice.roll(0.02) {
		f.cut()
	}
	out := &cutWriter{ResponseWriter: w, faults: f, left: -1}
	if f.dice.roll(0.04) {
		out.left = f.dice.below(400)
	}
	f.next.ServeHTTP(out, r)
}

// count adds to the requests of a rollout that are being served.
func (f *faults) count(id string, n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.running[id] += n
	f.ended.Broadcast()
}

// wait returns when no request of a rollout is being served.
func (f *faults) wait(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for f.running[id] > 0 {
		f.ended.Wait()
	}
}

// cut closes the connection.
func (f *faults) cut() {
	f.mu.Lock()
	f.cuts++
	f.mu.Unlock()
	panic(http.ErrAbortHandler)
}

// cutWriter closes the connection after some bytes.
type cutWriter struct {
	http.ResponseWriter
	faults *faults
	left   int // bytes; negative is never
}

// Write implements [http.ResponseWriter].
func (w *cutWriter) Write(data []byte) (int, error) {
	if w.left < 0 {
		return w.ResponseWriter.Write(data)
	}
	if w.left < len(data) {
		_, _ = w.ResponseWriter.Write(data[:w.left])
		_ = http.NewResponseController(w.ResponseWriter).Flush() // the client has the beginning
		w.faults.cut()
	}
	w.left -= len(data)
	return w.ResponseWriter.Write(data)
}

// Unwrap is for [http.ResponseController].
func (w *cutWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
