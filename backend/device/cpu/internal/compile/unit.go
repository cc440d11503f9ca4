package compile

import (
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"

	"github.com/goart-dev/art/backend/device/cpu/internal/ir"
	"github.com/goart-dev/art/backend/device/cpu/internal/vec"
)

// unit is a step that is being built: one operation, or several that are fused.
type unit struct {
	last      int           // highest node of it
	rank      int           // index among the sorted units
	reads     []ir.View     // what it reads from outside
	deps      []*unit       // what writes it
	group     *group        // of fused operations, or nil
	attention *ir.Attention // of matmuls around the group, or nil
	step      ir.Step       // for others
	into      *unit         // the unit that this one was merged into
	stamp     int           // of the last search that came by
	position  int           // in the order of steps
}

// root returns the unit that u is a part of.
func (u *unit) root() *unit {
	for u.into != nil {
		u = u.into
	}
	return u
}

// single adds a unit of one operation, which reads views and writes a new tensor.
func (c *compiler) single(id int, s shapes.Shape, reads []ir.View, make func(out ir.View) ir.Step) ir.View {
	u := &unit{last: id}
	for _, v := range reads {
		u.reads = append(u.reads, v)
		c.waitFor(u, v)
	}
	t := c.tensor(s)
	c.writes(u, t)
	out := ir.Whole(t, s.Dimensions)
	u.step = make(out)
	c.add(u)
	return out
}

// copy adds a unit that writes the elements of v in row-major order.
func (c *compiler) copy(v ir.View, s shapes.Shape, id int) ir.View {
	return c.single(id, s, []ir.View{v}, func(out ir.View) ir.Step {
		s := &ir.Copy{Result: ir.Result{Out: out}, From: v.Collapse()}
		if s.From.Of.Size == 4 && !slices.ContainsFunc(s.From.Strides, func(s int) bool { return s < 0 }) {
			kernel := vec.NewCopy(s.From.Dims, s.From.Strides)
			s.Kernel = &kernel
		}
		return s
	})
}

// after is x when others are there. What reads it cannot join a group before them, since it is a copy, or the first
// operation of a group of its own, which reads x where it is.
func (c *compiler) after(n *ir.Node, x ir.View, others []ir.View) ir.View {
	var v ir.View
	if n.Shape.DType == dtypes.Float32 && x.Contiguous() {
		same := *n
		same.Op = compute.OpTypeConvertDType
		v = c.begin(&member{n: &same, in: []ir.View{x}}, group{numel: n.Shape.Size()})
	} else {
		v = c.copy(x, n.Shape, n.ID)
	}
	for _, other := range others {
		c.waitFor(c.writer(v.Of), other)
	}
	return v
}

// add adds a unit that nothing waits for.
func (c *compiler) add(u *unit) {
	u.rank = len(c.sorted)
	c.units, c.sorted = append(c.units, u), append(c.sorted, u)
}

// waitFor notes that u comes after what writes v.
func (c *compiler) waitFor(u *unit, v ir.View) {
	if w := c.writer(v.Of); w != nil && !slices.Contains(u.deps, w.root()) {
		u.deps = append(u.deps, w.root())
	}
}

// settle moves u, which waits for more than before or has taken in other units, among the sorted ones: behind all that
// it waits for, and before all that waits for it. Those that may be on the wrong side have ranks between two.
func (c *compiler) settle(u *unit, from, to int) {
	if from == to {
		return
	}
	c.searches++
	var before, after []*unit
	for _, x := range c.sorted[from : to+1] {
		waits := func(d *unit) bool { return d.root() == u || d.root().stamp == c.searches }
		switch {
		case x == u:
		case x.into == nil && slices.ContainsFunc(x.deps, waits):
			x.stamp = c.searches
			after = append(after, x)
		default:
			before = append(before, x)
		}
	}
	for i, x := range slices.Concat(before, []*unit{u}, after) {
		c.sorted[from+i], x.rank = x, from+i
	}
}

// depends reports whether u comes after w: it reads what w writes, or what a unit does that comes after w.
func (c *compiler) depends(u, w *unit) bool {
	c.searches++
	return c.search(u.root(), w.root())
}

func (c *compiler) search(u, w *unit) bool {
	if u == w {
		return true
	}
	if u.stamp == c.searches || u.rank < w.rank {
		return false
	}
	u.stamp = c.searches
	for _, d := range u.deps {
		if c.search(d.root(), w) {
			return true
		}
	}
	return false
}

// external returns what the members of a group read from elsewhere.
func (c *compiler) external(u *unit) (list []ir.View) {
	for _, m := range u.group.members {
		for _, v := range m.in {
			if w := c.writer(v.Of); w == nil || w.root() != u {
				list = append(list, v)
			}
		}
	}
	return list
}

// readers returns the units that read each tensor from outside.
func (c *compiler) readers() map[*ir.Tensor][]*unit {
	readers := map[*ir.Tensor][]*unit{}
	for _, u := range c.units {
		if u.into != nil {
			continue
		}
		reads := u.reads
		if u.group != nil {
			reads = c.external(u)
		}
		for _, v := range reads {
			if !slices.Contains(readers[v.Of], u) {
				readers[v.Of] = append(readers[v.Of], u)
			}
		}
	}
	return readers
}
