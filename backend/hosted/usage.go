package hosted

import (
	"fmt"
	"sync"

	"github.com/goart-dev/art"
)

// Usage counts what was used.
type Usage struct {
	Requests         int // that were answered
	Failures         int // calls that ended with an error of the service
	Retries          int
	PromptTokens     int // cached ones included
	CachedTokens     int
	CompletionTokens int
	// Cost is the sum over the requests whose cost is known, in the currency of [Options].Prices.
	Cost float64
	// UnknownCost are the requests that Cost leaves out: the model has no price, or the service did not count tokens.
	UnknownCost int
}

// Metrics returns the counts as they are logged: costs/requests, costs/failures, costs/retries, costs/prompt_tokens,
// costs/cached_tokens, costs/completion_tokens, costs/total (left out when no cost is known) and
// costs/unknown_requests.
func (u Usage) Metrics() map[string]float64 {
	out := map[string]float64{
		"costs/requests": float64(u.Requests), "costs/failures": float64(u.Failures), "costs/retries": float64(u.Retries),
		"costs/prompt_tokens": float64(u.PromptTokens), "costs/cached_tokens": float64(u.CachedTokens),
		"costs/completion_tokens": float64(u.CompletionTokens), "costs/unknown_requests": float64(u.UnknownCost),
	}
	if u.UnknownCost < u.Requests || u.Requests == 0 {
		out["costs/total"] = u.Cost
	}
	return out
}

// answered counts an answer. usage may be nil; known says whether the model has a price.
func (u *Usage) answered(usage *art.Usage, price Price, known bool) {
	u.Requests++
	if usage != nil {
		u.PromptTokens += usage.PromptTokens
		u.CachedTokens += usage.CachedTokens
		u.CompletionTokens += usage.CompletionTokens
	}
	if usage == nil || !known {
		u.UnknownCost++
		return
	}
	u.Cost += price.cost(*usage)
}

// meter counts what a backend uses, and holds its spending limit.
type meter struct {
	limit float64 // 0 is none

	mu sync.Mutex
	// reserved is what the calls in flight may cost, and those that were answered without a count.
	reserved float64
	total    Usage
}

// reserve sets aside what a call may cost.
func (m *meter) reserve(cost float64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.limit > 0 && m.total.Cost+m.reserved+cost > m.limit {
		return fmt.Errorf("%w: %.4g of %.4g are spent and %.4g are set aside for calls in flight; this one may cost %.4g",
			ErrSpendingLimit, m.total.Cost, m.limit, m.reserved, cost)
	}
	m.reserved += cost
	return nil
}

// count lets change count in the usage of the backend and of a model, and gives back what was reserved.
func (m *meter) count(of *Usage, reserved float64, change func(*Usage)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.reserved = max(m.reserved-reserved, 0)
	change(&m.total)
	change(of)
}

// read returns a copy.
func (m *meter) read(u *Usage) Usage {
	m.mu.Lock()
	defer m.mu.Unlock()
	return *u
}

// Usage returns what all models of the backend used since it was opened.
func (b *Backend) Usage() Usage { return b.meter.read(&b.meter.total) }

// ModelUsage returns what m used since it was registered. Log stores it too.
func (b *Backend) ModelUsage(m *art.Model) (Usage, error) {
	e, err := b.entry("usage", m)
	if err != nil {
		return Usage{}, err
	}
	return b.meter.read(&e.usage), nil
}
