package lora

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dlclark/regexp2/v2" // Python's patterns, with lookahead, which package regexp lacks
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

// patternTime bounds the matching of a pattern.
const patternTime = time.Second

// selection is how PEFT chooses modules by their full names. A module has an adapter when it is a target and not
// excluded, and, where layers_to_transform is set and the module is not listed by its full name, lies in one of those
// layers:
//
//	<anything>.<one of layers_pattern, or any name part>.<layer>.<anything>
//
// Source: check_target_module_exists in peft/tuners/tuners_utils.py, PEFT 0.17.
type selection struct {
	targets, exclude modules
	layers           []int // layers_to_transform; empty is all
	index            []*regexp2.Regexp
	fields           map[string]json.RawMessage // those that are set, as they are in the file
}

// modules is a list of full names or suffixes of them, or a pattern for full names.
type modules struct {
	names   []string
	pattern *regexp2.Regexp // nil when there are names
	all     bool            // "all-linear"
}

// parseSelection reads the fields of adapter_config.json. Without target_modules the selection has no targets.
func parseSelection(fields map[string]json.RawMessage) (*selection, error) {
	s := &selection{fields: map[string]json.RawMessage{}}
	for _, key := range []string{keyTargets, keyExclude, keyLayers, keyPatterns} {
		if raw, ok := fields[key]; ok && isSetTo(key, raw) {
			s.fields[key] = json.RawMessage(compact(raw))
		}
	}
	err := errors.Join(
		s.parse(keyTargets, func(raw json.RawMessage) (err error) { s.targets, err = parseModules(raw, true); return err }),
		s.parse(keyExclude, func(raw json.RawMessage) (err error) { s.exclude, err = parseModules(raw, false); return err }),
		s.parse(keyLayers, func(raw json.RawMessage) (err error) { s.layers, err = oneOrMany[int](raw); return err }),
		s.parse(keyPatterns, s.parsePatterns),
	)
	if err != nil {
		return nil, err
	}
	if s.targets.isPattern() && (len(s.layers) > 0 || len(s.index) > 0) {
		return nil, fmt.Errorf("%s and %s go with a list of %s, not with a pattern", keyLayers, keyPatterns, keyTargets)
	}
	if len(s.layers) > 0 && len(s.index) == 0 {
		s.index = []*regexp2.Regexp{regexp2.MustCompile(`^.*\.[^.]*\.(\d+)\.`)}
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

// parse reads a field when it is set.
func (s *selection) parse(key string, read func(json.RawMessage) error) error {
	raw, ok := s.fields[key]
	if !ok {
		return nil
	}
	if err := read(raw); err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	return nil
}

// parsePatterns compiles layers_pattern.
func (s *selection) parsePatterns(raw json.RawMessage) error {
	patterns, err := oneOrMany[string](raw)
	for _, p := range patterns {
		re, bad := compile(`^.*\.` + p + `\.(\d+)\.`)
		s.index, err = append(s.index, re), errors.Join(err, bad)
	}
	return err
}

// parseModules reads target_modules or exclude_modules.
func parseModules(raw json.RawMessage, mayBeAll bool) (m modules, err error) {
	if raw[0] == '[' {
		m.names = []string{}
		return m, json.Unmarshal(raw, &m.names)
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

// oneOrMany reads a value or a list of values.
func oneOrMany[T any](raw json.RawMessage) (list []T, err error) {
	if raw[0] == '[' {
		return list, json.Unmarshal(raw, &list)
	}
	var one T
	err = json.Unmarshal(raw, &one)
	return []T{one}, err
}

// compile compiles a Python pattern.
func compile(pattern string) (*regexp2.Regexp, error) {
	re, err := regexp2.Compile(strings.ReplaceAll(pattern, "(?P<", "(?<"))
	if err != nil {
		return nil, err
	}
	re.MatchTimeout = patternTime
	return re, nil
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
	if slices.Contains(m.names, name) {
		return true, true, nil
	}
	isEnd := func(end string) bool { return strings.HasSuffix(name, "."+end) }
	return m.all || slices.ContainsFunc(m.names, isEnd), false, nil
}

// selects reports whether PEFT gives a module an adapter.
func (s *selection) selects(name string) (bool, error) {
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
			layer, err := strconv.Atoi(m.GroupByNumber(1).String())
			return err == nil && slices.Contains(s.layers, layer), nil //nolint:nilerr // a number beyond int is in no list
		}
	}
	return false, nil
}

// check reports layers that are not selected, and listed targets without layers, unless modules are excluded: those may
// be all of a target.
func (s *selection) check(layers []LayerShape) error {
	var errs []error
	for _, l := range layers {
		switch ok, err := s.selects(l.Name); {
		case err != nil:
			errs = append(errs, fmt.Errorf("layer %q: %w", l.Name, err))
		case !ok:
			errs = append(errs, fmt.Errorf("layer %q is not in target_modules, as PEFT reads %s", l.Name, s))
		}
	}
	for _, module := range s.targets.names {
		one := modules{names: []string{module}}
		has := func(l LayerShape) bool { ok, _, _ := one.match(l.Name); return ok }
		if !s.exclude.isSet() && !slices.ContainsFunc(layers, has) {
			errs = append(errs, fmt.Errorf("target module %q has no tensors", module))
		}
	}
	return errors.Join(errs...)
}

// String returns the fields for messages.
func (s *selection) String() string {
	text, err := json.Marshal(s.fields)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// isPlain reports whether the selection is all layers with these last name parts, which [Config] expresses.
func (s *selection) isPlain(targets []string) bool {
	return len(s.fields) == 1 && slices.Equal(s.targets.names, targets)
}

// selectLayers returns the selection of the layers by their full names.
func selectLayers(layers []LayerShape) *selection {
	s := &selection{targets: modules{names: []string{}}}
	for _, l := range layers {
		s.targets.names = append(s.targets.names, l.Name)
	}
	raw, err := json.Marshal(s.targets.names)
	if err != nil {
		panic(err) // strings are JSON
	}
	s.fields = map[string]json.RawMessage{keyTargets: raw}
	return s
}

// patternSelection is the selection of a pattern.
func patternSelection(pattern string) (*selection, error) {
	raw, err := json.Marshal(pattern)
	if err != nil {
		return nil, err
	}
	return parseSelection(map[string]json.RawMessage{keyTargets: raw})
}

// selectByPattern returns the layers whose names match a pattern.
func selectByPattern(pattern string, layers []LayerShape) (chosen []LayerShape, err error) {
	s, err := patternSelection(pattern)
	if err != nil {
		return nil, err
	}
	for _, l := range layers {
		ok, err := s.selects(l.Name)
		if err != nil {
			return nil, fmt.Errorf("lora: pattern %q, layer %q: %w", pattern, l.Name, err)
		}
		if ok {
			chosen = append(chosen, l)
		}
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("lora: pattern %q matches no layer; names are such as %q", pattern, example(layers))
	}
	return chosen, nil
}

// example is the name of a layer, "" when there is none.
func example(layers []LayerShape) string {
	if len(layers) == 0 {
		return ""
	}
	return layers[0].Name
}

// checkTargetPattern reports a pattern that cannot be used, or stands beside targets.
func checkTargetPattern(pattern string, targets []string) error {
	if len(targets) > 0 {
		return fmt.Errorf("lora: targets %q and pattern %q are both set", targets, pattern)
	}
	if strings.EqualFold(pattern, allLinear) {
		return fmt.Errorf("lora: pattern %q is no regular expression; leave it empty for all linear layers", pattern)
	}
	if _, err := patternSelection(pattern); err != nil {
		return fmt.Errorf("lora: pattern %q: %w", pattern, err)
	}
	return nil
}
