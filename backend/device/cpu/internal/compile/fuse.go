package compile

import (
	"slices"

	"github.com/gomlx/compute"

	"github.com/goart-dev/art/backend/device/cpu/internal/ir"
	"github.com/goart-dev/art/backend/device/cpu/internal/memory"
)

// fuse gives every node a value. Those that only say where elements are become views, elementwise operations and
// reductions over the last axes join groups, and each other operation becomes a unit of its own.
//
//	before: Transpose(x); s = ReduceSum(Mul(y, y)); z = Div(y, Broadcast(Sqrt(s))); DotGeneral(z, xᵀ)
//	after:  group{Mul ReduceSum Sqrt Div}; matmul{z, view of x}
func (c *compiler) fuse() error {
	for _, n := range c.needed() {
		c.lower(n)
	}
	return nil
}

// lower gives n a value: a view where that suffices, else a tensor and a unit that writes it.
func (c *compiler) lower(n *ir.Node) {
	if v, ok := c.viewOf(n); ok {
		c.values[n] = v
		return
	}
	if ir.IsElementwise(n.Op) {
		c.values[n] = c.elementwise(n)
		return
	}
	in := make([]ir.View, len(n.In))
	for i, x := range n.In {
		in[i] = c.values[x]
	}
	switch {
	case n.Op == compute.OpTypeConstant:
		c.values[n] = c.constant(n.Shape, memory.Pointer(n.Attr.(ir.ConstantAttr).Data))
	case ir.IsReduction(n.Op):
		c.values[n] = c.reduction(n, in[0])
	case n.Op == compute.OpTypeDotGeneral:
		c.values[n] = c.matmul(n, in[0], in[1])
	case n.Op == ir.OpGrouped:
		c.values[n] = c.grouped(n, in[0], in[1], in[2:])
	case n.Op == ir.OpGroupedOuter:
		c.values[n] = c.groupedOuter(n, in[0], in[1], in[2])
	case n.Op == compute.OpTypeSchedulingBarrier:
		c.values[n] = c.after(n, in[0], in[1:])
	case n.Op == compute.OpTypeCall:
		c.values[n] = c.call(n, in)
	default:
		c.values[n] = c.single(n.ID, n.Shape, in, func(out ir.View) ir.Step { return newStep(n, out, in) })
	}
}

// viewOf returns the value of an operation that only says where elements are.
func (c *compiler) viewOf(n *ir.Node) (ir.View, bool) {
	if len(n.In) != 1 {
		return ir.View{}, false
	}
	x := c.values[n.In[0]]
	dims := n.Shape.Dimensions
	switch n.Op {
	case compute.OpTypeIdentity:
		return x, true
	case compute.OpTypeReshape:
		v, ok := x.Reshape(dims)
		if !ok {
			v = c.copy(x, n.Shape, n.ID)
			v.Dims = dims
		}
		return v, true
	case compute.OpTypeTranspose:
		return x.Transpose(n.Attr.(ir.TransposeAttr).Axes), true
	case compute.OpTypeBroadcastInDim:
		return x.Broadcast(dims, n.Attr.(ir.BroadcastAttr).Axes), true
	case compute.OpTypeSlice:
		at := n.Attr.(ir.SliceAttr)
		return x.Slice(at.Starts, at.Strides, dims), true
	case compute.OpTypeReverse:
		return x.Reverse(n.Attr.(ir.ReverseAttr).Axes), true
	}
	return ir.View{}, false
}

// elementwise adds an elementwise operation to a group of its operands, or to a new one.
func (c *compiler) elementwise(n *ir.Node) ir.View {
	in := make([]ir.View, len(n.In))
	for i, x := range n.In {
		in[i] = c.values[x]
	}
	if v, ok := c.fuseOnce(n, in); ok {
		return v
	}
	m, numel := &member{n: n, in: in}, n.Shape.Size()
	v, ok := c.place(m, func(g *group) bool {
		m.row = g.inner > 0 && numel == g.rows()
		return m.row || numel == g.numel
	})
	if !ok {
		m.row = false
		v = c.begin(m, group{numel: numel})
	}
	return v
}

// fuseOnce adds an operation whose operands all repeat one element for each row to a group with such rows. It is
// computed once for each.
func (c *compiler) fuseOnce(n *ir.Node, in []ir.View) (ir.View, bool) {
	once := *n
	once.Shape = n.Shape.Clone()
	dims := once.Shape.Dimensions
	m := &member{n: &once, row: true}
	for a, d := range dims {
		if d > 1 && !slices.ContainsFunc(in, func(v ir.View) bool { return v.Strides[a] != 0 }) {
			dims[a] = 1
		}
	}
	for _, v := range in {
		m.in = append(m.in, ir.View{Of: v.Of, Off: v.Off, Dims: dims, Strides: v.Strides})
	}
	numel := ir.Volume(dims)
	if numel == n.Shape.Size() {
		return ir.View{}, false
	}
	v, ok := c.place(m, func(g *group) bool { return g.inner > 0 && numel == g.rows() })
	if !ok {
		return ir.View{}, false
	}
	for a, d := range n.Shape.Dimensions {
		if dims[a] != d {
			v.Strides[a] = 0
		}
	}
	v.Dims = n.Shape.Dimensions
	return v, true
}

// fuseRows adds a reduction of the last axes, which have inner elements.
func (c *compiler) fuseRows(n *ir.Node, x ir.View, inner int) ir.View {
	m := &member{n: n, in: []ir.View{x}, row: true}
	numel := ir.Volume(x.Dims)
	v, ok := c.place(m, func(g *group) bool { return numel == g.numel && (g.inner == 0 || g.inner == inner) })
	if !ok {
		v = c.begin(m, group{numel: numel, inner: inner})
	}
	return v
}

// place adds m to the latest group it fits into, if there is one, and merges into that the other groups it reads from.
func (c *compiler) place(m *member, fits func(*group) bool) (ir.View, bool) {
	candidates := c.candidates(m)
	at := slices.IndexFunc(candidates, func(u *unit) bool {
		return !c.opts.Unfused && len(u.group.members) < mostMembers && fits(u.group) && c.joins(m, u)
	})
	if at < 0 {
		return ir.View{}, false
	}
	u := candidates[at]
	v := c.join(m, u)
	for _, other := range candidates {
		if other != u && len(other.group.members)+len(u.group.members) <= mostMembers {
			c.merge(u, other)
		}
	}
	return v, true
}

// begin makes a unit of a group that m is the first member of.
func (c *compiler) begin(m *member, g group) ir.View {
	u := &unit{group: &g}
	c.add(u)
	return c.join(m, u)
}

// candidates returns the groups that m reads from, the latest first.
func (c *compiler) candidates(m *member) (list []*unit) {
	for _, v := range m.in {
		if w := c.writer(v.Of); w != nil && w.root().group != nil && !slices.Contains(list, w.root()) {
			list = append(list, w.root())
		}
	}
	slices.SortStableFunc(list, func(a, b *unit) int { return b.last - a.last })
	return list
}
