package compile

import (
	"slices"

	"github.com/goart-dev/art/backend/device/cpu/internal/ir"
)

// group is a set of operations that run as one loop over blocks of elements. A block is loaded once, goes through all
// of them in memory that stays in L1, and what others read is stored.
//
// All members have the same number of elements, or, once a reduction of the last axes is among them, one for each row
// of inner elements. So a softmax or a normalisation with all that surrounds it is one loop.
type group struct {
	numel   int
	inner   int // length of a row; 0 while nothing is reduced, and no halves of rows are swapped
	members []*member
}

// member is an operation of a group.
type member struct {
	n   *ir.Node
	in  []ir.View
	out *ir.Tensor
	row bool // one element for each row
}

// most members of a group: more would not fit into L1.
const mostMembers = 64

func (g *group) rows() int { return g.numel / max(g.inner, 1) }

// joins reports whether m can become a member of u: what it reads from u is at hand in the block, and nothing else that
// it reads waits for u.
func (c *compiler) joins(m *member, u *unit) bool {
	inner := c.innerWith(u, m)
	for _, v := range m.in {
		w := c.writer(v.Of)
		switch {
		case w == nil:
		case w.root() == u:
			if !u.group.atHand(m, v, inner, v.Of) {
				return false
			}
		case c.depends(w, u):
			return false
		}
	}
	return true
}

// atHand reports whether m finds the elements of v, which another member writes, in the block that it works on.
func (g *group) atHand(m *member, v ir.View, inner int, t *ir.Tensor) bool {
	rows := t.Count != g.numel // t has one element for each row
	if ir.IsReduction(m.n.Op) {
		return !rows && v.Off == 0 && v.Contiguous()
	}
	if m.row == rows {
		return ir.Volume(v.Dims) == t.Count && (v.Off == 0 && v.Contiguous() || !rows && swapsWithin(v, inner))
	}
	return !m.row && g.broadcasts(v, inner)
}

// broadcasts reports whether v repeats each element for a row.
func (g *group) broadcasts(v ir.View, inner int) bool {
	if inner == 0 {
		return false
	}
	rows := g.numel / inner
	r, ok := v.Reshape([]int{rows, inner})
	return ok && r.Off == 0 && (rows == 1 || r.Strides[0] == 1) && r.Strides[1] == 0
}

// swapsWithin reports whether v shows all of a tensor, but with the parts of each of its rows in reverse order, and
// fits into rows of inner elements, of which blocks have whole ones.
func swapsWithin(v ir.View, inner int) bool {
	row, ok := v.SwappedRow()
	return ok && inner > 0 && inner <= LongRow && inner%row == 0
}

// join makes m a member of u, and returns what it writes.
func (c *compiler) join(m *member, u *unit) ir.View {
	m.out = c.tensor(m.n.Shape)
	if u.group.inner = c.innerWith(u, m); ir.IsReduction(m.n.Op) {
		u.group.inner = ir.Volume(m.in[0].Dims) / m.out.Count
	}
	u.group.members = append(u.group.members, m)
	u.last = max(u.last, m.n.ID)
	c.writes(u, m.out)
	latest := u.rank
	for _, v := range m.in {
		if w := c.writer(v.Of); w != nil && w.root() != u && !slices.Contains(u.deps, w.root()) {
			u.deps = append(u.deps, w.root())
			latest = max(latest, w.root().rank)
		}
	}
	c.settle(u, u.rank, latest)
	return ir.Whole(m.out, m.n.Shape.Dimensions)
}

// innerWith is the length of the rows of u when m joins it, but for a reduction: m may read rows with their halves
// swapped.
func (c *compiler) innerWith(u *unit, m *member) int {
	if u.group.inner > 0 {
		return u.group.inner
	}
	return c.swappedRow(m, u)
}

// swappedRow is the length of the longest rows that m reads from u with their halves swapped, or 0.
func (c *compiler) swappedRow(m *member, u *unit) (longest int) {
	for _, v := range m.in {
		if length, ok := v.SwappedRow(); ok && c.writer(v.Of) != nil && c.writer(v.Of).root() == u {
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
	inner := c.mergedInner(u, v)
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
	slices.SortFunc(g.members, func(a, b *member) int { return a.n.ID - b.n.ID })
	u.last = max(u.last, v.last)
	u.deps = append(u.deps, v.deps...)
	v.into = u
	c.settle(u, min(u.rank, v.rank), max(u.rank, v.rank))
}

// mergedInner is the length of the rows of two groups as one.
func (c *compiler) mergedInner(u, v *unit) int {
	inner := max(u.group.inner, v.group.inner)
	for _, pair := range [2][2]*unit{{u, v}, {v, u}} {
		for _, m := range pair[0].group.members {
			if inner > 0 {
				return inner
			}
			inner = c.swappedRow(m, pair[1])
		}
	}
	return inner
}

// atHandOf reports whether the members of u find what they read from v in the block.
func (c *compiler) atHandOf(u, v *unit, inner int) bool {
	for _, m := range u.group.members {
		for _, x := range m.in {
			if w := c.writer(x.Of); w != nil && w.root() == v && !u.group.atHand(m, x, inner, x.Of) {
				return false
			}
		}
	}
	return true
}
