package cpu

import (
	"fmt"
	"slices"

	"github.com/gomlx/compute/dtypes"
)

const (
	longRow     = 8192 // elements, from which on a row is computed in pieces
	pieceLength = 2048 // a divisor of sumChunk, and of the length of a block of kernels
	// mostAxes is how many axes a view may have that is loaded, when all that can be merged are.
	mostAxes = 16
)

// generate makes a loop of instructions of each group, and the list of steps.
//
//	before: group{m = Mul(x, y); s = ReduceSum(m)}
//	after:  loop{r0 alias x; r1 alias y; r2 = r0 * r1; r3 = sum of the rows of r2}, in blocks of 4,096
func (c *compiler) generate() error {
	for _, u := range c.order {
		if u.group != nil {
			u.step = c.build(u)
		}
		c.plan.steps = append(c.plan.steps, u.step)
	}
	return nil
}

// generator makes a loop of a group.
type generator struct {
	c      *compiler
	loop   *loop
	loaded map[string]int  // registers of external views, by what they show
	made   map[*tensor]int // registers of members
	wide   map[int]int     // registers of rows, broadcast, by the register of one element for each row
	uses   map[int]int     // instruction that reads a register last
	kinds  []register
}

// register describes memory that an instruction writes.
type register struct {
	size  int  // bytes of an element
	row   bool // one element for each row
	alias bool // it is a part of a tensor
	keep  bool // it is filled once, before the first block
}

// build returns the loop of u, or the fused attention around it.
func (c *compiler) build(u *unit) step {
	l := &loop{numel: u.group.numel, inner: u.group.inner, inputs: c.external(u)}
	gen := &generator{
		c: c, loop: l, loaded: map[string]int{}, made: map[*tensor]int{}, wide: map[int]int{}, uses: map[int]int{},
	}
	for _, m := range u.group.members {
		gen.member(m)
	}
	l.work = len(l.instrs)
	if l.inner <= longRow {
		gen.combine()
	}
	gen.allocate()
	if l.inner > 0 {
		l.rows = l.block / l.inner
	}
	planPrefetches(l)
	if u.attention != nil {
		c.tileAttention(u, l)
		return u.attention
	}
	return l
}

// member adds the instructions of one operation.
func (g *generator) member(m *member) {
	in := instr{do: doApply, row: m.row, size: m.out.size, op: m.n.op, out: m.out.kind, in: m.in[0].of.kind}
	if side, one := g.scalarSide(m); side >= 0 {
		in.src[0], in.left = g.operand(m, m.in[1-side]), side == 0
		if in.do, in.src[1] = doApplyRows, 0; one {
			in.do, in.src[1] = doApplyScalar, g.aliasOne(m.in[side])
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
	if isReduction(m.n.op) {
		in.do, in.row = doReduce, false
		in.sum = g.loop.sums
		g.loop.sums++
	}
	outside := g.c.isOutside(m.out)
	in.dst = g.register(register{size: m.out.size, row: m.row, alias: outside})
	if outside {
		g.emit(instr{do: doAlias, dst: in.dst, v: whole(m.out, []int{m.out.count}), row: m.row})
		g.loop.results = append(g.loop.results, m.out)
	}
	g.made[m.out] = in.dst
	g.loop.fused = append(g.loop.fused, fusedOp{m.n.op, m.in, m.out, m.row})
	g.emit(in)
}

// scalarSide returns the operand of a binary operation that is one number, for all elements or for each row, where the
// other is not and there is a kernel for that, or -1.
func (g *generator) scalarSide(m *member) (side int, one bool) {
	if len(m.in) != 2 || m.in[0].of.kind != dtypes.Float32 || !hasScalarForm(m.n.op) {
		return -1, false
	}
	var ones, rows [2]bool
	for i, v := range m.in {
		r, made := g.made[v.of]
		ones[i] = !made && v.uniform()
		rows[i] = !m.row && (made && g.kinds[r].row || !made && g.loop.inner > 1 && v.perRow(g.loop.inner) != nil)
	}
	for _, which := range [][2]bool{ones, rows} {
		if which[0] != which[1] {
			return slices.Index(which[:], true), ones[0] != ones[1]
		}
	}
	return -1, false
}

// aliasOne returns a register that is the element that a view shows.
func (g *generator) aliasOne(v view) int {
	key := "one " + viewKey(view{of: v.of, off: v.off}, true)
	if r, ok := g.loaded[key]; ok {
		return r
	}
	r := g.register(register{size: v.of.size, row: true, alias: true})
	g.loaded[key] = r
	g.emit(instr{do: doAliasOne, dst: r, v: v, size: v.of.size, row: true})
	return r
}

// perRow returns the register with one element for each row of a view that repeats it.
func (g *generator) perRow(v view) int {
	if r, made := g.made[v.of]; made {
		return r
	}
	return g.load(*v.perRow(g.loop.inner), true)
}

// operand returns the register that holds what a member reads.
func (g *generator) operand(m *member, v view) int {
	narrow := m.row && !isReduction(m.n.op)
	r, made := g.made[v.of]
	switch {
	case !made:
		return g.load(v, narrow)
	case v.off > 0:
		return g.swapHalves(v, r)
	case !g.kinds[r].row || narrow:
		return r
	}
	if wide, ok := g.wide[r]; ok {
		return wide
	}
	wide := g.register(register{size: v.of.size})
	g.emit(instr{do: doBroadcast, dst: wide, src: [3]int{r, r, r}, size: v.of.size})
	g.wide[r] = wide
	return wide
}

// swapHalves returns the register that has the parts of the rows of another one in reverse order.
func (g *generator) swapHalves(v view, r int) int {
	c := v.collapse()
	key := viewKey(c, false)
	if swapped, ok := g.loaded[key]; ok {
		return swapped
	}
	swapped := g.register(register{size: v.of.size})
	g.emit(instr{do: doSwapHalves, dst: swapped, src: [3]int{r, r, r}, v: c, size: v.of.size})
	g.loaded[key] = swapped
	return swapped
}

// load returns the register of an external view, and adds the instruction that fills it unless there is one.
func (g *generator) load(v view, row bool) int {
	c, inner := v.collapse(), g.loop.inner
	key := viewKey(c, row)
	if r, ok := g.loaded[key]; ok {
		return r
	}
	in := instr{do: doLoad, v: c, size: v.of.size, row: row}
	kind := register{size: v.of.size, row: row}
	switch {
	case c.uniform():
		in.do, kind.keep = doFill, true
	case v.of.virtual || len(c.dims) == 1 && c.strides[0] == 1:
		in.do, kind.alias = doAlias, true
	case !row && inner > 0 && inner <= commonBlock && len(c.dims) == 2 && c.strides[0] == 0 && c.dims[1] == inner:
		in.do, kind.keep = doPreload, true
	case len(c.dims) > mostAxes:
		panic(fmt.Sprintf("a view with more than %d axes that cannot be merged", mostAxes))
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
	if in.do >= doApply {
		for _, r := range in.src {
			g.uses[r] = at
		}
	}
	g.uses[in.dst] = max(g.uses[in.dst], at)
	g.loop.instrs = append(g.loop.instrs, in)
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
