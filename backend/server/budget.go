package server

import (
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/goart-dev/art/internal/wire"
)

// freeBody is the number of bytes of each body that are not counted, about what a connection takes anyway. It admits
// requests of the usual size while a few large ones exhaust the budget.
const freeBody = 64 << 10

// retryAfter is the Retry-After header of a request that exceeds the budget, in seconds.
const retryAfter = 5

// budget limits a number: the bytes of all bodies in memory, or the requests under way.
type budget struct {
	limit int64
	held  atomic.Int64
}

// take takes n from the budget and reports whether it had them.
func (b *budget) take(n int64) bool {
	if b.held.Add(n) <= b.limit {
		return true
	}
	b.release(n)
	return false
}

// release returns n to the budget.
func (b *budget) release(n int64) { b.held.Add(-n) }

// limited returns the request with a body that is charged to the budget and has to arrive before a deadline. release
// returns its bytes to the budget once the request has been answered.
func (g *guard) limited(w http.ResponseWriter, r *http.Request) (limited *http.Request, release func()) {
	if r.Body == nil || r.Body == http.NoBody {
		return r, func() {}
	}
	body := &countedBody{ReadCloser: r.Body, budget: &g.bodies, onEOF: func() {}}
	if server, ok := r.Context().Value(http.ServerContextKey).(*http.Server); !ok || server.ReadTimeout == 0 {
		control := http.NewResponseController(w)
		if control.SetReadDeadline(time.Now().Add(g.timeout)) == nil { // not every ResponseWriter supports it
			// Past the deadline the server would no longer notice that a client disconnects.
			body.onEOF = func() { _ = control.SetReadDeadline(time.Time{}) }
		}
	}
	copied := *r
	copied.Body = body
	return &copied, body.release
}

// countedBody is a body that is charged to a budget.
type countedBody struct {
	io.ReadCloser
	budget      *budget
	read, taken int64
	onEOF       func()
}

// Read implements [io.Reader]. Its error is a [*wire.Error] when the budget is exhausted.
func (b *countedBody) Read(data []byte) (int, error) {
	n, err := b.ReadCloser.Read(data)
	b.read += int64(n)
	if more := b.read - freeBody - b.taken; more > 0 {
		if !b.budget.take(more) {
			return 0, tooManyBodies(b.budget.limit)
		}
		b.taken += more
	}
	if err == io.EOF {
		b.onEOF()
	}
	return n, err
}

// release returns the bytes to the budget.
func (b *countedBody) release() { b.budget.release(b.taken) }

// tooManyBodies returns the error of an exhausted budget.
func tooManyBodies(limit int64) *wire.Error {
	return &wire.Error{
		Status: http.StatusServiceUnavailable,
		Message: fmt.Sprintf("the bodies of requests under way have more than %d bytes; try again, "+
			"or raise MaxBodies of HandlerOptions", limit),
		Type:       wire.TypeInternal,
		Code:       "too_many_bodies",
		RetryAfter: retryAfter,
	}
}
