package openai

import (
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"
)

// freeBody is how much of each body is not counted. It is of the size of what a connection takes anyway, and lets usual
// requests through while a few large ones use the budget up.
const freeBody = 64 << 10

// retryAfter is when a request that was too much may come again, in seconds.
const retryAfter = 5

// budget bounds the bytes of bodies that are held at a time.
type budget struct {
	limit int64
	held  atomic.Int64
}

// take counts n bytes more, unless they are too many.
func (b *budget) take(n int64) bool {
	if b.held.Add(n) <= b.limit {
		return true
	}
	b.held.Add(-n)
	return false
}

// limited returns the request with a body that counts what arrives, and that has to arrive in time. release ends the
// counting when the request has been answered.
func (g *guard) limited(w http.ResponseWriter, r *http.Request) (limited *http.Request, release func()) {
	if r.Body == nil || r.Body == http.NoBody {
		return r, func() {}
	}
	body := &countedBody{ReadCloser: r.Body, budget: &g.bodies, onEOF: func() {}}
	if server, ok := r.Context().Value(http.ServerContextKey).(*http.Server); !ok || server.ReadTimeout == 0 {
		control := http.NewResponseController(w)
		if control.SetReadDeadline(time.Now().Add(g.timeout)) == nil { // not every ResponseWriter can
			// It would also end the watch for a client that goes away.
			body.onEOF = func() { _ = control.SetReadDeadline(time.Time{}) }
		}
	}
	copied := *r
	copied.Body = body
	return &copied, body.release
}

// countedBody is a body whose bytes a budget counts.
type countedBody struct {
	io.ReadCloser
	budget      *budget
	read, taken int64
	onEOF       func()
}

// Read implements [io.Reader]. What is too much is an [*Error].
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

// release gives back what was counted.
func (b *countedBody) release() { b.budget.held.Add(-b.taken) }

// tooManyBodies says that the budget is used up.
func tooManyBodies(limit int64) *Error {
	return &Error{
		Status: http.StatusServiceUnavailable,
		Message: fmt.Sprintf("the bodies of requests under way have more than %d bytes; try again, "+
			"or raise MaxBodies of HandlerOptions", limit),
		Type:       typeInternal,
		Code:       "too_many_bodies",
		RetryAfter: retryAfter,
	}
}
