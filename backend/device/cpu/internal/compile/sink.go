package compile

import (
	"slices"

	"github.com/goart-dev/art/backend/device/cpu/internal/ir"
)

// sinkRows is how many times larger what sinks is than other operands that it takes along, at least.
const sinkRows = 8

// sink moves operations to the one group that reads them, if that reads their operands too. A gradient has parts that
// read nothing of it: the quotient of a normalisation, for one, is made of what the forward loop has at hand. As a
// member of that it would be stored, and loaded by the loop of the gradient, which reads the same operands anyway.
//
//	before: group{n = ReduceSum(...); q = Div(x, n)}; matmul; group{Mul(dy, q), Mul(dy, x)}
//	after:  group{n = ReduceSum(...)}; matmul; group{q = Div(x, n), Mul(dy, q), Mul(dy, x)}
func (c *compiler) sink() error {
	if c.opts.Unfused {
		return nil
	}
	readers := c.readers()
	for _, u := range slices.Backward(c.sorted) {
		if u.into != nil || u.group == nil {
			continue
		}
		for _, m := range slices.Backward(slices.Clone(u.group.members)) {
			v := sinksTo(u, m, readers[m.out])
			if v == nil {
				continue
			}
			u.group.members = slices.DeleteFunc(u.group.members, func(x *member) bool { return x == m })
			c.receive(v, m)
			for _, x := range m.in {
				if !slices.Contains(readers[x.Of], v) {
					readers[x.Of] = append(readers[x.Of], v)
				}
			}
		}
	}
	return nil
}

// sinksTo returns the unit that a member of u moves to, or nil.
func sinksTo(u *unit, m *member, readers []*unit) *unit {
	if m.row || m.out.Memory != ir.InArena || ir.IsReduction(m.n.Op) || len(u.group.members) == 1 || len(readers) != 1 ||
		u.group.reads(m.out) {
		return nil
	}
	v := readers[0]
	if v.group == nil || v.group.numel != m.out.Count || len(v.group.members) == mostMembers {
		return nil
	}
	for _, x := range m.in {
		if x.Of.Count*sinkRows > m.out.Count && !v.group.readsView(x) {
			return nil
		}
	}
	for _, reader := range v.group.members {
		for _, x := range reader.in {
			if x.Of == m.out && !v.group.atHand(reader, x, v.group.inner, m.out) {
				return nil
			}
		}
	}
	return v
}

// reads reports whether a member reads a tensor.
func (g *group) reads(t *ir.Tensor) bool {
	return slices.ContainsFunc(g.members, func(m *member) bool {
		return slices.ContainsFunc(m.in, func(v ir.View) bool { return v.Of == t })
	})
}

// readsView reports whether a member reads what a view shows.
func (g *group) readsView(x ir.View) bool {
	key := viewKey(x.Collapse(), false)
	return slices.ContainsFunc(g.members, func(m *member) bool {
		return slices.ContainsFunc(m.in, func(v ir.View) bool { return v.Of == x.Of && viewKey(v.Collapse(), false) == key })
	})
}

// receive makes m a member of u, before those that read it.
func (c *compiler) receive(u *unit, m *member) {
	u.group.members = append(u.group.members, m)
	slices.SortFunc(u.group.members, func(a, b *member) int { return a.n.ID - b.n.ID })
	c.writes(u, m.out)
	for _, x := range m.in {
		c.waitFor(u, x)
	}
}
