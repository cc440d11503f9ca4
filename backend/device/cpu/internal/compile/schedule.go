package compile

import "slices"

// schedule orders the units so that each comes after what it reads, in the order of their nodes otherwise, and notes
// from where to where each tensor is needed.
//
//	before: units, with what each waits for
//	after:  step 0, step 1, ...; tensor t is written by step 3 and last read by step 7
func (c *compiler) schedule() error {
	c.order = c.sortedUnits()
	for _, u := range c.order {
		switch {
		case u.attention != nil:
			u.reads = u.attention.Reads()
		case u.group != nil:
			u.reads = c.external(u)
		}
		for _, v := range u.reads {
			c.lives[v.Of.ID].outside = true
		}
	}
	for i, u := range c.order {
		u.position = i
		for _, v := range u.reads {
			life := &c.lives[v.Of.ID]
			life.last = max(life.last, i)
		}
	}
	for i := range c.lives {
		if life := &c.lives[i]; life.writer != nil {
			life.first = life.writer.root().position
			life.last = max(life.last, life.first)
		}
	}
	return nil
}

// sortedUnits returns the units that will be steps, in their order.
func (c *compiler) sortedUnits() (out []*unit) {
	var list []*unit
	for _, u := range c.units {
		if u.into == nil {
			list = append(list, u)
		}
	}
	slices.SortStableFunc(list, func(a, b *unit) int { return a.last - b.last })
	done := map[*unit]bool{}
	var visit func(u *unit)
	visit = func(u *unit) {
		if done[u] {
			return
		}
		done[u] = true
		for _, d := range u.deps {
			visit(d.root())
		}
		out = append(out, u)
	}
	for _, u := range list {
		visit(u)
	}
	return out
}
