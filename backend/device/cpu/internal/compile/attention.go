package compile

import (
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"

	"github.com/goart-dev/art/backend/device/cpu/internal/gemm"
	"github.com/goart-dev/art/backend/device/cpu/internal/ir"
)

// Sizes of fused attention.
const (
	tileRows     = 56       // most rows of a tile, a multiple of what the kernels of GEMM take
	WideRow      = 1 << 14  // length of rows of which a tile would not stay in a cache: then all workers share one,
	wideElements = 40 << 20 // of so many elements
	WideRows     = 14       // least rows of a matmul that is fused for the length of its rows
	joinedRows   = 24       // most rows of a tile of several members of the batch
)

// fuseAttention fuses groups over rows with the matmuls before and after them.
//
//	before: s = matmul{q, kᵀ}; group{p = softmax of Where(mask, s)}; y = matmul{p, v}
//	after:  attention{q, kᵀ, mask, softmax, v}
func (c *compiler) fuseAttention() error {
	if c.opts.Unfused {
		return nil
	}
	readers := c.readers()
	for _, u := range c.units {
		if u.into == nil && u.group != nil && u.group.inner > 0 {
			c.fuseMatmuls(u, readers)
		}
	}
	return nil
}

// fuseMatmuls fuses a group with the matmuls around it, if it can.
func (c *compiler) fuseMatmuls(u *unit, readers map[*ir.Tensor][]*unit) {
	for _, v := range c.external(u) {
		w := c.writer(v.Of)
		if w == nil {
			continue
		}
		m, ok := w.step.(*ir.Matmul)
		if !ok || w.root() != w || !c.readsRows(u, v.Of, m) || len(readers[v.Of]) != 1 {
			continue
		}
		k := &ir.Attention{First: m, Rows: m.A.Rows, Width: u.group.inner, Mask: c.maskOf(u, v.Of)}
		if !worthFusing(k) {
			continue
		}
		second := c.secondMatmul(u, k, readers)
		if second != nil && len(readers[k.Inner]) == 1 {
			k.Inner.Tile, k.Inner.Virtual = 2, true
		}
		c.link(u, k, []*unit{w, second}, readers)
		return
	}
}

// worthFusing reports whether fused attention may be faster than its parts: it is cut into rows only, so that a matmul
// with few of them is better off alone, and so is one whose numbers stay in a cache anyway.
func worthFusing(k *ir.Attention) bool {
	return k.Mask != nil || len(k.First.Batch) > 0 || k.Width >= WideRow && k.Rows >= WideRows
}

// readsRows reports whether the group reads all of a matmul in its order, as rows of its own.
func (c *compiler) readsRows(u *unit, t *ir.Tensor, m *ir.Matmul) bool {
	g := u.group
	if t.DType != dtypes.Float32 || t.Memory != ir.InArena || t.Count != g.numel || m.B.Rows != g.inner {
		return false
	}
	for _, v := range c.external(u) {
		if v.Of == t && (v.Off != 0 || ir.Volume(v.Dims) != t.Count || !v.Contiguous()) {
			return false
		}
	}
	return true
}

// maskOf returns the condition under which the numbers of t are used, if something else stands for all others.
func (c *compiler) maskOf(u *unit, t *ir.Tensor) *ir.View {
	var found *ir.View
	for _, m := range u.group.members {
		for i, v := range m.in {
			if v.Of != t {
				continue
			}
			cond := m.in[0]
			w := c.writer(cond.Of)
			if m.n.Op != compute.OpTypeWhere || i != 1 || found != nil || w != nil && w.root() == u ||
				ir.Volume(cond.Dims) != t.Count {
				return nil
			}
			found = &cond
		}
	}
	return found
}

// secondMatmul returns the matmul of what the group makes with another matrix, row for row of the first one.
func (c *compiler) secondMatmul(u *unit, k *ir.Attention, readers map[*ir.Tensor][]*unit) *unit {
	for _, m := range u.group.members {
		for _, w := range readers[m.out] {
			d, ok := w.step.(*ir.Matmul)
			if !ok || w.root() != w || !continues(k, d, m.out) || m.out.Memory != ir.InArena || m.row {
				continue
			}
			if slices.ContainsFunc(w.deps, func(x *unit) bool { return x.root() != u && c.depends(x, u) }) {
				continue
			}
			k.Second, k.Inner = d, m.out
			return w
		}
	}
	return nil
}

// continues reports whether m multiplies the rows of t, batch for batch.
func continues(k *ir.Attention, m *ir.Matmul, t *ir.Tensor) bool {
	if m.A.View.Of != t || m.B.View.Of == t || t.DType != dtypes.Float32 || m.A.View.Off != 0 || m.A.Rows != k.Rows ||
		m.Inner != k.Width || m.A.Rows > 1 && m.A.Row != k.Width || m.A.Inner != 1 {
		return false
	}
	return slices.EqualFunc(m.Batch, k.First.Batch, func(a, b gemm.Axis) bool { return a.N == b.N }) &&
		!slices.ContainsFunc(m.Batch, func(a gemm.Axis) bool { return a.N > 1 && a.A*m.B.Rows != a.C*k.Width })
}

// link makes u the unit of fused attention with the matmuls of other units; the second may be nil. What only lies
// between its parts needs no memory.
func (c *compiler) link(u *unit, k *ir.Attention, matmuls []*unit, readers map[*ir.Tensor][]*unit) {
	between := k.First.Out.Of
	between.Tile, between.Virtual = 1, true
	k.Others = slices.DeleteFunc(c.external(u), func(v ir.View) bool { return v.Of == between })
	u.attention = k
	matmuls = slices.DeleteFunc(matmuls, func(w *unit) bool { return w == nil })
	if k.Second != nil {
		c.lives[k.Inner.ID].outside = true
	}
	// The matmuls read gathered operands where they are. A gather that nobody else reads is dropped.
	for _, m := range ir.MatmulsOf(u.attention) {
		w := c.gatherOf(m)
		if w == nil {
			continue
		}
		u.deps = append(u.deps, w.deps...)
		if t := m.B.View.Of; len(readers[t]) == 1 && t.Memory == ir.InArena {
			w.into = u
		}
	}
	from, to := u.rank, u.rank
	for _, w := range matmuls {
		u.last = max(u.last, w.last)
		from, to = min(from, w.rank), max(to, w.rank)
		u.deps = append(u.deps, w.deps...)
		w.into = u
	}
	u.deps = slices.DeleteFunc(u.deps, func(d *unit) bool { return d.root() == u })
	c.settle(u, from, to)
}

// gatherOf makes m read what a unit gathers for it, if that gathers whole pages. It returns that unit.
func (c *compiler) gatherOf(m *ir.Matmul) *unit {
	w := c.writer(m.B.View.Of)
	if w == nil || w.root() != w || len(m.Batch) == 0 || m.B.View.Off != 0 {
		return nil
	}
	g, ok := w.step.(*ir.Gather)
	if !ok || !g.Members || g.Widens() {
		return nil
	}
	p := &ir.Gathered{By: g, Page: ir.Volume(g.Operand.Dims[1:])}
	if !inPage(p, m) && !inPages(p, m) {
		return nil
	}
	m.Gathered = p
	return w
}

// inPage reports whether each member of the first axis of the batch is a page.
func inPage(p *ir.Gathered, m *ir.Matmul) bool {
	p.Each = max(m.B.Rows, m.Inner)
	return m.Batch[0].N == p.By.Out.Dims[0] && (m.Batch[0].N == 1 || m.Batch[0].B == p.Page)
}

// inPages reports whether each matrix is several pages, one after another.
func inPages(p *ir.Gathered, m *ir.Matmul) bool {
	long := m.B.Rows // the axis that is cut
	switch {
	case m.B.Inner == 1 && m.B.Row == m.Inner:
		p.Step = m.B.Row
	case m.B.Row == 1 && m.B.Inner == m.B.Rows:
		p.Step, long = m.B.Inner, m.Inner
	}
	if p.Step == 0 || p.Page%p.Step != 0 {
		return false
	}
	p.Each = p.Page / p.Step
	return long%p.Each == 0 && !slices.ContainsFunc(m.Batch, func(a gemm.Axis) bool { return a.N > 1 && a.B%p.Page != 0 })
}

// tileAttention chooses the size of a tile, when the loop is generated.
func (c *compiler) tileAttention(u *unit, l *ir.Loop) {
	k := u.attention
	k.Loop = l
	if k.Second != nil && k.Inner.Virtual && replacesInLoop(l, k.Inner, k.First.Out.Of) {
		k.Inner.Tile = 1
	}
	if k.Wide = k.Width >= WideRow; k.Wide {
		k.Tile = ir.CeilDiv(k.Rows, ir.CeilDiv(k.Rows*k.Width, wideElements))
		for range k.Tiles() {
			k.Shared = append(k.Shared, c.scratch(u, k.Tile*k.Width))
		}
		return
	}
	batch := l.Numel / (k.Rows * k.Width)
	k.Tile = min(tileRows, max(8, ir.CeilDiv(k.Rows*batch, 2*c.opts.Workers)), k.Rows)
	if each := l.Block / k.Width; k.Tile > each && each > 0 { // rows that the loop takes
		k.Tile = k.Tile / each * each
	}
	if k.Paged() && 2*k.Rows <= joinedRows && k.Inner.Virtual {
		k.Tile, k.Joined = k.Rows, min(batch, joinedRows/k.Rows)
	}
}
