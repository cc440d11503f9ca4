package lora

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/goart-dev/art/internal/brief"
)

// Defaults of [Config], ART's.
const (
	DefaultRank  = 8
	defaultAlpha = 16
)

// DefaultTargets returns the linear layers of a Llama or Qwen block.
func DefaultTargets() []string {
	return []string{"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"}
}

// Config describes an adapter. Zero fields are the defaults.
type Config struct {
	// Rank is the inner dimension. Default 8.
	Rank int
	// Alpha scales the adapter, see Scale. Default 16.
	Alpha float64
	// Targets are the last name parts of the layers that get an adapter. Default: those of DefaultTargets that the model
	// has.
	Targets []string
	// Pattern chooses the layers in place of Targets: a regular expression in Python's syntax for their full names, as
	// PEFT's target_modules where that is one string. [New] turns it into Targets, and keeps it for [Adapter.Save].
	Pattern string
	// RankStabilized divides by the root of the rank, so that larger ranks learn as fast (rsLoRA, Kalajdzievski 2023,
	// https://arxiv.org/abs/2312.03732).
	RankStabilized bool
	// DoRA splits the weight of each layer into a magnitude and a direction: A and B change the direction, and the
	// magnitude [Out] is trained beside them, see [Adapter.Hooks] (Liu et al. 2024, https://arxiv.org/abs/2402.09353).
	DoRA bool
	// Ranks and Alphas are those of single layers, by patterns for their full names, as PEFT's rank_pattern and
	// alpha_pattern: a pattern is a regular expression in Python's syntax for the whole name, or for what follows one of
	// its dots. Of several that match, the first counts: in the order of the file that [Load] read, and of others in the
	// order of their text.
	Ranks  map[string]int
	Alphas map[string]float64

	// The keys of Ranks and Alphas in the order of a file, where it is not that of their text.
	rankOrder, alphaOrder []string
	resolved              *resolution // of the layers of an adapter
}

// LayerRank returns the inner dimension of the adapter of a layer. It panics where a pattern is not valid.
func (c Config) LayerRank(layer string) int { return c.numbers(layer).rank }

// Scale returns what B·A of a layer is multiplied by,
//
//	alpha / rank            alpha / sqrt(rank) with RankStabilized
//
// It panics where a pattern is not valid.
func (c Config) Scale(layer string) float64 {
	n := c.numbers(layer)
	if c.RankStabilized {
		return n.alpha / math.Sqrt(float64(n.rank))
	}
	return n.alpha / float64(n.rank)
}

// Validate lists every problem.
func (c Config) Validate() error {
	given := c.Targets
	c = c.withDefaults()
	var errs []error
	watch := startStopwatch()
	if c.Rank < 0 {
		errs = append(errs, fmt.Errorf("lora: rank is %d, it must be positive", c.Rank))
	}
	if math.IsNaN(c.Alpha) || math.IsInf(c.Alpha, 0) || c.Alpha < 0 {
		errs = append(errs, fmt.Errorf("lora: alpha is %v, it must be finite and positive", c.Alpha))
	}
	for _, text := range slices.Sorted(maps.Keys(c.Ranks)) {
		if rank := c.Ranks[text]; rank <= 0 {
			errs = append(errs, fmt.Errorf("lora: rank of %q is %d, it must be positive", text, rank))
		}
		errs = append(errs, checkPattern(text, watch))
	}
	for _, text := range slices.Sorted(maps.Keys(c.Alphas)) {
		if alpha := c.Alphas[text]; !(alpha > 0) || math.IsInf(alpha, 0) {
			errs = append(errs, fmt.Errorf("lora: alpha of %q is %v, it must be finite and positive", text, alpha))
		}
		errs = append(errs, checkPattern(text, watch))
	}
	if c.Pattern != "" {
		errs = append(errs, checkTargetPattern(c.Pattern, given))
	}
	for i, target := range c.Targets {
		switch {
		case target == "" || strings.Contains(target, "."):
			errs = append(errs, fmt.Errorf("lora: target %q must be the last part of a layer's name, such as q_proj", target))
		case slices.Contains(c.Targets[:i], target):
			errs = append(errs, fmt.Errorf("lora: target %q is listed twice", target))
		}
	}
	return brief.Errors(errs)
}

// checkPattern reports a pattern that cannot be compiled.
func checkPattern(text string, watch stopwatch) error {
	if err := watch.check(nil); err != nil {
		return err // at once: the rest are not compiled
	}
	if _, err := layerPattern(text); err != nil {
		return fmt.Errorf("lora: pattern %q: %w", brief.Text(text), err)
	}
	return nil
}

// withDefaults returns a copy with zero fields filled in.
func (c Config) withDefaults() Config {
	if c.Rank == 0 {
		c.Rank = DefaultRank
	}
	if c.Alpha == 0 {
		c.Alpha = defaultAlpha
	}
	if len(c.Targets) == 0 {
		c.Targets = DefaultTargets()
	}
	c.Targets, c.Ranks, c.Alphas = slices.Clone(c.Targets), maps.Clone(c.Ranks), maps.Clone(c.Alphas)
	return c
}

// lastPart returns what follows the last dot of a layer's name.
func lastPart(name string) string { return name[strings.LastIndexByte(name, '.')+1:] }
