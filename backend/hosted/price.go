package hosted

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"

	"github.com/goart-dev/art"
)

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

// of returns the price of a model.
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
