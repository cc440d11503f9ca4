package track

import (
	"sync"
	"sync/atomic"
)

// Queue is a bounded queue whose senders never wait.
type Queue[T any] struct {
	items chan T
	quit  chan struct{}
	once  sync.Once
	lost  atomic.Int64
}

// NewQueue returns a queue for size items.
func NewQueue[T any](size int) *Queue[T] {
	return &Queue[T]{items: make(chan T, size), quit: make(chan struct{})}
}

// Send adds an item. It drops and counts it, and returns false, when there is no room or the queue is closed.
func (q *Queue[T]) Send(item T) bool {
	select {
	case <-q.quit:
		q.lost.Add(1)
		return false
	default:
	}
	select {
	case q.items <- item:
		return true
	default:
		q.lost.Add(1)
		return false
	}
}

// Items is where the items are received.
func (q *Queue[T]) Items() <-chan T { return q.items }

// Closed is closed by Close; what was sent before may still be received.
func (q *Queue[T]) Closed() <-chan struct{} { return q.quit }

// Close ends the queue. It may be called several times.
func (q *Queue[T]) Close() { q.once.Do(func() { close(q.quit) }) }

// Lose counts n items that were dropped elsewhere.
func (q *Queue[T]) Lose(n int) { q.lost.Add(int64(n)) }

// Lost returns the number of items that were dropped.
func (q *Queue[T]) Lost() int { return int(q.lost.Load()) }
