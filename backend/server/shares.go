package server

import (
	"context"
	"sync"
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

// release gives n back.
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

// release gives the place back, once.
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
