package hosted

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"sync"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/rundir"
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

// counts are the metrics of a usage, each with the place of its value.
var counts = []struct {
	rundir.MetricInfo
	of func(*Usage) *int
}{
	{rundir.MetricInfo{Name: "costs/requests", Formula: "calls that were answered"},
		func(u *Usage) *int { return &u.Requests }},
	{rundir.MetricInfo{Name: "costs/failures", Formula: "calls that ended with an error of the service", Healthy: "0"},
		func(u *Usage) *int { return &u.Failures }},
	{rundir.MetricInfo{Name: "costs/retries", Formula: "attempts beyond the first of a call", Healthy: "few"},
		func(u *Usage) *int { return &u.Retries }},
	{rundir.MetricInfo{Name: "costs/prompt_tokens", Formula: "prompt tokens, as the service counts", Unit: "tokens"},
		func(u *Usage) *int { return &u.PromptTokens }},
	{rundir.MetricInfo{Name: "costs/cached_tokens", Formula: "those of them in its cache", Unit: "tokens"},
		func(u *Usage) *int { return &u.CachedTokens }},
	{rundir.MetricInfo{Name: "costs/completion_tokens", Formula: "reply tokens, as the service counts", Unit: "tokens"},
		func(u *Usage) *int { return &u.CompletionTokens }},
	{rundir.MetricInfo{Name: "costs/unknown_requests", Healthy: "0",
		Formula: "answers whose cost is not in costs/total: the model has no price, or the service did not count tokens"},
		func(u *Usage) *int { return &u.UnknownCost }},
}

// totalCost is the metric of [Usage].Cost.
var totalCost = rundir.MetricInfo{Name: "costs/total", Unit: "that of the prices",
	Formula: "sum of the known costs; left out when none is known"}

// Metrics describes what Log adds. docs/metrics.md lists it.
func Metrics() []rundir.MetricInfo {
	list := []rundir.MetricInfo{totalCost}
	for _, c := range counts {
		list = append(list, c.MetricInfo)
	}
	return list
}

// Metrics returns the counts under the names that the function Metrics describes.
func (u Usage) Metrics() map[string]float64 {
	out := map[string]float64{}
	for _, c := range counts {
		out[c.Name] = float64(*c.of(&u))
	}
	if u.UnknownCost < u.Requests || u.Requests == 0 {
		out[totalCost.Name] = u.Cost
	}
	return out
}

// storedUsage is what the processes before this one used, by the last row that has it.
func storedUsage(rows []art.HistoryRow) (u Usage) {
	for _, row := range slices.Backward(rows) {
		if _, ok := row.Metrics[counts[0].Name]; !ok {
			continue
		}
		for _, c := range counts {
			*c.of(&u) = int(row.Metrics[c.Name])
		}
		u.Cost = row.Metrics[totalCost.Name]
		return u
	}
	return u
}

// plus is the sum of two usages.
func (u Usage) plus(v Usage) Usage {
	for _, c := range counts {
		*c.of(&u) += *c.of(&v)
	}
	u.Cost += v.Cost
	return u
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

func (m *meter) read(u *Usage) Usage {
	m.mu.Lock()
	defer m.mu.Unlock()
	return *u
}

// Usage returns what all models of the backend used since it was opened.
func (b *Backend) Usage() Usage { return b.meter.read(&b.meter.total) }

// ModelUsage returns what m used since it was registered. Log adds it to what the run had stored before.
func (b *Backend) ModelUsage(m *art.Model) (Usage, error) {
	e, err := b.entry("usage", m)
	if err != nil {
		return Usage{}, err
	}
	return b.meter.read(&e.usage), nil
}

// Price is what a million tokens of a model cost. The zero Price is that of a model which costs nothing.
type Price struct {
	Prompt float64
	// CachedPrompt is for prompt tokens that the service found in its cache. 0 is no discount: they cost what Prompt
	// says.
	CachedPrompt float64
	Completion   float64 // reasoning included
}

// Prices are the prices of models by name. A model that is not in it has that of the name without a date: the price
// of "gpt-4o" is that of "gpt-4o-2024-08-06" too.
type Prices map[string]Price

// dated is the end of the name of a model's version.
var dated = regexp.MustCompile(`-(\d{4}-?\d{2}-?\d{2}|latest)$`)

func (p Prices) of(model string) (price Price, ok bool) {
	if price, ok = p[model]; !ok {
		price, ok = p[dated.ReplaceAllString(model, "")]
	}
	return price, ok
}

// problems lists what cannot be a price.
func (p Prices) problems() []string {
	var out []string
	for _, model := range slices.Sorted(maps.Keys(p)) {
		price := p[model]
		for _, x := range []float64{price.Prompt, price.CachedPrompt, price.Completion} {
			if math.IsNaN(x) || math.IsInf(x, 0) || x < 0 {
				out = append(out, fmt.Sprintf("a price of %q is %v, want a finite number >= 0", model, x))
			}
		}
	}
	return out
}

// cost returns what u costs:
//
//	((prompt - cached) Prompt + cached CachedPrompt + completion Completion) / 1e6
func (p Price) cost(u art.Usage) float64 {
	cachedPrice := p.CachedPrompt
	if cachedPrice == 0 {
		cachedPrice = p.Prompt
	}
	cached := min(max(u.CachedTokens, 0), u.PromptTokens)
	return (float64(u.PromptTokens-cached)*p.Prompt + float64(cached)*cachedPrice +
		float64(u.CompletionTokens)*p.Completion) / 1e6
}
