package lora

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/dlclark/regexp2/v2"

	"github.com/goart-dev/art/internal/brief"
)

// Keys of adapter_config.json that choose the modules that have an adapter.
const (
	keyTargets  = "target_modules"
	keyExclude  = "exclude_modules"
	keyLayers   = "layers_to_transform"
	keyPatterns = "layers_pattern"
)

// allLinear is the value of target_modules that stands for all linear layers but the head.
const allLinear = "all-linear"

// headLayer is the output head of transformers' models.
const headLayer = "lm_head"

// selection is how PEFT chooses modules by their full names. A module has an adapter when it is a target and not
// excluded, and, where layers_to_transform is set and the module is not listed by its full name, lies in one of those
// layers, of which a name has the first:
//
//	<anything>.<one of layers_pattern, or any name part>.<layer>.<anything>
//
// Source: check_target_module_exists in peft/tuners/tuners_utils.py, PEFT 0.21. Before that the last number of a name
// was its layer, which differs for experts only.
type selection struct {
	targets, exclude modules
	layers           []int // layers_to_transform; empty is all
	index            []*regexp2.Regexp
	fields           map[string]json.RawMessage // those that are set, as they are in the file
}

// modules is a list of full names or suffixes of them, or a pattern for full names.
type modules struct {
	names   []string
	set     map[string]bool // of names
	pattern *regexp2.Regexp // nil when there are names
	all     bool            // "all-linear"
}

// parseSelection reads the fields of adapter_config.json. Without target_modules the selection has no targets.
func parseSelection(fields map[string]json.RawMessage) (*selection, error) {
	s := &selection{fields: map[string]json.RawMessage{}}
	var errs []error
	for _, key := range []string{keyTargets, keyExclude, keyLayers, keyPatterns} {
		raw, ok := fields[key]
		if !ok || !isSetTo(key, raw) {
			continue
		}
		raw = json.RawMessage(compact(raw))
		s.fields[key] = raw
		var err error
		switch key {
		case keyTargets:
			s.targets, err = parseModules(raw, true)
		case keyExclude:
			s.exclude, err = parseModules(raw, false)
		case keyLayers:
			s.layers, err = oneOrMany[int](raw)
		case keyPatterns:
			var patterns []string
			patterns, err = oneOrMany[string](raw)
			for _, p := range patterns {
				re, bad := compile(`^(?:^|.*?\.)` + p + `\.(?P<idx>\d+)\.`)
				s.index, err = append(s.index, re), errors.Join(err, bad)
			}
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", key, err))
		}
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	if s.targets.isPattern() && (len(s.layers) > 0 || len(s.index) > 0) {
		return nil, fmt.Errorf("%s and %s go with a list of %s, not with a pattern", keyLayers, keyPatterns, keyTargets)
	}
	if len(s.index) > 0 && s.layers == nil {
		return nil, fmt.Errorf("%s has no effect without %s: set both, or remove it", keyPatterns, keyLayers)
	}
	if len(s.layers) > 0 && len(s.index) == 0 {
		anywhere, err := compile(`^.*?\.[^.]*\.(?P<idx>\d+)\.`)
		if err != nil {
			return nil, err
		}
		s.index = []*regexp2.Regexp{anywhere}
	}
	return s, nil
}

// isSetTo reports whether a field has an effect. To PEFT an empty list or string is none, but layer 0 is a layer, and
// no targets are an error.
func isSetTo(key string, raw json.RawMessage) bool {
	switch text := compact(raw); key {
	case keyTargets:
		return text != "null"
	case keyLayers:
		return text == "0" || !isOff(raw)
	}
	return !isOff(raw)
}

func parseModules(raw json.RawMessage, mayBeAll bool) (m modules, err error) {
	if raw[0] == '[' {
		m.names = []string{}
		err := json.Unmarshal(raw, &m.names)
		return listed(m.names), err
	}
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return m, err
	}
	if mayBeAll && strings.EqualFold(text, allLinear) {
		return modules{all: true}, nil
	}
	m.pattern, err = compile(`\A(?:` + text + `)\z`)
	return m, err
}

func listed(names []string) modules {
	m := modules{names: names, set: map[string]bool{}}
	for _, name := range names {
		m.set[name] = true
	}
	return m
}

func oneOrMany[T any](raw json.RawMessage) (list []T, err error) {
	if raw[0] == '[' {
		return list, json.Unmarshal(raw, &list)
	}
	var one T
	err = json.Unmarshal(raw, &one)
	return []T{one}, err
}

func (m modules) isPattern() bool { return m.all || m.pattern != nil }

// isSet reports whether there is a list, an empty one too, or a pattern.
func (m modules) isSet() bool { return m.names != nil || m.isPattern() }

// match reports whether a module is one of m. listed says that its full name is.
func (m modules) match(name string) (ok, listed bool, err error) {
	if m.pattern != nil {
		ok, err = m.pattern.MatchString(name)
		return ok, false, err
	}
	for end := range ends(name) {
		if m.set[end] {
			return true, end == name, nil
		}
	}
	return m.all, false, nil
}

// ends are a name, and what follows each of its dots.
func ends(name string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for more := true; more && yield(name); {
			_, name, more = strings.Cut(name, ".")
		}
	}
}

// selects reports whether PEFT gives a module an adapter.
func (s *selection) selects(l LayerShape) (bool, error) {
	name := l.Name
	if s.targets.all && (l.Embedding || name == headLayer) {
		return false, nil
	}
	if excluded, _, err := s.exclude.match(name); excluded || err != nil {
		return false, err
	}
	ok, listed, err := s.targets.match(name)
	if !ok || listed || len(s.layers) == 0 || err != nil {
		return ok, err
	}
	for _, re := range s.index {
		m, err := re.FindStringMatch(name)
		if err != nil {
			return false, err
		}
		if m != nil {
			layer, err := strconv.Atoi(m.GroupByName("idx").String())
			return err == nil && slices.Contains(s.layers, layer), nil //nolint:nilerr // a number beyond int is in no list
		}
	}
	return false, nil
}

// check reports layers that are not selected, and targets without layers unless modules are excluded.
func (s *selection) check(layers []LayerShape) error {
	var errs []error
	var others []string
	there, watch := map[string]bool{}, startStopwatch()
	for _, l := range layers {
		ok, err := s.selects(l)
		if err := watch.check(err); err != nil {
			return fmt.Errorf("layer %q: %w", l.Name, err)
		}
		if !ok {
			others = append(others, strconv.Quote(l.Name))
		}
		for end := range ends(l.Name) {
			there[end] = true
		}
	}
	if len(others) > 0 {
		errs = append(errs, fmt.Errorf("layer %s is not in target_modules, as PEFT reads %s", brief.Names(others), s))
	}
	for _, module := range s.targets.names {
		if !s.exclude.isSet() && !there[module] {
			errs = append(errs, fmt.Errorf("target module %q has no tensors", module))
		}
	}
	return brief.Errors(errs)
}

// String returns the fields for messages.
func (s *selection) String() string {
	text, err := json.Marshal(s.fields)
	if err != nil {
		return err.Error()
	}
	return brief.Text(string(text))
}

// isPlain reports whether the selection is all layers with these last name parts, which [Config] expresses.
func (s *selection) isPlain(targets []string) bool {
	return len(s.fields) == 1 && slices.Equal(s.targets.names, targets)
}

func selectLayers(layers []LayerShape) *selection {
	s := &selection{targets: listed(names(layers))}
	raw, err := json.Marshal(s.targets.names)
	if err != nil {
		panic(err) // strings are JSON
	}
	s.fields = map[string]json.RawMessage{keyTargets: raw}
	return s
}

func patternSelection(pattern string) (*selection, error) {
	raw, err := json.Marshal(pattern)
	if err != nil {
		return nil, err
	}
	return parseSelection(map[string]json.RawMessage{keyTargets: raw})
}

func selectByPattern(pattern string, layers []LayerShape) (chosen []LayerShape, err error) {
	s, err := patternSelection(pattern)
	if err != nil {
		return nil, err
	}
	watch := startStopwatch()
	for _, l := range layers {
		ok, err := s.selects(l)
		if err := watch.check(err); err != nil {
			return nil, fmt.Errorf("lora: pattern %q, layer %q: %w", pattern, l.Name, err)
		}
		if ok {
			chosen = append(chosen, l)
		}
	}
	if len(chosen) == 0 {
		such := append(names(layers), "")[0] // "" without layers
		return nil, fmt.Errorf("lora: pattern %q matches no layer; names are such as %q", pattern, such)
	}
	return chosen, nil
}

func checkTargetPattern(pattern string, targets []string) error {
	if len(targets) > 0 {
		return fmt.Errorf("lora: targets %s and pattern %q are both set", brief.Names(targets), pattern)
	}
	if strings.EqualFold(pattern, allLinear) {
		return fmt.Errorf("lora: pattern %q is no regular expression; leave it empty for all linear layers", pattern)
	}
	if _, err := patternSelection(pattern); err != nil {
		return fmt.Errorf("lora: pattern %q: %w", pattern, err)
	}
	return nil
}
