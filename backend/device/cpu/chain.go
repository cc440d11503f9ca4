package cpu

import (
	"slices"
	"unsafe"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"

	"github.com/goart-dev/art/backend/device/cpu/internal/gemm"
	"github.com/goart-dev/art/backend/device/cpu/internal/pool"
)

// chain is a product, a loop over its rows, and the product of what that makes with another matrix, or the first two alone.
// It goes through all of them a tile of rows at a time, so that the rows in between are never there all at once. Attention
// is one: queries times keys, softmax, times values. So is the log-softmax of which a few numbers are kept.
//
// Where a mask replaces what the first product gave, that is not computed, for whole columns of a tile; and the second
// product ends with the last column of a tile that is not zero. So a causal attention computes half, and one with a cache
// what the cache holds. The bits are those of the operations one by one: a chain of multiply-adds of zeros changes nothing.
type chain struct {
	first  dot
	loop   *loop
	second *dot
	mask   *view     // of the numbers of first that are used; nil for all
	rows   int       // of a member of the batch
	width  int       // of a row
	tile   int       // rows that are computed at once
	inner  *tensor   // what second reads
	wide   bool      // all workers share a tile
	shared []*tensor // its memory then: it is too large to be kept for the next run in any other way
	others []view    // what the loop reads from elsewhere
}

const (
	tileRows     = 56       // most rows of a tile, a multiple of what the kernels of products take
	wideRow      = 1 << 14  // length of rows of which a tile would not stay in a cache: then all workers share one,
	wideElements = 40 << 20 // of so many elements
	chainRows    = 14       // least of them
)

// chains joins units.
func (c *compiler) chains() {
	if c.device.unfused {
		return
	}
	readers := c.readers()
	for _, u := range c.units {
		if u.into == nil && u.group != nil && u.group.inner > 0 {
			c.chain(u, readers)
		}
	}
}

// chain makes a chain of a group, if it can.
func (c *compiler) chain(u *unit, readers map[*tensor][]*unit) {
	for _, v := range u.external() {
		w := v.of.writer
		if w == nil {
			continue
		}
		d, ok := w.step.(dot)
		if !ok || w.root() != w || !u.tiles(v.of, d) || len(readers[v.of]) != 1 {
			continue
		}
		k := &chain{first: d, rows: d.a.rows, width: u.group.inner, mask: u.mask(v.of)}
		if !k.worthwhile() {
			continue
		}
		second := c.second(u, k, readers)
		if second != nil && len(readers[k.inner]) == 1 {
			k.inner.tile, k.inner.virtual = 2, true
		}
		c.link(u, w, second, k, readers)
		return
	}
}

// worthwhile reports whether the chain may be faster than its parts: it is cut into rows only, so that a product with few of
// them is better off alone, and so is one whose numbers stay in a cache anyway.
func (k *chain) worthwhile() bool {
	return k.mask != nil || len(k.first.axes) > 0 || k.width >= wideRow && k.rows >= chainRows
}

// tiles reports whether the group reads all of a product in its order, as rows of its own.
func (u *unit) tiles(t *tensor, d dot) bool {
	g := u.group
	if t.kind != dtypes.Float32 || t.place != inArena || t.count != g.numel || d.b.rows != g.inner {
		return false
	}
	for _, v := range u.external() {
		if v.of == t && (v.off != 0 || volume(v.dims) != t.count || !v.contiguous()) {
			return false
		}
	}
	return true
}

// mask returns the condition under which the numbers of t are used, if something else stands for all others.
func (u *unit) mask(t *tensor) *view {
	var found *view
	for _, m := range u.group.members {
		for i, v := range m.in {
			if v.of != t {
				continue
			}
			cond := m.in[0]
			if m.n.op != compute.OpTypeWhere || i != 1 || found != nil || cond.of.writer != nil && cond.of.writer.root() == u || volume(cond.dims) != t.count {
				return nil
			}
			found = &cond
		}
	}
	return found
}

// second returns the product of what the group makes with another matrix, row for row of the first one.
func (c *compiler) second(u *unit, k *chain, readers map[*tensor][]*unit) *unit {
	for _, m := range u.group.members {
		for _, w := range readers[m.out] {
			d, ok := w.step.(dot)
			if !ok || w.root() != w || !k.continues(d, m.out) || m.out.place != inArena || m.row {
				continue
			}
			if slices.ContainsFunc(w.deps, func(x *unit) bool { return x.root() != u && c.depends(x, u) }) {
				continue
			}
			k.second, k.inner = &d, m.out
			return w
		}
	}
	return nil
}

// continues reports whether d multiplies the rows of t, batch for batch.
func (k *chain) continues(d dot, t *tensor) bool {
	if d.a.v.of != t || d.b.v.of == t || t.kind != dtypes.Float32 || d.a.v.off != 0 || d.a.rows != k.rows || d.inner != k.width || d.a.row != k.width || d.a.inner != 1 {
		return false
	}
	return slices.EqualFunc(d.axes, k.first.axes, func(a, b gemm.Axis) bool { return a.N == b.N }) &&
		!slices.ContainsFunc(d.axes, func(a gemm.Axis) bool { return a.N > 1 && a.A*d.b.rows != a.C*k.width })
}

// link makes u the unit of the chain. What only lies between its parts needs no memory.
func (c *compiler) link(u, first, second *unit, k *chain, readers map[*tensor][]*unit) {
	between := k.first.out.of
	between.tile, between.virtual = 1, true
	k.others = slices.DeleteFunc(u.external(), func(v view) bool { return v.of == between })
	u.chain = k
	parts := []*unit{first}
	if second != nil {
		parts = append(parts, second)
		k.inner.outside = true
	}
	c.gathered(u, k, readers)
	from, to := u.rank, u.rank
	for _, p := range parts {
		u.last = max(u.last, p.last)
		from, to = min(from, p.rank), max(to, p.rank)
		u.deps = append(u.deps, p.deps...)
		p.into = u
	}
	u.deps = slices.DeleteFunc(u.deps, func(d *unit) bool { return d.root() == u })
	c.settle(u, from, to)
}

// gathered lets the products of a chain read gathered operands where they lie. A gathering that nobody else reads falls away.
func (c *compiler) gathered(u *unit, k *chain, readers map[*tensor][]*unit) {
	products := []*dot{&k.first}
	if k.second != nil {
		products = append(products, k.second)
	}
	for _, d := range products {
		w := d.picks()
		if w == nil {
			continue
		}
		u.deps = append(u.deps, w.deps...)
		if t := d.b.v.of; len(readers[t]) == 1 && t.place == inArena {
			w.into = u
		}
	}
}

// finish chooses the size of a tile, when the loop is there.
func (k *chain) finish(c *compiler, u *unit, l *loop) {
	k.loop = l
	workers := c.device.pool.Workers()
	if k.second != nil && k.inner.virtual && l.replaces(k.inner, k.first.out.of) {
		k.inner.tile = 1
	}
	if k.wide = k.width >= wideRow; k.wide {
		k.tile = ceil(k.rows, ceil(k.rows*k.width, wideElements))
		for range k.tiles() {
			k.shared = append(k.shared, c.scratch(u, k.tile*k.width))
		}
		return
	}
	batch := l.numel / (k.rows * k.width)
	k.tile = min(tileRows, max(8, ceil(k.rows*batch, 2*workers)), k.rows)
	if each := l.block / k.width; k.tile > each && each > 0 { // rows that the loop takes
		k.tile = k.tile / each * each
	}
}

func ceil(x, y int) int { return (x + y - 1) / y }

// reads are all views that the chain reads from elsewhere.
func (k *chain) reads() []view {
	list := append(slices.Clone(k.others), k.first.a.v)
	list = append(list, k.first.right()...)
	if k.second != nil {
		list = append(list, k.second.right()...)
	}
	return list
}

// right are the views that hold the right operand.
func (d *dot) right() []view {
	if d.gathered != nil {
		return d.gathered.views()
	}
	return []view{d.b.v}
}

// readsPacked: the products read packed matrices where they could alone.
func (k *chain) readsPacked(v view) bool {
	if slices.ContainsFunc(k.others, func(o view) bool { return o.of == v.of }) {
		return false
	}
	first := k.first.a.v.of == v.of || k.first.b.v.of == v.of
	second := k.second != nil && k.second.b.v.of == v.of
	return (!first || k.first.readsPacked(k.first.b.v)) && (!second || k.second.readsPacked(k.second.b.v))
}

func (k *chain) run(r *run) {
	each := ceil(k.rows, k.tile)
	tiles := k.loop.numel / (k.rows * k.width) * each
	compute := func(workers *pool.Pool, i int) {
		row := i % each * k.tile
		k.compute(r, workers, part{i / each, row, min(k.tile, k.rows-row)})
	}
	if !k.wide {
		r.device.pool.For(tiles, func(i int) { compute(nil, i) })
		return
	}
	for i := range tiles {
		compute(r.device.pool, i)
	}
}

// tiles is how many tiles there are at once.
func (k *chain) tiles() int {
	if k.second != nil && k.inner.virtual {
		return k.inner.tile
	}
	return 1
}

// part is a tile: n rows of a member of the batch, from row on.
type part struct{ member, row, n int }

// compute computes a tile with some workers; nil is one.
func (k *chain) compute(r *run, workers *pool.Pool, p part) {
	t := tiles{first: (p.member*k.rows + p.row) * k.width}
	for i := range k.tiles() {
		if k.wide {
			t.base[i] = r.at[k.shared[i].id]
			continue
		}
		s := r.device.memory.alloc(4 * k.tile * k.width)
		defer r.device.memory.release(s)
		t.base[i] = s.base
	}
	scores := list[float32](t.base[0], p.n*k.width)
	used := k.used(r, p)
	k.first.rowsOf(r, workers, scores, k.width, k.first.left(r, p), p, used, k.first.inner)
	if used < k.width {
		for i := range p.n {
			clear(scores[i*k.width+used : (i+1)*k.width])
		}
	}
	k.loop.runTile(r, workers, t, p.member*k.rows+p.row, p.n)
	if k.second == nil {
		return
	}
	inner := scores
	switch {
	case !k.inner.virtual:
		inner = list[float32](r.ptr(view{of: k.inner}, t.first), p.n*k.width)
	case k.inner.tile == 2:
		inner = list[float32](t.base[1], p.n*k.width)
	}
	columns := k.second.b.rows
	out := list[float32](r.ptr(k.second.out, t.first/k.width*columns), p.n*columns)
	k.second.rowsOf(r, workers, out, columns, gemm.View{Data: inner, Row: k.width, Col: 1}, p, columns, k.ends(inner, p.n))
}

// runTile runs a loop over n rows of a tile.
func (l *loop) runTile(r *run, workers *pool.Pool, t tiles, row, n int) {
	each := max(1, l.block/l.inner)
	blocks := ceil(n, each)
	parts := 1
	if workers != nil {
		parts = min(blocks, partsEach*workers.Workers())
	}
	one := func(i int) {
		w := l.worker()
		defer workersPool.Put(w)
		w.tiles = t
		l.begin(r, w)
		for b := blocks * i / parts; b < blocks*(i+1)/parts; b++ {
			at, m := row+b*each, min(each, n-b*each)
			l.runBlock(r, w, block{first: at * l.inner, n: m * l.inner, row: at, rows: m})
		}
	}
	if workers == nil {
		one(0)
		return
	}
	workers.For(parts, one)
}

// left is the left operand of a tile.
func (d *dot) left(r *run, p part) gemm.View {
	a, _ := d.offsets(p.member)
	return gemm.View{Data: from[float32](r, d.a.v)[a+p.row*d.a.row:], Row: d.a.row, Col: d.a.inner}
}

// rowsOf multiplies rows of a tile by so many columns of the right operand, over so much of the contracted axis.
func (d *dot) rowsOf(r *run, workers *pool.Pool, c []float32, ldc int, left gemm.View, p part, columns, inner int) {
	if w := r.packed[d.b.v.of.id]; w != nil {
		if d.b.inner == 1 {
			d.kernels.MulPacked(workers, c, ldc, left, w, p.n, false)
		} else {
			d.kernels.MulPackedT(workers, c, ldc, left, w, p.n, false)
		}
		return
	}
	if d.half {
		d.widening(r, workers, c, ldc, left, p.n)
		return
	}
	right := gemm.View{Data: d.operand(r, p), Row: d.b.inner, Col: d.b.row}
	d.kernels.Mul(workers, c, ldc, left, right, p.n, columns, inner, false)
}

// operand returns the right operand of a tile, from its first number on.
func (d *dot) operand(r *run, p part) []float32 {
	_, b := d.offsets(p.member)
	if d.gathered == nil {
		return from[float32](r, d.b.v)[b:]
	}
	first := p.member / (d.members() / d.axes[0].N)
	b += d.gathered.at(r, first) - first*d.axes[0].B
	return list[float32](r.ptr(d.gathered.operand, b), d.gathered.operand.of.count-b)
}

// members is the size of the batch.
func (d *dot) members() int {
	n := 1
	for _, a := range d.axes {
		n *= a.N
	}
	return n
}

// offsets returns where the operands of a member of the batch begin.
func (d *dot) offsets(member int) (a, b int) {
	for i := len(d.axes) - 1; i >= 0; i-- {
		at := member % d.axes[i].N
		member /= d.axes[i].N
		a, b = a+at*d.axes[i].A, b+at*d.axes[i].B
	}
	return a, b
}

// used returns how many columns of a tile the mask lets through, up to the last one.
func (k *chain) used(r *run, p part) int {
	if k.mask == nil || k.first.half || r.packed[k.first.b.v.of.id] != nil {
		return k.width
	}
	m := *k.mask
	stride := m.strides[len(m.strides)-1]
	if m.dims[len(m.dims)-1] != k.width {
		return k.width
	}
	used := 0
	axis := max(0, len(m.dims)-2) // of the rows
	for i, off := 0, 0; i < p.n; i++ {
		if row := p.member*k.rows + p.row + i; i == 0 || row%m.dims[axis] == 0 {
			off = m.at(row * k.width)
		} else {
			off += m.strides[axis]
		}
		switch {
		case stride == 1:
			used = max(used, lastByte(list[byte](r.ptr(m, off), k.width), used))
		case stride == 0 && *(*byte)(r.ptr(m, off)) == 0:
		default:
			return k.width
		}
	}
	return used
}

// lastByte returns the length of x without the zeros at its end, but not less than least.
func lastByte(x []byte, least int) int {
	n := len(x)
	for n-8 >= least && *(*uint64)(unsafe.Pointer(&x[n-8])) == 0 {
		n -= 8
	}
	for n > least && x[n-1] == 0 {
		n--
	}
	return n
}

// ends returns the length of the longest of n rows without the zeros at its end.
func (k *chain) ends(p []float32, n int) int {
	if k.mask == nil {
		return k.width
	}
	end := 0
	for i := range n {
		end = max(end, lastNumber(p[i*k.width:][:k.width], end))
	}
	return end
}

// lastNumber returns the length of x without the zeros at its end, of either sign, but not less than least.
func lastNumber(x []float32, least int) int {
	const signs = 1<<63 | 1<<31
	n := len(x)
	for n-16 >= least {
		b := (*[8]uint64)(unsafe.Pointer(&x[n-16]))
		if (b[0]|b[1]|b[2]|b[3]|b[4]|b[5]|b[6]|b[7])&^signs != 0 {
			break
		}
		n -= 16
	}
	for n-2 >= least && *(*uint64)(unsafe.Pointer(&x[n-2]))&^signs == 0 {
		n -= 2
	}
	for n > least && x[n-1] == 0 {
		n--
	}
	return n
}
