package grammar

// compilation holds the rules of one grammar while they are made.
type compilation struct {
	vocabulary *Vocabulary
	budget     *budget
	rules      []*dfa // nil until defined
	byKey      map[string]int32
	json       map[Whitespace]jsonRules
}

func newCompilation(v *Vocabulary, b *budget) *compilation {
	return &compilation{vocabulary: v, budget: b, byKey: map[string]int32{}, json: map[Whitespace]jsonRules{}}
}

// newRule makes a rule to be defined later, so that it can refer to itself.
func (c *compilation) newRule() int32 {
	if len(c.rules) >= c.budget.limits.Rules {
		panic(&LimitError{"Rules", c.budget.limits.Rules, "the grammar"})
	}
	c.rules = append(c.rules, nil)
	return int32(len(c.rules) - 1)
}

// define sets the texts of a rule. The empty text must not be one of them.
func (c *compilation) define(rule int32, f fragment) { c.rules[rule] = build(f, c.budget) }

// shared returns the rule of a key, which it makes if needed.
func (c *compilation) shared(key string, make func() *dfa) int32 {
	if rule, ok := c.byKey[key]; ok {
		return rule
	}
	rule := c.newRule()
	c.byKey[key] = rule
	c.rules[rule] = make()
	return rule
}
