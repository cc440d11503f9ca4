package grammar

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/goart-dev/art/internal/jsonschema"
)

// A subschema becomes a rule. allOf, $ref with other keywords and the branches of anyOf beside other keywords are
// constraints that hold together, so a rule is made for each set of constraints that occurs. There are finitely many,
// also if schemas are recursive.

// conjunction is constraints that hold together, in the order of their ids.
type conjunction struct {
	never  bool
	own    []*constraint
	groups []*group
}

func (j conjunction) key() string {
	key := fmt.Sprint(j.never)
	for _, c := range j.own {
		key += fmt.Sprint(" ", c.id)
	}
	for _, g := range j.groups {
		key += fmt.Sprint(" ", g.id)
	}
	return key
}

func (j conjunction) with(nodes ...*schemaNode) conjunction {
	j.own, j.groups = slices.Clone(j.own), slices.Clone(j.groups)
	seen := map[*schemaNode]bool{}
	var add func(*schemaNode)
	add = func(node *schemaNode) {
		if node == nil || seen[node] {
			return
		}
		seen[node] = true
		j.never = j.never || node.never
		j.own = append(j.own, node.own...)
		j.groups = append(j.groups, node.groups...)
		add(node.ref)
		for _, part := range node.all {
			add(part)
		}
	}
	for _, node := range nodes {
		add(node)
	}
	slices.SortFunc(j.own, func(a, b *constraint) int { return cmp.Compare(a.id, b.id) })
	slices.SortFunc(j.groups, func(a, b *group) int { return cmp.Compare(a.id, b.id) })
	j.own, j.groups = slices.Compact(j.own), slices.Compact(j.groups)
	return j
}

// schemaRules makes the rules of a schema.
type schemaRules struct {
	*compilation
	options JSONOptions
	made    map[string]int32 // by the key of the conjunction
}

func (c *compilation) schema(raw json.RawMessage, options JSONOptions) fragment {
	limits := c.budget.limits
	if len(raw) > limits.SchemaBytes {
		panic(&LimitError{"SchemaBytes", limits.SchemaBytes, fmt.Sprintf("a schema of %d bytes", len(raw))})
	}
	if !json.Valid(raw) {
		failAt("", "is not JSON")
	}
	depth, err := nesting(raw)
	check("", err)
	if depth > limits.Depth {
		panic(&LimitError{"Depth", limits.Depth, fmt.Sprintf("a schema of depth %d", depth)})
	}
	reader := &schemaReader{root: raw, nodes: map[string]*schemaNode{}}
	s := &schemaRules{c, options, map[string]int32{}}
	return call(s.rule(conjunction{}.with(reader.node("", raw))))
}

// rule returns the rule of a conjunction, which it makes if needed.
func (s *schemaRules) rule(j conjunction) int32 {
	key := j.key()
	if rule, ok := s.made[key]; ok {
		return rule
	}
	rule := s.newRule()
	s.made[key] = rule
	s.define(rule, s.conjunctionText(j))
	return rule
}

func (s *schemaRules) conjunctionText(j conjunction) fragment {
	switch {
	case j.never:
		return never
	case slices.ContainsFunc(j.own, func(c *constraint) bool { return c.hasValues }):
		return s.values(j)
	case len(j.groups) == 0:
		return s.merged(merge(j.own))
	}
	// The other constraints are distributed over the branches of the first group.
	rest := conjunction{own: j.own, groups: j.groups[1:]}
	var parts []fragment
	for _, branch := range j.groups[0].branches {
		if next := rest.with(branch); next.key() != j.key() { // the schema as its own alternative adds nothing
			parts = append(parts, call(s.rule(next)))
		}
	}
	return anyOf(parts...)
}

// values is the values of enum and const that the other constraints allow.
func (s *schemaRules) values(j conjunction) fragment {
	rest := conjunction{groups: j.groups}
	var values []json.RawMessage
	first := true
	for _, c := range j.own {
		switch {
		case !c.hasValues:
			rest.own = append(rest.own, c)
		case first:
			values, first = c.values, false
		default:
			values = commonValues(values, c.values)
		}
	}
	allowed := s.allowed(rest)
	var parts []fragment
	for _, raw := range values {
		if allowed(raw) {
			parts = append(parts, spelled(raw, s.options.Whitespace))
		}
	}
	return anyOf(parts...)
}

// allowed returns a function that reports whether a value satisfies a conjunction.
func (s *schemaRules) allowed(j conjunction) func(json.RawMessage) bool {
	types, simple := jsonschema.Any, len(j.groups) == 0
	for _, c := range j.own {
		if c.types != 0 {
			types &= c.types
		}
		simple = simple && c.implied == 0
	}
	if simple {
		return func(raw json.RawMessage) bool { return typeOf(raw)&types != 0 }
	}
	// The value must be one of the texts of the conjunction.
	inner := &schemaRules{newCompilation(s.vocabulary, s.budget), s.options, map[string]int32{}}
	rule := inner.rule(j)
	var all [256]bool
	for i := range all {
		all[i] = true
	}
	p, err := link(inner.rules, rule, &all)
	if err != nil {
		return func(json.RawMessage) bool { return false }
	}
	m := newMachine(p)
	return func(raw json.RawMessage) bool {
		at := m.begin(rule)
		text, err := spell(raw, s.options.Whitespace)
		s.budget.spend(100 * len(text))
		for i := range len(text) {
			at = m.step(at, text[i])
		}
		return err == nil && at.end
	}
}

// merged is constraints on one value, by type.
type merged struct {
	types   jsonschema.Types
	free    bool // only the type is constrained
	numbers numberBounds
	strings stringBounds
	objects []*objectKeywords
	arrays  []*arrayKeywords
}

// merge combines constraints. If none gives a type, the values are of those types that the keywords constrain.
func merge(all []*constraint) *merged {
	m := &merged{types: jsonschema.Any, free: true, strings: stringBounds{high: -1}}
	var implied jsonschema.Types
	declared := false
	patterns := map[string]bool{}
	for _, c := range all {
		if c.types != 0 {
			m.types, declared = m.types&c.types, true
		}
		implied |= c.implied
		m.numbers.low = stricter(m.numbers.low, c.numbers.low, -1)
		m.numbers.high = stricter(m.numbers.high, c.numbers.high, 1)
		if b := c.numbers.multiple; b != 0 {
			a := max(m.numbers.multiple, 1)
			if m.numbers.multiple = a / gcd(a, b) * b; m.numbers.multiple > maxMultiple {
				failAt(c.path, "the least common multiple of all multipleOf is above %d", maxMultiple)
			}
		}
		m.strings.low = max(m.strings.low, c.strings.low)
		if high := c.strings.high; high >= 0 && (m.strings.high < 0 || high < m.strings.high) {
			m.strings.high = high
		}
		for _, p := range c.strings.patterns {
			patterns[p] = true
		}
		if c.object != nil {
			m.objects = append(m.objects, c.object)
		}
		if c.array != nil {
			m.arrays = append(m.arrays, c.array)
		}
	}
	if !declared && implied != 0 {
		m.types = implied
	}
	m.free = implied == 0
	m.strings.patterns = slices.Sorted(maps.Keys(patterns))
	return m
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

func (s *schemaRules) merged(m *merged) fragment {
	if m.free && m.types == jsonschema.Any {
		return call(s.anyJSON(s.options.Whitespace).value)
	}
	var parts []fragment
	if m.types&jsonschema.Null != 0 {
		parts = append(parts, literal("null"))
	}
	if m.types&jsonschema.Boolean != 0 {
		parts = append(parts, literal("true"), literal("false"))
	}
	if m.types&jsonschema.Number != 0 {
		m.numbers.integer = m.types&jsonschema.Fraction == 0 || m.numbers.multiple > 0
		parts = append(parts, call(s.numberRule(m.numbers)))
	}
	if m.types&jsonschema.String != 0 {
		parts = append(parts, call(s.stringRule(m.strings)))
	}
	if m.types&jsonschema.Array != 0 {
		parts = append(parts, s.array(m.arrays))
	}
	if m.types&jsonschema.Object != 0 {
		parts = append(parts, s.object(m.objects))
	}
	return anyOf(parts...)
}
