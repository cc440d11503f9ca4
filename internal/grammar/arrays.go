package grammar

// arrayPlan is an array.
type arrayPlan struct {
	ws        Whitespace
	prefix    []int32 // rules of the first elements
	rest      int32   // rule of the others
	low, high int     // number of elements; high -1 is without bound
}

// array is the arrays that satisfy all keywords.
func (s *schemaRules) array(all []*arrayKeywords) (fragment, error) {
	if len(all) == 0 {
		return call(s.anyJSON(s.options.Whitespace).array), nil
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
		rule, err := s.rule(element(all, i))
		if err != nil {
			return nil, err
		}
		plan.prefix = append(plan.prefix, rule)
	}
	rest := element(all, length)
	if rest.never && (plan.high < 0 || plan.high > length) {
		plan.high = length
	}
	if plan.high >= 0 && plan.low > plan.high {
		return never, nil
	}
	var err error
	plan.rest, err = s.rule(rest)
	return plan.text, err
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
		from = p.element(n, from, i)
	}
	return literal("]")(n, done)
}

// element adds the element at an index.
func (p *arrayPlan) element(n *nfa, from int32, index int) int32 {
	begin := n.add()
	n.addEmpty(from, begin)
	rule := p.rest
	if index < len(p.prefix) {
		rule = p.prefix[index]
	}
	if index > 0 {
		begin = p.ws.comma()(n, begin)
	}
	return call(rule)(n, begin)
}
