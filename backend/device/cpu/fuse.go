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
	inner   int // length of a row; 0 while nothing is reduced
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
	m := &member{n: n}
	for _, x := range n.in {
		m.in = append(m.in, c.values[x])
	}
	numel := n.shape.Size()
	return c.place(m, func(g *group) bool {
		m.row = g.inner > 0 && numel == g.rows()
		return m.row || numel == g.numel
	}, group{numel: numel})
}

// fuseRows adds a reduction of the last axes, which have inner elements.
func (c *compiler) fuseRows(n *node, x view, inner int) view {
	m := &member{n: n, in: []view{x}}
	numel := volume(x.dims)
	return c.place(m, func(g *group) bool {
		m.row = true
		return numel == g.numel && (g.inner == 0 || g.inner == inner)
	}, group{numel: numel, inner: inner})
}

// place puts m into the latest group it fits into, and merges into that the other groups it reads from; or into a fresh
// one. fits sets m.row.
func (c *compiler) place(m *member, fits func(*group) bool, fresh group) view {
	m.out = c.tensor(m.n.shape)
	candidates := c.candidates(m)
	at := slices.IndexFunc(candidates, func(u *unit) bool {
		return !c.device.unfused && len(u.group.members) < mostMembers && fits(u.group) && c.joins(m, u)
	})
	if at < 0 {
		fits(&fresh)
		u := &unit{group: &fresh}
		c.add(u)
		c.join(m, u)
		return whole(m.out, m.n.shape.Dimensions)
	}
	u := candidates[at]
	c.join(m, u)
	for _, other := range candidates {
		if other != u && len(other.group.members)+len(u.group.members) <= mostMembers {
			c.merge(u, other)
		}
	}
	return whole(m.out, m.n.shape.Dimensions)
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
	for _, v := range m.in {
		w := v.of.writer
		switch {
		case w == nil:
		case w.root() == u:
			if !u.group.atHand(m, v, u.group.inner, v.of) {
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
		return v.off == 0 && volume(v.dims) == t.count && v.contiguous()
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

func isReduction(op compute.OpType) bool {
	switch op {
	case compute.OpTypeReduceSum, compute.OpTypeReduceMax, compute.OpTypeReduceMin, compute.OpTypeReduceProduct,
		compute.OpTypeReduceLogicalAnd, compute.OpTypeReduceLogicalOr:
		return true
	}
	return false
}

func (c *compiler) join(m *member, u *unit) {
	if isReduction(m.n.op) {
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
}

// merge makes v a part of u when their loops run over the same rows and neither waits for a third one that waits for
// the other.
func (c *compiler) merge(u, v *unit) {
	g, h := u.group, v.group
	if g.numel != h.numel || g.inner != h.inner && g.inner != 0 && h.inner != 0 {
		return
	}
	inner := max(g.inner, h.inner)
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
