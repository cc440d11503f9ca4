package cpu

import (
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"

	"github.com/goart-dev/art/backend/device/cpu/internal/gemm"
)

const (
	tileRows     = 56       // most rows of a tile, a multiple of what the kernels of GEMM take
	wideRow      = 1 << 14  // length of rows of which a tile would not stay in a cache: then all workers share one,
	wideElements = 40 << 20 // of so many elements
	wideRows     = 14       // least rows of a matmul that is fused for the length of its rows
)

// fuseAttention fuses groups over rows with the matmuls before and after them.
//
//	before: s = matmul{q, kᵀ}; group{p = softmax of Where(mask, s)}; y = matmul{p, v}
//	after:  attention{q, kᵀ, mask, softmax, v}
func (c *compiler) fuseAttention() error {
	if c.opts.unfused {
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
func (c *compiler) fuseMatmuls(u *unit, readers map[*tensor][]*unit) {
	for _, v := range c.external(u) {
		w := c.writer(v.of)
		if w == nil {
			continue
		}
		m, ok := w.step.(*matmul)
		if !ok || w.root() != w || !c.readsRows(u, v.of, m) || len(readers[v.of]) != 1 {
			continue
		}
		k := &attention{first: m, rows: m.a.rows, width: u.group.inner, mask: c.maskOf(u, v.of)}
		if !worthFusing(k) {
			continue
		}
		second := c.secondMatmul(u, k, readers)
		if second != nil && len(readers[k.inner]) == 1 {
			k.inner.tile, k.inner.virtual = 2, true
		}
		c.link(u, k, []*unit{w, second}, readers)
		return
	}
}

// worthFusing reports whether fused attention may be faster than its parts: it is cut into rows only, so that a matmul with
// few of them is better off alone, and so is one whose numbers stay in a cache anyway.
func worthFusing(k *attention) bool {
	return k.mask != nil || len(k.first.batch) > 0 || k.width >= wideRow && k.rows >= wideRows
}

// readsRows reports whether the group reads all of a matmul in its order, as rows of its own.
func (c *compiler) readsRows(u *unit, t *tensor, m *matmul) bool {
	g := u.group
	if t.kind != dtypes.Float32 || t.memory != inArena || t.count != g.numel || m.b.rows != g.inner {
		return false
	}
	for _, v := range c.external(u) {
		if v.of == t && (v.off != 0 || volume(v.dims) != t.count || !v.contiguous()) {
			return false
		}
	}
	return true
}

// maskOf returns the condition under which the numbers of t are used, if something else stands for all others.
func (c *compiler) maskOf(u *unit, t *tensor) *view {
	var found *view
	for _, m := range u.group.members {
		for i, v := range m.in {
			if v.of != t {
				continue
			}
			cond := m.in[0]
			w := c.writer(cond.of)
			if m.n.op != compute.OpTypeWhere || i != 1 || found != nil || w != nil && w.root() == u ||
				volume(cond.dims) != t.count {
				return nil
			}
			found = &cond
		}
	}
	return found
}

// secondMatmul returns the matmul of what the group makes with another matrix, row for row of the first one.
func (c *compiler) secondMatmul(u *unit, k *attention, readers map[*tensor][]*unit) *unit {
	for _, m := range u.group.members {
		for _, w := range readers[m.out] {
			d, ok := w.step.(*matmul)
			if !ok || w.root() != w || !continues(k, d, m.out) || m.out.memory != inArena || m.row {
				continue
			}
			if slices.ContainsFunc(w.deps, func(x *unit) bool { return x.root() != u && c.depends(x, u) }) {
				continue
			}
			k.second, k.inner = d, m.out
			return w
		}
	}
	return nil
}

// continues reports whether m multiplies the rows of t, batch for batch.
func continues(k *attention, m *matmul, t *tensor) bool {
	if m.a.v.of != t || m.b.v.of == t || t.kind != dtypes.Float32 || m.a.v.off != 0 || m.a.rows != k.rows ||
		m.inner != k.width || m.a.row != k.width || m.a.inner != 1 {
		return false
	}
	return slices.EqualFunc(m.batch, k.first.batch, func(a, b gemm.Axis) bool { return a.N == b.N }) &&
		!slices.ContainsFunc(m.batch, func(a gemm.Axis) bool { return a.N > 1 && a.A*m.b.rows != a.C*k.width })
}

// link makes u the unit of fused attention with the matmuls of other units; the second may be nil. What only lies between
// its parts needs no memory.
func (c *compiler) link(u *unit, k *attention, matmuls []*unit, readers map[*tensor][]*unit) {
	between := k.first.out.of
	between.tile, between.virtual = 1, true
	k.others = slices.DeleteFunc(c.external(u), func(v view) bool { return v.of == between })
	u.attention = k
	matmuls = slices.DeleteFunc(matmuls, func(w *unit) bool { return w == nil })
	if k.second != nil {
		c.lives[k.inner.id].outside = true
	}
	c.readGathered(u, readers)
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

// readGathered lets the matmuls of fused attention read gathered operands where they are. A gather that nobody else reads
// is dropped.
func (c *compiler) readGathered(u *unit, readers map[*tensor][]*unit) {
	for _, m := range matmulsOf(u.attention) {
		w := c.gatherOf(m)
		if w == nil {
			continue
		}
		u.deps = append(u.deps, w.deps...)
		if t := m.b.v.of; len(readers[t]) == 1 && t.memory == inArena {
			w.into = u
		}
	}
}

// gatherOf makes m read what a unit gathers for it, if that gathers whole members of its batch. It returns that unit.
func (c *compiler) gatherOf(m *matmul) *unit {
	w := c.writer(m.b.v.of)
	if w == nil || w.root() != w || len(m.batch) == 0 || m.b.v.off != 0 {
		return nil
	}
	g, ok := w.step.(*gatherStep)
	if !ok || !g.members || g.widens() {
		return nil
	}
	size := volume(g.operand.dims[1:])
	if m.batch[0].N != g.out.dims[0] || m.batch[0].N > 1 && m.batch[0].B != size {
		return nil
	}
	m.gathered = &gathered{g, size}
	return w
}

// tileAttention chooses the size of a tile, when the loop is generated.
func (c *compiler) tileAttention(u *unit, l *loop) {
	k := u.attention
	k.loop = l
	if k.second != nil && k.inner.virtual && replacesInLoop(l, k.inner, k.first.out.of) {
		k.inner.tile = 1
	}
	if k.wide = k.width >= wideRow; k.wide {
		k.tile = ceilDiv(k.rows, ceilDiv(k.rows*k.width, wideElements))
		for range k.tiles() {
			k.shared = append(k.shared, c.scratch(u, k.tile*k.width))
		}
		return
	}
	batch := l.numel / (k.rows * k.width)
	k.tile = min(tileRows, max(8, ceilDiv(k.rows*batch, 2*c.opts.workers)), k.rows)
	if each := l.block / k.width; k.tile > each && each > 0 { // rows that the loop takes
		k.tile = k.tile / each * each
	}
}
