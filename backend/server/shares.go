package server

import (
	"context"
	"io"
	"net/http"
	"sync"
	"time"
)

// shares limit a number, the bytes of all bodies in memory or the requests under way, and divide it among clients: half
// of it is divided equally, and what a client has of that no other can take. The other half is for who comes first.
type shares struct {
	limit int64
	own   int64 // of each client

	mu     sync.Mutex
	held   map[string]int64 // by client
	common int64            // held beyond own
	free   int64            // what common may be
}

func newShares(limit int64, clients int) *shares {
	own := limit / 2 / int64(max(clients, 1))
	return &shares{limit: limit, own: own, held: map[string]int64{}, free: limit - own*int64(max(clients, 1))}
}

// take takes n for a client, and reports whether it could have them.
func (s *shares) take(client string, n int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	held := s.held[client]
	more := max(held+n-s.own, 0) - max(held-s.own, 0)
	if s.common+more > s.free {
		return false
	}
	s.held[client], s.common = held+n, s.common+more
	return true
}

func (s *shares) release(client string, n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	held := s.held[client]
	s.common -= max(held-s.own, 0) - max(held-n-s.own, 0)
	if s.held[client] = held - n; held == n {
		delete(s.held, client)
	}
}

// slot is the place of a request among those that are under way.
type slot struct {
	shares *shares
	client string
	once   sync.Once
}

func (s *slot) release() { s.once.Do(func() { s.shares.release(s.client, 1) }) }

// slotKey is the context key of a slot.
type slotKey struct{}

// Waits says that a request waits for the result of another one. From then on it does not count among
// [art.HandlerOptions].MaxRequests: who serves it bounds such requests itself. It has no effect without [Guard].
func Waits(ctx context.Context) {
	if s, ok := ctx.Value(slotKey{}).(*slot); ok {
		s.release()
	}
}

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
			return 0, unavailable(http.StatusServiceUnavailable, "too_many_bodies", retryAfter,
				"the bodies of requests under way have more than %d bytes, or than this client's share of them; try again, "+
					"or raise MaxBodies of HandlerOptions", b.shares.limit)
		}
		b.taken += more
	}
	if err == io.EOF {
		b.onEOF()
	}
	return n, err
}

func (b *countedBody) release() { b.shares.release(b.client, b.taken) }
