package cpu

import (
	"slices"

	"github.com/gomlx/compute"

	"github.com/goart-dev/art/backend/device/cpu/internal/vec"
)

// group is a set of operations that run as one loop over blocks of elements. A block is loaded once, goes through all of
// them in memory that stays in the cache, and what others read is stored.
//
// All members have the same number of elements, or, once a reduction of the last axes is among them, one for each row of
// inner elements. So a softmax or a normalisation with all that surrounds it is one loop.
type group struct {
	numel   int
	inner   int // length of a row; 0 while nothing is reduced, and no rows are turned
	members []*member
}

// member is an operation of a group.
type member struct {
	n   *node
	in  []view
	out *tensor
	row bool // one element for each row
}

// most members of a group: more would not fit into the cache.
const mostMembers = 64

func (g *group) rows() int { return g.numel / max(g.inner, 1) }

func isElementwise(op compute.OpType) bool {
	return op == compute.OpTypeConvertDType || op == compute.OpTypeWhere || elementwise[op]
}

var elementwise = func() map[compute.OpType]bool {
	set := map[compute.OpType]bool{}
	for op := range compute.OpTypeLast {
		for t := range dataTypes {
			switch op {
			case compute.OpTypeConvertDType, compute.OpTypeWhere:
			default:
				if elementKernel(vec.Portable, op, t, t) != nil {
					set[op] = true
				}
			}
		}
	}
	return set
}()

// fuse adds an element-wise operation to a group of its operands, or to a new one.
func (c *compiler) fuse(n *node) view {
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

// fuseOnce adds an operation whose operands all repeat one element for each row to a group with such rows. It is computed once for
// each.
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

// place puts m into the latest group it fits into, if there is one, and merges into that the other groups it reads from.
func (c *compiler) place(m *member, fits func(*group) bool) (view, bool) {
	candidates := c.candidates(m)
	at := slices.IndexFunc(candidates, func(u *unit) bool {
		return !c.device.unfused && len(u.group.members) < mostMembers && fits(u.group) && c.joins(m, u)
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
		if w := v.of.writer; w != nil && w.root().group != nil && !slices.Contains(list, w.root()) {
			list = append(list, w.root())
		}
	}
	slices.SortStableFunc(list, func(a, b *unit) int { return b.last - a.last })
	return list
}

// joins reports whether m can become a member of u: what it reads from u is at hand in the block, and nothing else that it
// reads waits for u.
func (c *compiler) joins(m *member, u *unit) bool {
	inner := u.inner(m)
	for _, v := range m.in {
		w := v.of.writer
		switch {
		case w == nil:
		case w.root() == u:
			if !u.group.atHand(m, v, inner, v.of) {
				return false
			}
		case c.depends(w, u):
			return false
		}
	}
	return true
}

// atHand reports whether m finds the elements of v, which another member writes, in the block that it works on.
func (g *group) atHand(m *member, v view, inner int, t *tensor) bool {
	rows := t.count != g.numel // t has one element for each row
	if isReduction(m.n.op) {
		return !rows && v.off == 0 && v.contiguous()
	}
	if m.row == rows {
		return volume(v.dims) == t.count && (v.off == 0 && v.contiguous() || !rows && v.turns(inner))
	}
	return !m.row && g.spreads(v, inner)
}

// spreads reports whether v repeats each element for a row.
func (g *group) spreads(v view, inner int) bool {
	if inner == 0 {
		return false
	}
	rows := g.numel / inner
	r, ok := v.reshape([]int{rows, inner})
	return ok && r.off == 0 && (rows == 1 || r.strides[0] == 1) && r.strides[1] == 0
}

// turns reports whether v shows all of a tensor, but with the parts of each of its rows in turned order: the last one first. It
// fits into rows of inner elements, of which blocks have whole ones.
func (v view) turns(inner int) bool {
	row, ok := v.turnedRow()
	return ok && inner > 0 && inner <= longRow && inner%row == 0
}

// turnedRow is the length of the rows whose parts a view turns.
func (v view) turnedRow() (length int, ok bool) {
	c := v.collapse()
	k := len(c.dims) - 2
	if k < 0 || k > 1 || c.strides[k+1] != 1 || c.strides[k] != -c.dims[k+1] {
		return 0, false
	}
	length = c.dims[k] * c.dims[k+1]
	return length, c.off == length-c.dims[k+1] && (k == 0 || c.strides[0] == length)
}

func isReduction(op compute.OpType) bool {
	switch op {
	case compute.OpTypeReduceSum, compute.OpTypeReduceMax, compute.OpTypeReduceMin, compute.OpTypeReduceProduct,
		compute.OpTypeReduceLogicalAnd, compute.OpTypeReduceLogicalOr:
		return true
	}
	return false
}

// join makes m a member of u, and returns what it writes.
func (c *compiler) join(m *member, u *unit) view {
	m.out = c.tensor(m.n.shape)
	if u.group.inner = u.inner(m); isReduction(m.n.op) {
		u.group.inner = volume(m.in[0].dims) / m.out.count
	}
	u.group.members = append(u.group.members, m)
	u.last = max(u.last, m.n.id)
	m.out.writer = u
	latest := u.rank
	for _, v := range m.in {
		if w := v.of.writer; w != nil && w.root() != u && !slices.Contains(u.deps, w.root()) {
			u.deps = append(u.deps, w.root())
			latest = max(latest, w.root().rank)
		}
	}
	c.settle(u, u.rank, latest)
	return whole(m.out, m.n.shape.Dimensions)
}

// inner is the length of the rows of u when m joins it, but for a reduction: m may read rows with their parts turned.
func (u *unit) inner(m *member) int {
	if u.group.inner > 0 {
		return u.group.inner
	}
	return m.turnedRow(u)
}

// turnedRow is the length of the longest rows that m reads from u with their parts turned, or 0.
func (m *member) turnedRow(u *unit) (longest int) {
	for _, v := range m.in {
		if length, ok := v.turnedRow(); ok && v.of.writer != nil && v.of.writer.root() == u {
			longest = max(longest, length)
		}
	}
	return longest
}

// merge makes v a part of u when their loops run over the same rows and neither waits for a third one that waits for
// the other.
func (c *compiler) merge(u, v *unit) {
	g, h := u.group, v.group
	if g.numel != h.numel || g.inner != h.inner && g.inner != 0 && h.inner != 0 {
		return
	}
	inner := max(g.inner, h.inner)
	for i := 0; i < len(g.members) && inner == 0; i++ {
		inner = g.members[i].turnedRow(v)
	}
	for i := 0; i < len(h.members) && inner == 0; i++ {
		inner = h.members[i].turnedRow(u)
	}
	if !c.atHandOf(u, v, inner) || !c.atHandOf(v, u, inner) {
		return
	}
	for _, pair := range [2][2]*unit{{u, v}, {v, u}} {
		for _, d := range pair[0].deps {
			if d.root() != pair[1] && d.root() != pair[0] && c.depends(d, pair[1]) {
				return
			}
		}
	}
	g.inner = inner
	g.members = append(g.members, h.members...)
	slices.SortFunc(g.members, func(a, b *member) int { return a.n.id - b.n.id })
	u.last = max(u.last, v.last)
	u.deps = append(u.deps, v.deps...)
	v.into = u
	c.settle(u, min(u.rank, v.rank), max(u.rank, v.rank))
}

// atHandOf reports whether the members of u find what they read from v in the block.
func (c *compiler) atHandOf(u, v *unit, inner int) bool {
	for _, m := range u.group.members {
		for _, x := range m.in {
			if w := x.of.writer; w != nil && w.root() == v && !u.group.atHand(m, x, inner, x.of) {
				return false
			}
		}
	}
	return true
}
