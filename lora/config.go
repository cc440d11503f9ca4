package lora

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/dlclark/regexp2/v2" // lookaround and back references, which package regexp lacks

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
	// Targets are the last name parts of the layers that get an adapter. Default: what TargetsOf returns.
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

func checkPattern(text string, watch stopwatch) error {
	if err := watch.check(nil); err != nil {
		return err // at once: the rest are not compiled
	}
	if _, err := layerPattern(text); err != nil {
		return fmt.Errorf("lora: pattern %q: %w", brief.Text(text), err)
	}
	return nil
}

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

func lastPart(name string) string { return name[strings.LastIndexByte(name, '.')+1:] }

const (
	// patternTime bounds what the patterns of an adapter take together: its file may come from anyone, and backtracking
	// takes exponential time with some.
	patternTime = 2 * time.Second
	// patternBytes bounds a pattern: the stack that compiling takes grows with its nesting.
	patternBytes = 16 << 10
)

// compile compiles a pattern in Python's syntax. All patterns of PEFT's configuration are compiled here.
func compile(pattern string) (*regexp2.Regexp, error) {
	if len(pattern) > patternBytes {
		return nil, fmt.Errorf("the pattern has %d bytes, more than %d", len(pattern), patternBytes)
	}
	re, err := regexp2.Compile(dotNet(pattern), regexp2.OptionMaintainCaptureOrder())
	if err != nil {
		return nil, err
	}
	re.MatchTimeout = patternTime
	return re, nil
}

// layerPattern compiles a key of Ranks or Alphas. Source: get_pattern_key in peft/utils/other.py, PEFT 0.21.
func layerPattern(text string) (*regexp2.Regexp, error) { return compile(`^(.*\.)?(` + text + `)$`) }

// fromZero is a repetition without its lower bound.
var fromZero = regexp.MustCompile(`^\{,\d*\}`)

// dotNet rewrites a pattern of Python's in the syntax of .NET, which is that of regexp2, where the two differ: in named
// groups, references to them, \Z, repetitions without a lower bound, and "[" in a class.
func dotNet(pattern string) string {
	var b strings.Builder
	classFrom := -1 // where the content of a class begins; -1 outside
	for i := 0; i < len(pattern); i++ {
		rest := pattern[i:]
		switch c := pattern[i]; {
		case c == '\\' && len(rest) > 1:
			b.WriteString(strings.Replace(rest[:2], `\Z`, `\z`, 1))
			i++
		case classFrom < 0 && c == '[':
			b.WriteByte(c)
			if strings.HasPrefix(rest, "[^") {
				b.WriteByte('^')
				i++
			}
			classFrom = i + 1
		case classFrom >= 0 && (c == '[' || c == ']' && i == classFrom):
			b.WriteString(`\` + string(c))
		case classFrom >= 0:
			b.WriteByte(c)
			if c == ']' {
				classFrom = -1
			}
		case strings.HasPrefix(rest, "(?P<"):
			b.WriteString("(?<")
			i += len("(?P<") - 1
		case strings.HasPrefix(rest, "(?P=") && strings.Contains(rest, ")"):
			name, _, _ := strings.Cut(rest[len("(?P="):], ")")
			b.WriteString(`\k<` + name + `>`)
			i += len("(?P=") + len(name)
		case fromZero.MatchString(rest):
			b.WriteString("{0,")
			i++
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// stopwatch bounds the time of all matches since it was started.
type stopwatch struct{ end time.Time }

func startStopwatch() stopwatch { return stopwatch{time.Now().Add(patternTime)} }

// check returns the error of a match, or one that says that there is no time for more.
func (s stopwatch) check(err error) error {
	if err == nil && time.Now().After(s.end) {
		err = errors.New("the time is up")
	}
	if err != nil {
		return fmt.Errorf("patterns take more than %v to match: simplify them (%w)", patternTime, err)
	}
	return nil
}

type layerNumbers struct {
	rank  int
	alpha float64
}

// resolution is what the patterns of a configuration give each layer of an adapter.
type resolution struct {
	defaults layerNumbers
	ranks    map[string]int
	alphas   map[string]float64
	layers   map[string]layerNumbers
}

// isOf reports whether it is that of a configuration, whose fields may have been changed.
func (r *resolution) isOf(c Config) bool {
	return r != nil && r.defaults == layerNumbers{c.Rank, c.Alpha} && maps.Equal(r.ranks, c.Ranks) &&
		maps.Equal(r.alphas, c.Alphas)
}

// resolve matches the patterns with the layers once: what a layer has may not depend on how long a later match takes.
func (c Config) resolve(layers []string) (Config, error) {
	c = c.withDefaults()
	c.resolved = nil
	if len(c.Ranks)+len(c.Alphas) == 0 {
		return c, nil
	}
	watch := startStopwatch()
	ranks, err := newMatcher(c.Ranks, c.rankOrder, watch)
	if err != nil {
		return c, err
	}
	alphas, err := newMatcher(c.Alphas, c.alphaOrder, watch)
	if err != nil {
		return c, err
	}
	c.resolved = &resolution{layerNumbers{c.Rank, c.Alpha}, maps.Clone(c.Ranks), maps.Clone(c.Alphas),
		make(map[string]layerNumbers, len(layers))}
	for _, layer := range layers {
		var n layerNumbers
		if n.rank, err = ranks(layer, c.Rank); err == nil {
			n.alpha, err = alphas(layer, c.Alpha)
		}
		if err != nil {
			return c, err
		}
		c.resolved.layers[layer] = n
	}
	return c, nil
}

// numbers returns what a layer has. It panics where [Config.Validate] or [New] would have returned an error.
func (c Config) numbers(layer string) layerNumbers {
	c = c.withDefaults()
	if len(c.Ranks)+len(c.Alphas) == 0 {
		return layerNumbers{c.Rank, c.Alpha}
	}
	if c.resolved.isOf(c) {
		if n, ok := c.resolved.layers[layer]; ok {
			return n
		}
	}
	one, err := c.resolve([]string{layer})
	if err != nil {
		panic(fmt.Errorf("lora: layer %q: %w", layer, err))
	}
	return one.resolved.layers[layer]
}

// newMatcher compiles the keys of a map. match returns the value of the first, in patternOrder, that matches.
func newMatcher[T any](values map[string]T, order []string, watch stopwatch) (
	match func(layer string, otherwise T) (T, error), err error,
) {
	keys := patternOrder(values, order)
	patterns := make([]*regexp2.Regexp, len(keys))
	for i, text := range keys {
		if patterns[i], err = layerPattern(text); err != nil {
			return nil, fmt.Errorf("pattern %q: %w", brief.Text(text), err)
		}
		if err := watch.check(nil); err != nil {
			return nil, err
		}
	}
	return func(layer string, otherwise T) (T, error) {
		for i, p := range patterns {
			ok, err := p.MatchString(layer)
			if err := watch.check(err); err != nil {
				return otherwise, err
			}
			if ok {
				return values[keys[i]], nil
			}
		}
		return otherwise, nil
	}, nil
}

// patternOrder returns the keys of a map: those of order, which is that of a file, and the others by their text.
func patternOrder[T any](values map[string]T, order []string) []string {
	rest := maps.Clone(values)
	var keys []string
	for _, text := range order {
		if _, ok := rest[text]; ok {
			keys = append(keys, text)
			delete(rest, text)
		}
	}
	return append(keys, slices.Sorted(maps.Keys(rest))...)
}
