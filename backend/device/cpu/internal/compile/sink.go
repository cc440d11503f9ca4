package compile

import (
	"slices"

	"github.com/goart-dev/art/backend/device/cpu/internal/ir"
)

// sinkRatio is how many times as many elements as each new operand of a group the result of an operation must have to
// sink into it: the result [rows, inner] is no longer stored and loaded, and the operand, such as the n [rows] below,
// is loaded in addition.
const sinkRatio = 8

// sink moves an operation from the group that computes it to the only group that reads it, if that reads the large
// operands of the operation anyway. Fusion puts an operation into the first group that has its operands, and the
// gradient of a normalisation has operations that only need what the forward pass has: the quotient q [rows, inner]
// below. As a member of the forward group q is stored and loaded again by the group of the gradient, which reads x too.
//
//	before: group{n = ReduceSum(...); q = Div(x, n)}; matmul; group{Mul(dy, q), Mul(dy, x)}
//	after:  group{n = ReduceSum(...)}; matmul; group{q = Div(x, n), Mul(dy, q), Mul(dy, x)}
//
// Units and members are visited from the last to the first, so that an operation can follow the one that reads it.
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
			target := sinkTarget(u, m, readers[m.out])
			if target == nil {
				continue
			}
			u.group.members = slices.DeleteFunc(u.group.members, func(x *member) bool { return x == m })
			members := append(target.group.members, m)
			slices.SortFunc(members, func(a, b *member) int { return a.n.ID - b.n.ID }) // m before those that read it
			target.group.members = members
			c.writes(target, m.out)
			for _, x := range m.in {
				c.waitFor(target, x)
				if !slices.Contains(readers[x.Of], target) {
					readers[x.Of] = append(readers[x.Of], target)
				}
			}
		}
	}
	return nil
}

// sinkTarget returns the unit that m, a member of u, sinks to, or nil. readers are the units, apart from u, that read
// what m writes.
func sinkTarget(u *unit, m *member, readers []*unit) *unit {
	// A result of one element for each row, or of a reduction, is too small to matter; one outside the arena is an output
	// of the graph; and a group is not left empty.
	if m.row || m.out.Memory != ir.InArena || ir.IsReduction(m.n.Op) || len(u.group.members) == 1 || len(readers) != 1 ||
		u.group.reads(func(x ir.View) bool { return x.Of == m.out }) {
		return nil
	}
	target := readers[0]
	g := target.group
	if g == nil || g.numel != m.out.Count || len(g.members) == mostMembers {
		return nil
	}
	for _, x := range m.in {
		key := viewKey(x.Collapse(), false)
		same := func(v ir.View) bool { return v.Of == x.Of && viewKey(v.Collapse(), false) == key }
		if x.Of.Count*sinkRatio > m.out.Count && !g.reads(same) {
			return nil
		}
	}
	for _, reader := range g.members {
		for _, x := range reader.in {
			if x.Of == m.out && !g.atHand(reader, x, g.inner, m.out) {
				return nil
			}
		}
	}
	return target
}

// reads reports whether a member reads a view that matches.
func (g *group) reads(matches func(ir.View) bool) bool {
	return slices.ContainsFunc(g.members, func(m *member) bool { return slices.ContainsFunc(m.in, matches) })
}
