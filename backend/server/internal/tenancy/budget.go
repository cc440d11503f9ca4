package tenancy

import "sync"

// Budget bounds the bytes that a tenant holds of one kind: in a queue, or on disk. It is safe for concurrent use.
type Budget struct {
	mu    sync.Mutex
	held  int64
	limit int64
}

// NewBudget returns a budget of which nothing is held.
func NewBudget(limit int64) *Budget { return &Budget{limit: limit} }

// Limit is what may be held.
func (b *Budget) Limit() int64 { return b.limit }

// Held is what is held now.
func (b *Budget) Held() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.held
}

// Take takes n bytes if that leaves at least rest, and reports whether it did.
func (b *Budget) Take(n, rest int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.held > b.limit-rest-n {
		return false
	}
	b.held += n
	return true
}

// Add counts bytes that are there already: from before a restart, or of a size that is known only afterwards. A
// negative n gives bytes back.
func (b *Budget) Add(n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.held += n
}
