package track

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goart-dev/art"
)

// maxEvents is how many events of callbacks may wait.
const maxEvents = 4096

// ExporterOptions are options of [NewExporter].
type ExporterOptions[T any] struct {
	// Name of the tracker, and Items what it sends, for its errors and its log: "openpipe" and "reports".
	Name, Items string
	// Waiting is how many items may wait; further ones are dropped.
	Waiting int
	// Senders is how many calls of Send there are at once. Default 1.
	Senders int
	// Batch is how many items Send gets at most. Default 1. BatchDelay is how long a batch that is not full waits for
	// more.
	Batch      int
	BatchDelay time.Duration
	// Timeout bounds [Exporter.Close]. Default 10 s.
	Timeout time.Duration
	// Logger is told of failures and of what is dropped. Default: none.
	Logger *slog.Logger

	// Completion is called with each completion, as it ends. May be nil.
	Completion func(art.CompletionEvent)
	// Rollout makes items of a rollout whose group is complete and judged, and Lone of a completion outside of one; lost
	// are those that could not be made, for a reason. These and Completion are called by one goroutine.
	Rollout func(*Rollout) (items []T, lost int, err error)
	Lone    func(art.CompletionEvent) (items []T, lost int, err error)
	// Send sends items, and says how many of them were lost, and why. ctx ends when Close has waited long enough.
	Send func(ctx context.Context, items []T) (lost int, err error)
	// Finish is called when everything is sent. May be nil.
	Finish func(ctx context.Context) error
}

// Exporter makes items of rollouts, and sends them, on goroutines of its own, so that no rollout waits for it.
type Exporter[T any] struct {
	opts    ExporterOptions[T]
	events  *Queue[any]
	items   *Queue[T]
	ctx     context.Context
	cancel  context.CancelFunc
	work    sync.WaitGroup
	closing sync.Once

	mu  sync.Mutex
	err error // of the last items that were lost, and then of Close
}

// NewExporter starts an exporter.
func NewExporter[T any](opts ExporterOptions[T]) *Exporter[T] {
	opts.Senders, opts.Batch = max(opts.Senders, 1), max(opts.Batch, 1)
	opts.Timeout = cmp.Or(opts.Timeout, 10*time.Second)
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	x := &Exporter[T]{opts: opts, events: NewQueue[any](maxEvents), items: NewQueue[T](opts.Waiting)}
	x.ctx, x.cancel = context.WithCancel(context.Background())
	x.work.Go(x.collect)
	for range opts.Senders {
		x.work.Go(x.send)
	}
	return x
}

// Events returns the callbacks of the exporter, for [art.ModelOptions] and [art.GatherOptions].
func (x *Exporter[T]) Events() *art.Events {
	return RolloutEvents(func(e any) {
		if !x.events.Send(e) && x.events.Lost() == 1 {
			x.opts.Logger.Warn("tracker is too slow: events are dropped", "tracker", x.opts.Name)
		}
	})
}

// Dropped returns how many events, and how many items, were lost: because too many waited, or because they were not
// taken.
func (x *Exporter[T]) Dropped() int { return x.events.Lost() + x.items.Lost() }

// Close sends what waits, for Timeout at most. The error says what was lost. A second call returns the same.
func (x *Exporter[T]) Close() error {
	x.closing.Do(func() {
		timer := time.AfterFunc(x.opts.Timeout, x.cancel)
		defer timer.Stop()
		x.events.Close()
		x.work.Wait()
		if x.opts.Finish != nil {
			x.err = errors.Join(x.err, x.opts.Finish(x.ctx))
		}
		x.cancel()
		if n := x.Dropped(); n > 0 {
			x.opts.Logger.Warn("tracker has lost something", "tracker", x.opts.Name, "lost", n)
			x.err = errors.Join(x.err, fmt.Errorf("%s: %d events or %s were lost", x.opts.Name, n, x.opts.Items))
		}
	})
	return x.err
}

// collect makes items of events until Close.
func (x *Exporter[T]) collect() {
	defer x.items.Close()
	rollouts := NewRollouts(func(r *Rollout) { x.take(x.opts.Rollout(r)) },
		func(e art.CompletionEvent) { x.take(x.opts.Lone(e)) })
	handle := func(event any) {
		if e, ok := event.(art.CompletionEvent); ok && x.opts.Completion != nil {
			x.opts.Completion(e)
		}
		rollouts.Take(event)
	}
	for {
		select {
		case e := <-x.events.Items():
			handle(e)
		case <-x.events.Closed():
			for range len(x.events.Items()) {
				handle(<-x.events.Items())
			}
			rollouts.Finish()
			return
		}
	}
}

func (x *Exporter[T]) take(items []T, lost int, err error) {
	for _, item := range items {
		if !x.items.Send(item) && x.items.Lost() == 1 {
			x.opts.Logger.Warn("tracker's receiver is too slow: "+x.opts.Items+" are dropped", "tracker", x.opts.Name)
		}
	}
	x.lose(lost, err)
}

// send sends items until there are no more.
func (x *Exporter[T]) send() {
	for {
		items := x.next()
		if len(items) == 0 {
			return
		}
		x.lose(x.opts.Send(x.ctx, items))
	}
}

// next waits for items, and returns those that are sent together; none after Close.
func (x *Exporter[T]) next() (items []T) {
	var full <-chan time.Time
	for len(items) < x.opts.Batch {
		select {
		case item := <-x.items.Items():
			items = append(items, item)
			if full == nil && len(items) < x.opts.Batch {
				full = time.After(x.opts.BatchDelay)
			}
		case <-full:
			return items
		case <-x.items.Closed():
			for len(items) < x.opts.Batch { // those that still wait; more do not come
				select {
				case item := <-x.items.Items():
					items = append(items, item)
				default:
					return items
				}
			}
		}
	}
	return items
}

// lose counts items that were lost, if any.
func (x *Exporter[T]) lose(n int, err error) {
	if err == nil {
		return
	}
	x.items.Lose(n)
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.err == nil {
		x.opts.Logger.Warn("tracker has not sent something", "tracker", x.opts.Name, "error", err)
	}
	x.err = fmt.Errorf("%s: %w", x.opts.Name, err)
}

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
