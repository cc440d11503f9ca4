package cpu

import (
	"slices"

	"github.com/gomlx/compute"
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
func (c *compiler) lower(n *node) {
	if v, ok := c.viewOf(n); ok {
		c.values[n] = v
		return
	}
	if isElementwise(n.op) {
		c.values[n] = c.elementwise(n)
		return
	}
	in := make([]view, len(n.in))
	for i, x := range n.in {
		in[i] = c.values[x]
	}
	switch {
	case n.op == compute.OpTypeConstant:
		c.values[n] = c.constant(n.shape, pointer(n.attr.(constantAttr).data))
	case isReduction(n.op):
		c.values[n] = c.reduction(n, in[0])
	case n.op == compute.OpTypeDotGeneral:
		c.values[n] = c.matmul(n, in[0], in[1])
	default:
		c.values[n] = c.single(n.id, n.shape, in, func(out view) step { return newStep(n, out, in) })
	}
}

// viewOf returns the value of an operation that only says where elements are.
func (c *compiler) viewOf(n *node) (view, bool) {
	if len(n.in) != 1 {
		return view{}, false
	}
	x := c.values[n.in[0]]
	dims := n.shape.Dimensions
	switch n.op {
	case compute.OpTypeIdentity:
		return x, true
	case compute.OpTypeReshape:
		v, ok := x.reshape(dims)
		if !ok {
			v = c.copy(x, n.shape, n.id)
			v.dims = dims
		}
		return v, true
	case compute.OpTypeTranspose:
		return x.transpose(n.attr.(transposeAttr).axes), true
	case compute.OpTypeBroadcastInDim:
		return x.broadcast(dims, n.attr.(broadcastAttr).axes), true
	case compute.OpTypeSlice:
		at := n.attr.(sliceAttr)
		return x.slice(at.starts, at.strides, dims), true
	case compute.OpTypeReverse:
		return x.reverse(n.attr.(reverseAttr).axes), true
	}
	return view{}, false
}

// elementwise adds an elementwise operation to a group of its operands, or to a new one.
func (c *compiler) elementwise(n *node) view {
	in := make([]view, len(n.in))
	for i, x := range n.in {
		in[i] = c.values[x]
	}
	if v, ok := c.fuseOnce(n, in); ok {
		return v
	}
	m, numel := &member{n: n, in: in}, n.shape.Size()
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

// fuseOnce adds an operation whose operands all repeat one element for each row to a group with such rows. It is computed
// once for each.
func (c *compiler) fuseOnce(n *node, in []view) (view, bool) {
	once := *n
	once.shape = n.shape.Clone()
	dims := once.shape.Dimensions
	m := &member{n: &once, row: true}
	for a, d := range dims {
		if d > 1 && !slices.ContainsFunc(in, func(v view) bool { return v.strides[a] != 0 }) {
			dims[a] = 1
		}
	}
	for _, v := range in {
		m.in = append(m.in, view{of: v.of, off: v.off, dims: dims, strides: v.strides})
	}
	numel := volume(dims)
	if numel == n.shape.Size() {
		return view{}, false
	}
	v, ok := c.place(m, func(g *group) bool { return g.inner > 0 && numel == g.rows() })
	if !ok {
		return view{}, false
	}
	for a, d := range n.shape.Dimensions {
		if dims[a] != d {
			v.strides[a] = 0
		}
	}
	v.dims = n.shape.Dimensions
	return v, true
}

// fuseRows adds a reduction of the last axes, which have inner elements.
func (c *compiler) fuseRows(n *node, x view, inner int) view {
	m := &member{n: n, in: []view{x}, row: true}
	numel := volume(x.dims)
	v, ok := c.place(m, func(g *group) bool { return numel == g.numel && (g.inner == 0 || g.inner == inner) })
	if !ok {
		v = c.begin(m, group{numel: numel, inner: inner})
	}
	return v
}

// place adds m to the latest group it fits into, if there is one, and merges into that the other groups it reads from.
func (c *compiler) place(m *member, fits func(*group) bool) (view, bool) {
	candidates := c.candidates(m)
	at := slices.IndexFunc(candidates, func(u *unit) bool {
		return !c.opts.unfused && len(u.group.members) < mostMembers && fits(u.group) && c.joins(m, u)
	})
	if at < 0 {
		return view{}, false
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
func (c *compiler) begin(m *member, g group) view {
	u := &unit{group: &g}
	c.add(u)
	return c.join(m, u)
}

// candidates returns the groups that m reads from, the latest first.
func (c *compiler) candidates(m *member) (list []*unit) {
	for _, v := range m.in {
		if w := c.writer(v.of); w != nil && w.root().group != nil && !slices.Contains(list, w.root()) {
			list = append(list, w.root())
		}
	}
	slices.SortStableFunc(list, func(a, b *unit) int { return b.last - a.last })
	return list
}
