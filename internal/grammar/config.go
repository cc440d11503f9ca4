package grammar

import (
	"cmp"
	"encoding/binary"
	"slices"
)

// A configuration of the pushdown automaton is a set of states, each with the stack of calls it is in. Stacks share
// their lower parts, and equal ones are the same object (Tomita's graph-structured stack, hash-consed), so equal
// configurations are the same object too, and their successors are computed once.

// frame is a call: where to continue after it. Frames of one rule at one position are merged.
type frame struct {
	id      uint64
	returns []item // in order
	root    bool   // after the call the text may end
	open    bool   // what comes after the call is left open
	after   *config
}

// item is a state within a frame.
type item struct {
	state int32
	frame *frame
}

func compareItems(a, b item) int {
	return cmp.Or(cmp.Compare(a.state, b.state), cmp.Compare(a.frame.id, b.frame.id))
}

// config is a configuration: only the items that consume input, in order.
type config struct {
	items   []item
	end     bool      // the text may end here
	escaped bool      // an open frame may end here
	next    []*config // successors by class of bytes; nil until computed
	tokens  map[int32]*config
	proofs  [numSlices]proof
	mask    *mask
}

// dead is the configuration from which nothing is allowed.
var dead = &config{}

// machine computes configurations, and keeps those it has computed.
type machine struct {
	program *program
	frames  map[string]*frame
	configs map[string]*config
	lastID  uint64
	root    *frame
	open    *frame
	ended   []*frame // those whose after was computed
}

func newMachine(p *program) *machine {
	m := &machine{program: p, lastID: 2, root: &frame{id: 1, root: true}, open: &frame{id: 2, open: true}}
	m.reset()
	return m
}

// reset forgets what was computed. Configurations in use remain valid.
func (m *machine) reset() {
	for _, f := range m.ended {
		f.after = nil
	}
	m.ended = nil
	m.frames, m.configs = map[string]*frame{}, map[string]*config{}
}

// adopt returns a configuration from before a reset as one from after it.
func (m *machine) adopt(c *config) *config { return m.intern(slices.Clone(c.items), c.end, c.escaped) }

// begin returns the configuration before the first byte of a rule.
func (m *machine) begin(rule int32) *config {
	start := m.program.start[rule]
	c := m.closure([]item{{start, m.root}}, false)
	if m.program.states[start].final {
		return m.intern(c.items, true, false)
	}
	return c
}

// within returns the configuration of one state in an open frame. What the state calls is left out.
func (m *machine) within(state int32) *config {
	return m.intern([]item{{state, m.open}}, false, false)
}

// after returns the configuration when the call of a frame ends.
func (m *machine) after(f *frame) *config {
	if f.after == nil {
		f.after = m.closure(slices.Clone(f.returns), true)
		m.ended = append(m.ended, f)
	}
	return f.after
}

func (m *machine) step(c *config, b byte) *config {
	if c == dead {
		return dead
	}
	if c.next == nil {
		c.next = make([]*config, len(m.program.bytes))
	}
	class := m.program.class[b]
	if c.next[class] == nil {
		var items []item
		for _, it := range c.items {
			if to := followByte(m.program.states[it.state].bytes, b); to >= 0 {
				items = append(items, item{to, it.frame})
			}
		}
		c.next[class] = m.closure(items, true)
	}
	return c.next[class]
}

// stepToken returns the configuration after a token as a whole.
func (m *machine) stepToken(c *config, id int32) *config {
	if next, ok := c.tokens[id]; ok {
		return next
	}
	var items []item
	for _, it := range c.items {
		for _, e := range m.program.states[it.state].tokens {
			if e.id == id {
				items = append(items, item{e.to, it.frame})
			}
		}
	}
	if c.tokens == nil {
		c.tokens = map[int32]*config{}
	}
	c.tokens[id] = m.closure(items, true)
	return c.tokens[id]
}

// union returns the configuration of two ways to read the same token.
func (m *machine) union(a, b *config) *config {
	switch {
	case a == dead || a == b:
		return b
	case b == dead:
		return a
	}
	return m.intern(slices.Concat(a.items, b.items), a.end || b.end, a.escaped || b.escaped)
}

// closure returns the configuration of items: ended calls return, and calls begin. Items that have just begun a call
// do not return, because no rule allows the empty text.
func (m *machine) closure(items []item, consumed bool) *config {
	seen := make(map[item]bool, len(items))
	visit := func(it item) {
		if !seen[it] {
			seen[it] = true
			items = append(items, it)
		}
	}
	given := items
	items = nil
	for _, it := range given {
		visit(it)
	}
	end, escaped := false, false
	for i := 0; consumed && i < len(items); i++ {
		if it := items[i]; m.program.states[it.state].final {
			end, escaped = end || it.frame.root, escaped || it.frame.open
			for _, back := range it.frame.returns {
				visit(back)
			}
		}
	}
	return m.intern(m.beginCalls(items), end, escaped)
}

// pending is the calls of one rule at the present position.
type pending struct {
	returns    []item
	root, open bool
}

// beginCalls adds the first items of what items call. A caller comes before what it calls, so that a frame has all its
// returns when it is made.
func (m *machine) beginCalls(items []item) []item {
	calls := map[int32]*pending{}
	for _, it := range items {
		m.addCalls(calls, it)
	}
	for len(calls) > 0 {
		rule := int32(-1)
		for candidate := range calls {
			if rule < 0 || m.program.rank[candidate] < m.program.rank[rule] {
				rule = candidate
			}
		}
		begun := item{m.program.start[rule], m.frame(calls[rule])}
		delete(calls, rule)
		items = append(items, begun)
		m.addCalls(calls, begun)
	}
	return items
}

// addCalls adds the calls of one item. A call at the end of a rule returns to where that rule returns.
func (m *machine) addCalls(calls map[int32]*pending, it item) {
	for _, e := range m.program.states[it.state].calls {
		p := calls[e.rule]
		if p == nil {
			p = &pending{}
			calls[e.rule] = p
		}
		to := &m.program.states[e.to]
		if to.final && len(to.bytes) == 0 && len(to.calls) == 0 && len(to.tokens) == 0 {
			p.returns = append(p.returns, it.frame.returns...)
			p.root, p.open = p.root || it.frame.root, p.open || it.frame.open
		} else {
			p.returns = append(p.returns, item{e.to, it.frame})
		}
	}
}

// frame returns the one frame of a call.
func (m *machine) frame(p *pending) *frame {
	p.returns = sortItems(p.returns)
	key := itemKey(p.returns, p.root, p.open)
	f, ok := m.frames[key]
	if !ok {
		m.lastID++
		f = &frame{id: m.lastID, returns: p.returns, root: p.root, open: p.open}
		m.frames[key] = f
	}
	return f
}

// intern returns the one configuration of items.
func (m *machine) intern(items []item, end, escaped bool) *config {
	items = slices.DeleteFunc(items, func(it item) bool {
		s := &m.program.states[it.state]
		return len(s.bytes) == 0 && len(s.tokens) == 0
	})
	if len(items) == 0 && !end && !escaped {
		return dead
	}
	items = sortItems(items)
	key := itemKey(items, end, escaped)
	c, ok := m.configs[key]
	if !ok {
		c = &config{items: items, end: end, escaped: escaped}
		m.configs[key] = c
	}
	return c
}

func sortItems(items []item) []item {
	slices.SortFunc(items, compareItems)
	return slices.Compact(items)
}

// itemKey is equal for equal sets only.
func itemKey(items []item, flags ...bool) string {
	key := make([]byte, 0, 12*len(items)+len(flags))
	for _, it := range items {
		key = binary.LittleEndian.AppendUint32(key, uint32(it.state))
		key = binary.LittleEndian.AppendUint64(key, it.frame.id)
	}
	for _, flag := range flags {
		if flag {
			key = append(key, 1)
		} else {
			key = append(key, 0)
		}
	}
	return string(key)
}
