package grammar

import "slices"

// property is a property of an object.
type property struct {
	key      string
	rule     int32
	required bool
}

// objectPlan is an object whose properties come in order, with others after them.
type objectPlan struct {
	ws         Whitespace
	properties []property
	additional int32 // rule of the values of other keys, or -1
}

// object is the objects that satisfy all keywords.
func (s *schemaRules) object(all []*objectKeywords) fragment {
	if len(all) == 0 {
		return call(s.anyJSON(s.options.Whitespace).object)
	}
	plan := &objectPlan{ws: s.options.Whitespace, additional: -1}
	for _, name := range propertyNames(all) {
		p := property{key: name}
		var parts []*schemaNode
		for _, o := range all {
			node, ok := o.properties[name]
			if !ok {
				node = o.additional
			}
			parts = append(parts, node)
			p.required = p.required || slices.Contains(o.required, name)
		}
		p.rule = s.rule(conjunction{}.with(parts...))
		plan.properties = append(plan.properties, p)
	}
	var rest conjunction // what the values of other keys satisfy
	said, declared := false, false
	for _, o := range all {
		rest = rest.with(o.additional)
		said = said || o.additional != nil
		declared = declared || len(o.names) > 0
	}
	if closed := s.options.Closed && declared && !said; !closed && !rest.never {
		plan.additional = s.rule(rest)
	}
	return plan.text
}

// propertyNames returns the declared properties in their order, and then those that are only required.
func propertyNames(all []*objectKeywords) []string {
	var names []string
	seen := map[string]bool{}
	add := func(more []string) {
		for _, name := range more {
			if !seen[name] {
				seen[name] = true
				names = append(names, name)
			}
		}
	}
	for _, o := range all {
		add(o.names)
	}
	for _, o := range all {
		add(o.required)
	}
	return names
}

// text makes the automaton. At each property there are two states: no property was written yet, and some was, so that
// a comma comes first.
func (p *objectPlan) text(n *nfa, from int32) int32 {
	none, some := sequence(literal("{"), p.ws.bracket())(n, from), n.add()
	for _, property := range p.properties {
		value := sequence(literal(quoteJSON(property.key)), p.ws.colon(), call(property.rule))
		after := p.member(n, none, some, value)
		skipped := n.add()
		if !property.required {
			n.addEmpty(none, skipped)
			n.addEmpty(some, after)
		}
		none, some = skipped, after
	}
	if p.additional >= 0 {
		keys := make([]string, len(p.properties))
		for i, property := range p.properties {
			keys[i] = property.key
		}
		after := n.add()
		n.addEmpty(some, after)
		value := sequence(otherKeys(keys), p.ws.colon(), call(p.additional))
		n.addEmpty(p.member(n, none, after, value), after)
		some = after
	}
	to := n.add()
	n.addEmpty(none, to)
	n.addEmpty(p.ws.bracket()(n, some), to)
	return literal("}")(n, to)
}

// member adds a member after either state, and returns the state after it.
func (p *objectPlan) member(n *nfa, none, some int32, text fragment) int32 {
	begin := n.add()
	n.addEmpty(none, begin)
	n.addEmpty(p.ws.comma()(n, some), begin)
	after := n.add()
	n.addEmpty(text(n, begin), after)
	return after
}

// arrayPlan is an array.
type arrayPlan struct {
	ws        Whitespace
	prefix    []int32 // rules of the first elements
	rest      int32   // rule of the others
	low, high int     // number of elements; high -1 is without bound
}

// array is the arrays that satisfy all keywords.
func (s *schemaRules) array(all []*arrayKeywords) fragment {
	if len(all) == 0 {
		return call(s.anyJSON(s.options.Whitespace).array)
	}
	plan := &arrayPlan{ws: s.options.Whitespace, high: -1}
	length := 0
	for _, a := range all {
		length = max(length, len(a.prefix))
		plan.low = max(plan.low, a.low)
		if a.high >= 0 && (plan.high < 0 || a.high < plan.high) {
			plan.high = a.high
		}
	}
	for i := range length {
		plan.prefix = append(plan.prefix, s.rule(element(all, i)))
	}
	rest := element(all, length)
	if rest.never && (plan.high < 0 || plan.high > length) {
		plan.high = length
	}
	if plan.high >= 0 && plan.low > plan.high {
		return never
	}
	plan.rest = s.rule(rest)
	return plan.text
}

// element returns what the element at an index satisfies.
func element(all []*arrayKeywords, index int) conjunction {
	var j conjunction
	for _, a := range all {
		if index < len(a.prefix) {
			j = j.with(a.prefix[index])
		} else {
			j = j.with(a.items)
		}
	}
	return j
}

// text makes the automaton: elements one by one as far as they are bounded or differ, then a loop.
func (p *arrayPlan) text(n *nfa, from int32) int32 {
	n.budget.checkRepeat(max(p.low, p.high), "minItems or maxItems of")
	from = sequence(literal("["), p.ws.bracket())(n, from)
	to := n.add() // before the closing bracket of an array with elements
	done := n.add()
	n.addEmpty(p.ws.bracket()(n, to), done)
	for i := 0; ; i++ {
		switch {
		case i >= p.low && i == 0:
			n.addEmpty(from, done)
		case i >= p.low:
			n.addEmpty(from, to)
		}
		if i == p.high {
			break
		}
		if i > 0 && i >= max(p.low, len(p.prefix)) && p.high < 0 {
			n.addEmpty(star(n, from, sequence(p.ws.comma(), call(p.rest))), to)
			break
		}
		begin := n.add()
		n.addEmpty(from, begin)
		if i > 0 {
			begin = p.ws.comma()(n, begin)
		}
		rule := p.rest
		if i < len(p.prefix) {
			rule = p.prefix[i]
		}
		from = call(rule)(n, begin)
	}
	return literal("]")(n, done)
}
