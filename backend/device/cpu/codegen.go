package cpu

import (
	"fmt"
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
)

// cache is how much memory the registers of a loop may take: what stays in the nearest cache.
const cache = 32 << 10

// Numbers of elements of a block, but for rows that are longer. Without rows it is a multiple of the smallest, so that no vector lies in
// two lines of the cache. Long blocks have fewer calls, but each worker shall get some.
const (
	smallestBlock = 128
	commonBlock   = 4096
	largestBlock  = 16384
	blocksEach    = 8 // that a worker gets, at least, if they are longer than common ones
)

// generator makes a loop of a group.
type generator struct {
	c      *compiler
	u      *unit
	loop   *loop
	loaded map[string]int  // registers of external views, by what they show
	made   map[*tensor]int // registers of members
	wide   map[int]int     // registers of rows, spread, by the register of one element for each row
	uses   map[int]int     // instruction that reads a register last
	kinds  []register
}

// register describes memory that an instruction writes.
type register struct {
	size    int  // bytes of an element
	row     bool // one element for each row
	pointer bool // it points into a tensor
	keep    bool // it is filled once, before the first block
}

// build returns the loop of u.
func (c *compiler) build(u *unit) step {
	g := u.group
	gen := &generator{
		c: c, u: u, loop: &loop{numel: g.numel, inner: g.inner, level: c.device.level},
		loaded: map[string]int{}, made: map[*tensor]int{}, wide: map[int]int{}, uses: map[int]int{},
	}
	for _, m := range g.members {
		gen.member(m)
	}
	gen.loop.work = len(gen.loop.instrs)
	if g.inner <= longRow {
		gen.combine()
	}
	gen.allocate()
	if g.inner > 0 {
		gen.loop.rows = gen.loop.block / g.inner
	}
	gen.loop.planAhead()
	if k := u.chain; k != nil {
		k.finish(c, u, gen.loop)
		return k
	}
	return gen.loop
}

// member adds the instructions of one operation.
func (g *generator) member(m *member) {
	in := instr{do: apply, row: m.row, size: m.out.size}
	if side, one := g.scalarSide(m); side >= 0 {
		in.scalar = withScalar(g.c.device.level, m.n.op, side)
		in.src[0], in.left = g.operand(m, m.in[1-side]), side == 0
		if in.do, in.src[1] = applyRows, 0; one {
			in.do, in.src[1] = applyOne, g.fixed(m.in[side])
		} else {
			in.src[1] = g.perRow(m.in[side])
		}
	} else {
		for i, v := range m.in {
			in.src[i] = g.operand(m, v)
		}
	}
	for i := len(m.in); i < len(in.src); i++ {
		in.src[i] = in.src[0]
	}
	in.cheap = cheap[m.n.op]
	if m.out.kind == dtypes.Float32 && m.in[0].of.kind == dtypes.Float32 {
		in.op = m.n.op
	}
	if isReduction(m.n.op) {
		in.do, in.row = shrink, false
		k := reduceKernel(g.c.device.level, m.n.op, m.in[0].of.kind)
		in.reduce, in.pieces = k.rows, k.pieces
		in.sum = g.loop.sums
		g.loop.sums++
	} else {
		in.kernel = elementKernel(g.c.device.level, m.n.op, m.out.kind, m.in[0].of.kind)
	}
	in.dst = g.register(register{size: m.out.size, row: m.row, pointer: m.out.outside})
	if m.out.outside {
		g.emit(instr{do: point, dst: in.dst, v: whole(m.out, []int{m.out.count}), row: m.row})
	}
	g.made[m.out] = in.dst
	g.emit(in)
}

// cheap operations are computed again rather than stored for a later phase.
var cheap = map[compute.OpType]bool{
	compute.OpTypeAdd: true, compute.OpTypeSub: true, compute.OpTypeMul: true, compute.OpTypeEqual: true, compute.OpTypeNotEqual: true,
	compute.OpTypeLessThan: true, compute.OpTypeLessOrEqual: true, compute.OpTypeGreaterThan: true, compute.OpTypeGreaterOrEqual: true,
}

// scalarSide returns the operand of a binary operation that is one number, for all elements or for each row, where the other is
// not and there is a kernel for that, or -1.
func (g *generator) scalarSide(m *member) (side int, one bool) {
	if len(m.in) != 2 || m.in[0].of.kind != dtypes.Float32 || withScalar(g.c.device.level, m.n.op, 0) == nil {
		return -1, false
	}
	var ones, rows [2]bool
	for i, v := range m.in {
		r, made := g.made[v.of]
		ones[i] = !made && v.uniform()
		rows[i] = !m.row && (made && g.kinds[r].row || !made && g.loop.inner > 1 && v.ofRows(g.loop.inner) != nil)
	}
	for _, which := range [][2]bool{ones, rows} {
		if which[0] != which[1] {
			return slices.Index(which[:], true), ones[0] != ones[1]
		}
	}
	return -1, false
}

// uniform reports whether a view shows one element.
func (v view) uniform() bool {
	c := v.collapse()
	return !v.of.virtual && (len(c.dims) == 0 || slices.Max(c.strides) == 0 && slices.Min(c.strides) == 0)
}

// ofRows returns the view that has one element for each row of a view that repeats it along the row, collapsed, or nil.
func (v view) ofRows(inner int) *view {
	c := v.collapse()
	k := len(c.dims) - 1
	if k < 0 || c.strides[k] != 0 || c.dims[k]%inner != 0 || v.of.virtual {
		return nil
	}
	c.dims[k] /= inner
	c = c.collapse()
	return &c
}

// fixed returns a register that points to the element that a view shows.
func (g *generator) fixed(v view) int {
	key := "one " + viewKey(view{of: v.of, off: v.off}, true)
	if r, ok := g.loaded[key]; ok {
		return r
	}
	r := g.register(register{size: v.of.size, row: true, pointer: true})
	g.loaded[key] = r
	g.emit(instr{do: fixed, dst: r, v: v, size: v.of.size, row: true})
	return r
}

// perRow returns the register with one element for each row of a view that repeats it.
func (g *generator) perRow(v view) int {
	if r, made := g.made[v.of]; made {
		return r
	}
	return g.load(*v.ofRows(g.loop.inner), true)
}

// operand returns the register that holds what a member reads.
func (g *generator) operand(m *member, v view) int {
	narrow := m.row && !isReduction(m.n.op)
	r, made := g.made[v.of]
	switch {
	case !made:
		return g.load(v, narrow)
	case v.off > 0:
		return g.turn(v, r)
	case !g.kinds[r].row || narrow:
		return r
	}
	if wide, ok := g.wide[r]; ok {
		return wide
	}
	wide := g.register(register{size: v.of.size})
	g.emit(instr{do: spread, dst: wide, src: [3]int{r, r, r}, size: v.of.size})
	g.wide[r] = wide
	return wide
}

// turn returns the register that has the parts of the rows of another one in turned order.
func (g *generator) turn(v view, r int) int {
	c := v.collapse()
	key := viewKey(c, false)
	if turned, ok := g.loaded[key]; ok {
		return turned
	}
	turned := g.register(register{size: v.of.size})
	g.emit(instr{do: turn, dst: turned, src: [3]int{r, r, r}, v: c, size: v.of.size})
	g.loaded[key] = turned
	return turned
}

// load returns the register of an external view, and the instruction that fills it unless there is one.
func (g *generator) load(v view, row bool) int {
	c := v.collapse()
	key := viewKey(c, row)
	if r, ok := g.loaded[key]; ok {
		return r
	}
	in := instr{do: fetch, v: c, size: v.of.size, row: row}
	kind := register{size: v.of.size, row: row}
	switch {
	case c.uniform():
		in.do, kind.keep = repeat, true
	case v.of.virtual || len(c.dims) == 1 && c.strides[0] == 1:
		in.do, kind.pointer = point, true
	case !row && g.loop.inner > 0 && g.loop.inner <= commonBlock && len(c.dims) == 2 && c.strides[0] == 0 && c.dims[1] == g.loop.inner:
		in.do, kind.keep = cycle, true
	case len(c.dims) > mostAxes:
		panic(fmt.Sprintf("a view with more than %d axes that cannot be joined", mostAxes))
	}
	in.dst = g.register(kind)
	g.loaded[key] = in.dst
	g.emit(in)
	return in.dst
}

func (g *generator) register(k register) int {
	g.kinds = append(g.kinds, k)
	return len(g.kinds) - 1
}

func (g *generator) emit(in instr) {
	at := len(g.loop.instrs)
	if in.do >= apply {
		for _, r := range in.src {
			g.uses[r] = at
		}
	}
	g.uses[in.dst] = max(g.uses[in.dst], at)
	g.loop.instrs = append(g.loop.instrs, in)
}

// allocate chooses the size of a block, and gives registers that are in use at the same time different memory.
func (g *generator) allocate() {
	l := g.loop
	if l.inner > longRow && g.inPieces() {
		g.allocatePieces()
		return
	}
	slots, slot := g.slots()
	most := max(commonBlock, min(largestBlock, l.numel/(blocksEach*g.c.device.pool.Workers())))
	l.block = max(min(cache/g.perElement(slots), most)/smallestBlock, 1) * smallestBlock
	rows := 0
	if l.inner > 0 {
		rows = max(1, l.block/l.inner)
		l.block = rows * l.inner
	}
	starts := make([]int, len(slots))
	for i, s := range slots {
		starts[i] = l.scratch
		n := l.block
		if s.row {
			n = rows
		}
		l.scratch += rounded(n * s.size)
	}
	l.registers = len(g.kinds)
	l.offsets = make([]int, len(g.kinds))
	for r := range g.kinds {
		l.offsets[r] = -1
		if slot[r] >= 0 {
			l.offsets[r] = starts[slot[r]]
		}
	}
}

// perElement returns how many bytes of the cache an element takes: in the registers, and, if more than one instruction works on
// elements, in the tensors that they point to.
func (g *generator) perElement(slots []register) int {
	bytes, works := 1, 0
	for _, s := range slots {
		if !s.row {
			bytes += s.size
		}
	}
	for _, in := range g.loop.instrs {
		if in.do >= apply && !in.row {
			works++
		}
	}
	for _, k := range g.kinds {
		if k.pointer && !k.row && works > 1 {
			bytes += k.size
		}
	}
	return bytes
}

// slots returns the pieces of memory that are needed, and which one each register has.
func (g *generator) slots() (slots []register, slot []int) {
	slot = make([]int, len(g.kinds))
	busy := []int{} // instruction until which each slot is in use
	for r := range g.kinds {
		slot[r] = -1
	}
	for at := range g.loop.instrs {
		for _, r := range g.loop.instrs[at].writes() {
			k := g.kinds[r]
			if k.pointer || slot[r] >= 0 {
				continue
			}
			until := g.uses[r]
			if k.keep {
				until = len(g.loop.instrs)
			}
			s := freeSlot(slots, busy, k, at)
			if s == len(slots) {
				slots, busy = append(slots, k), append(busy, 0)
			}
			slot[r], busy[s] = s, until
		}
	}
	return slots, slot
}

// freeSlot returns a slot like k that is not in use, or their number. One that is filled before the first block is its own.
func freeSlot(slots []register, busy []int, k register, at int) int {
	for i, s := range slots {
		if !k.keep && !s.keep && s.size == k.size && s.row == k.row && busy[i] < at {
			return i
		}
	}
	return len(slots)
}

// viewKey says what a view shows.
func viewKey(v view, row bool) string {
	b := []byte{byte(len(v.dims)), 0}
	if row {
		b[1] = 1
	}
	for _, list := range [][]int{{v.of.id, v.off}, v.dims, v.strides} {
		for _, x := range list {
			for range 8 {
				b = append(b, byte(x))
				x >>= 8
			}
		}
	}
	return string(b)
}
