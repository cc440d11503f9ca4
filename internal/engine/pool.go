package engine

import (
	"context"
	"errors"
	"hash/maphash"
	"slices"
	"sync"

	"github.com/goart-dev/art/lora"
	"github.com/goart-dev/art/model"
)

// Pool is one or more engines with the same base model and options, each on a device of its own, that share the
// requests. A request goes to the engine that has served what it begins with, unless that is much busier than another:
// turns of a conversation and samples of a prompt find their keys and values there. On equal devices no bit of a result
// depends on the engine.
type Pool struct {
	engines []*Engine

	mu    sync.Mutex
	busy  []int // requests of each engine
	seed  maphash.Seed
	homes [2]map[uint64]int // the engine of a beginning of prompts, by its hash: the newer and the older ones
}

const (
	// mostHomes is the number of beginnings after which the older half is forgotten.
	mostHomes = 1 << 16
	// awayParts: an engine is much busier if it has more requests than another by this part of its slots.
	awayParts = 4
)

// NewPool returns a pool that owns engines, at least one.
func NewPool(engines ...*Engine) *Pool {
	return &Pool{
		engines: engines, busy: make([]int, len(engines)), seed: maphash.MakeSeed(), homes: [2]map[uint64]int{{}, {}},
	}
}

// Complete is [Engine.Complete].
func (p *Pool) Complete(ctx context.Context, r Request) (*Result, error) {
	return p.Stream(ctx, r, nil)
}

// Stream is [Engine.Stream].
func (p *Pool) Stream(ctx context.Context, r Request, emit func([]Token) error) (*Result, error) {
	at := p.enter(r)
	defer p.leave(at)
	r.Adapter = r.Adapter.on(at)
	return p.engines[at].Stream(ctx, r, emit)
}

// Context is [Engine.Context].
func (p *Pool) Context() int { return p.engines[0].Context() }

// Close closes all engines.
func (p *Pool) Close() {
	for _, e := range p.engines {
		e.Close()
	}
}

// NewAdapter uploads an adapter to all devices, for this pool.
func (p *Pool) NewAdapter(a *lora.Adapter) (*Adapter, error) {
	return p.upload(func(e *Engine) (*Adapter, error) { return e.NewAdapter(a) })
}

// NewWeights uploads weights to all devices, for this pool: see [Engine.NewWeights].
func (p *Pool) NewWeights(w *model.Weights) (*Adapter, error) {
	return p.upload(func(e *Engine) (*Adapter, error) { return e.NewWeights(w) })
}

func (p *Pool) upload(to func(e *Engine) (*Adapter, error)) (first *Adapter, err error) {
	for i, e := range p.engines {
		a, err := to(e)
		if err != nil {
			return nil, err
		}
		if i == 0 {
			first = a
			continue
		}
		first.replicas = append(first.replicas, a)
	}
	return first, nil
}

// Warm is [Engine.Warm] of all engines, at once.
func (p *Pool) Warm(ctx context.Context, a *Adapter) error {
	errs := make([]error, len(p.engines))
	var wg sync.WaitGroup
	for i, e := range p.engines {
		wg.Go(func() { errs[i] = e.Warm(ctx, a.on(i)) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// Stats returns the sums of all engines.
func (p *Pool) Stats() (sum Stats) {
	for _, e := range p.engines {
		s := e.Stats()
		sum.Running, sum.Waiting = sum.Running+s.Running, sum.Waiting+s.Waiting
		sum.Blocks, sum.Free, sum.Cached = sum.Blocks+s.Blocks, sum.Free+s.Free, sum.Cached+s.Cached
		sum.Rounds, sum.Steps, sum.Shared = sum.Rounds+s.Rounds, sum.Steps+s.Steps, sum.Shared+s.Shared
		sum.Prefilled, sum.Sampled = sum.Prefilled+s.Prefilled, sum.Sampled+s.Sampled
		sum.Preempted, sum.Evicted = sum.Preempted+s.Preempted, sum.Evicted+s.Evicted
		sum.Copied, sum.Reused = sum.Copied+s.Copied, sum.Reused+s.Reused
	}
	return sum
}

// enter chooses the engine of a request, which is busy with it until leave.
func (p *Pool) enter(r Request) (engine int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.engines) == 1 {
		p.busy[0]++
		return 0
	}
	engine = slices.Index(p.busy, slices.Min(p.busy))
	hashes := p.beginnings(r)
	most := p.busy[engine] + max(1, p.engines[0].opts.Slots/awayParts)
	if home, ok := p.home(hashes); ok && p.busy[home] <= most {
		engine = home
	}
	if len(p.homes[0])+len(hashes) > mostHomes/2 {
		p.homes[0], p.homes[1] = map[uint64]int{}, p.homes[0]
	}
	for _, h := range hashes {
		p.homes[0][h] = engine
	}
	p.busy[engine]++
	return engine
}

// leave ends a request.
func (p *Pool) leave(engine int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.busy[engine]--
}

// beginnings hashes what a request begins with, of one block of the cache, of two and so on.
func (p *Pool) beginnings(r Request) (list []uint64) {
	var h maphash.Hash
	h.SetSeed(p.seed)
	maphash.WriteComparable(&h, r.Adapter.identity())
	for block := range slices.Chunk(r.Prompt, blockTokens) {
		if len(block) == blockTokens || len(list) == 0 {
			for _, id := range block {
				maphash.WriteComparable(&h, id)
			}
			list = append(list, h.Sum64())
		}
	}
	return list
}

// home returns the engine that has served the longest of some beginnings.
func (p *Pool) home(hashes []uint64) (engine int, ok bool) {
	for _, h := range slices.Backward(hashes) {
		for _, m := range p.homes {
			if engine, ok = m[h]; ok {
				return engine, true
			}
		}
	}
	return 0, false
}
