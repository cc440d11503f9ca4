package cpu

import "slices"

// allocate gives tensors that are needed at the same time different memory of one arena.
//
//	before: t3 is needed in steps 2 to 5, t4 in 3 to 4, t7 in 6 to 8
//	after:  t3 at 0, t4 behind it, t7 at 0 again
func (c *compiler) allocate() error {
	var list []*tensor
	for _, t := range c.tensors {
		switch {
		case t.memory != inArena:
		case c.writer(t) == nil || !c.isOutside(t) || t.virtual:
			t.memory = inNothing
		default:
			list = append(list, t)
		}
	}
	slices.SortStableFunc(list, func(a, b *tensor) int { return b.bytes() - a.bytes() }) // large ones first
	var placed []*tensor                                                                 // by offset
	for _, t := range list {
		t.offset = c.gap(placed, t)
		c.plan.arena = max(c.plan.arena, t.offset+rounded(t.bytes()))
		at, _ := slices.BinarySearchFunc(placed, t.offset, func(p *tensor, off int) int { return p.offset - off })
		placed = slices.Insert(placed, at, t)
	}
	c.plan.tensors = c.tensors
	return nil
}

// gap returns the lowest offset at which t fits between the tensors that are needed when it is.
func (c *compiler) gap(placed []*tensor, t *tensor) int {
	off, life := 0, c.lives[t.id]
	for _, p := range placed {
		if other := c.lives[p.id]; other.last < life.first || life.last < other.first {
			continue
		}
		if p.offset >= off+rounded(t.bytes()) {
			break
		}
		off = max(off, p.offset+rounded(p.bytes()))
	}
	return off
}
