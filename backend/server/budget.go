package server

import (
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/goart-dev/art/internal/wire"
)

// freeBody is the number of bytes of each body that are not counted, about what a connection takes anyway. It admits
// requests of the usual size while a few large ones exhaust the budget.
const freeBody = 64 << 10

// retryAfter is the Retry-After header of a request for which there is no room, in seconds.
const retryAfter = 5

// limited returns the request with a body that is charged to its client and has to arrive before a deadline. release
// gives its bytes back once the request has been answered.
func (g *guard) limited(w http.ResponseWriter, r *http.Request) (limited *http.Request, release func()) {
	if r.Body == nil || r.Body == http.NoBody {
		return r, func() {}
	}
	body := &countedBody{ReadCloser: r.Body, shares: g.bodies, client: g.client(r), onEOF: func() {}}
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

// countedBody is a body that is charged to its client.
type countedBody struct {
	io.ReadCloser
	shares      *shares
	client      string
	read, taken int64
	onEOF       func()
}

// Read implements [io.Reader]. Its error is a [*wire.Error] when there is no room for more.
func (b *countedBody) Read(data []byte) (int, error) {
	n, err := b.ReadCloser.Read(data)
	b.read += int64(n)
	if more := b.read - freeBody - b.taken; more > 0 {
		if !b.shares.take(b.client, more) {
			return 0, tooManyBodies(b.shares.limit)
		}
		b.taken += more
	}
	if err == io.EOF {
		b.onEOF()
	}
	return n, err
}

// release gives the bytes back.
func (b *countedBody) release() { b.shares.release(b.client, b.taken) }

// tooManyBodies is the error of a body for which there is no room.
func tooManyBodies(limit int64) *wire.Error {
	return &wire.Error{
		Status: http.StatusServiceUnavailable,
		Message: fmt.Sprintf("the bodies of requests under way have more than %d bytes, or than this client's "+
			"share of them; try again, or raise MaxBodies of HandlerOptions", limit),
		Type:       wire.TypeInternal,
		Code:       "too_many_bodies",
		RetryAfter: retryAfter,
	}
}
