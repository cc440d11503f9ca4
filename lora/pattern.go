package lora

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/dlclark/regexp2/v2" // lookaround and back references, which package regexp lacks

	"github.com/goart-dev/art/internal/brief"
)

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

// layerNumbers are those that the patterns of a configuration give a layer.
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

// resolve matches the patterns of Ranks and Alphas with the layers of an adapter, once: what a layer has may not depend
// on how long a later match takes.
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
		if n.rank, err = ranks.match(layer, c.Rank); err == nil {
			n.alpha, err = alphas.match(layer, c.Alpha)
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

// matcher finds the value of a layer.
type matcher[T any] struct {
	patterns []*regexp2.Regexp // in the order in which they are tried
	values   []T
	watch    stopwatch
}

// newMatcher compiles the keys of a map, in the order of patternOrder.
func newMatcher[T any](values map[string]T, order []string, watch stopwatch) (m matcher[T], err error) {
	m.watch = watch
	for _, text := range patternOrder(values, order) {
		p, err := layerPattern(text)
		if err != nil {
			return m, fmt.Errorf("pattern %q: %w", brief.Text(text), err)
		}
		if err := watch.check(nil); err != nil {
			return m, err
		}
		m.patterns, m.values = append(m.patterns, p), append(m.values, values[text])
	}
	return m, nil
}

// match returns the value of the first pattern that matches a layer, or otherwise.
func (m matcher[T]) match(layer string, otherwise T) (T, error) {
	for i, p := range m.patterns {
		ok, err := p.MatchString(layer)
		if err := m.watch.check(err); err != nil {
			return otherwise, err
		}
		if ok {
			return m.values[i], nil
		}
	}
	return otherwise, nil
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
