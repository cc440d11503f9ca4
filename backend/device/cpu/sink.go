package cpu

import "slices"

// A gradient has parts that read nothing of it: the quotient of a normalisation, for one, is made of what the forward loop has at
// hand. As a member of that it would be stored, and loaded by the loop of the gradient, which reads the same operands anyway.
// So an operation sinks into the one group that reads it, if that reads its operands too.

// sinkRows is how many times larger what sinks is than other operands that it takes along, at least.
const sinkRows = 8

// sink moves members to the groups that read them.
func (c *compiler) sink() {
	if c.device.unfused {
		return
	}
	readers := c.readers()
	for _, u := range slices.Backward(c.sorted) {
		if u.into != nil || u.group == nil {
			continue
		}
		for _, m := range slices.Backward(slices.Clone(u.group.members)) {
			if v := u.sinks(m, readers[m.out]); v != nil {
				u.group.members = slices.DeleteFunc(u.group.members, func(x *member) bool { return x == m })
				v.receive(m)
				for _, x := range m.in {
					if !slices.Contains(readers[x.of], v) {
						readers[x.of] = append(readers[x.of], v)
					}
				}
			}
		}
	}
}

// readers returns the units that read each tensor from outside.
func (c *compiler) readers() map[*tensor][]*unit {
	readers := map[*tensor][]*unit{}
	for _, u := range c.units {
		if u.into != nil {
			continue
		}
		reads := u.reads
		if u.group != nil {
			reads = u.external()
		}
		for _, v := range reads {
			if !slices.Contains(readers[v.of], u) {
				readers[v.of] = append(readers[v.of], u)
			}
		}
	}
	return readers
}

// sinks returns the unit that a member of u moves to, or nil.
func (u *unit) sinks(m *member, readers []*unit) *unit {
	if m.row || m.out.place != inArena || isReduction(m.n.op) || len(u.group.members) == 1 || len(readers) != 1 || u.group.reads(m.out) {
		return nil
	}
	v := readers[0]
	if v.group == nil || v.group.numel != m.out.count || len(v.group.members) == mostMembers {
		return nil
	}
	for _, x := range m.in {
		if x.of.count*sinkRows > m.out.count && !v.group.readsView(x) {
			return nil
		}
	}
	for _, reader := range v.group.members {
		for _, x := range reader.in {
			if x.of == m.out && !v.group.atHand(reader, x, v.group.inner, m.out) {
				return nil
			}
		}
	}
	return v
}

// reads reports whether a member reads a tensor.
func (g *group) reads(t *tensor) bool {
	return slices.ContainsFunc(g.members, func(m *member) bool {
		return slices.ContainsFunc(m.in, func(v view) bool { return v.of == t })
	})
}

// readsView reports whether a member reads what a view shows.
func (g *group) readsView(x view) bool {
	key := viewKey(x.collapse(), false)
	return slices.ContainsFunc(g.members, func(m *member) bool {
		return slices.ContainsFunc(m.in, func(v view) bool { return v.of == x.of && viewKey(v.collapse(), false) == key })
	})
}

// receive makes m a member of u, before those that read it.
func (u *unit) receive(m *member) {
	u.group.members = append(u.group.members, m)
	slices.SortFunc(u.group.members, func(a, b *member) int { return a.n.id - b.n.id })
	m.out.writer = u
	for _, x := range m.in {
		if w := x.of.writer; w != nil && !slices.Contains(u.deps, w.root()) {
			u.deps = append(u.deps, w.root())
		}
	}
}
