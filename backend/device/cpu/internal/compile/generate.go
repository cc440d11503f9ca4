package compile

import (
	"fmt"
	"slices"

	"github.com/gomlx/compute/dtypes"

	"github.com/goart-dev/art/backend/device/cpu/internal/ir"
)

// Rows that are too long for L1 are computed in pieces.
const (
	LongRow     = 8192 // elements, from which on a row is computed in pieces
	PieceLength = 2048 // a divisor of ir.SumChunk, and of the length of a block of kernels
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
		c.plan.Steps = append(c.plan.Steps, u.step)
	}
	return nil
}

// generator makes a loop of a group.
type generator struct {
	c      *compiler
	loop   *ir.Loop
	loaded map[string]int     // registers of external views, by what they show
	made   map[*ir.Tensor]int // registers of members
	wide   map[int]int        // registers of rows, broadcast, by the register of one element for each row
	uses   map[int]int        // instruction that reads a register last
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
func (c *compiler) build(u *unit) ir.Step {
	l := &ir.Loop{Numel: u.group.numel, Inner: u.group.inner, Inputs: c.external(u)}
	gen := &generator{
		c: c, loop: l, loaded: map[string]int{}, made: map[*ir.Tensor]int{}, wide: map[int]int{}, uses: map[int]int{},
	}
	for _, m := range u.group.members {
		gen.member(m)
	}
	l.Work = len(l.Instrs)
	if l.Inner <= LongRow {
		gen.combine()
	}
	gen.allocate()
	if l.Inner > 0 {
		l.Rows = l.Block / l.Inner
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
	in := ir.Instr{Do: ir.Apply, Row: m.row, Size: m.out.Size, Op: m.n.Op, Out: m.out.DType, In: m.in[0].Of.DType}
	if side, one := g.scalarSide(m); side >= 0 {
		in.Src[0], in.Left = g.operand(m, m.in[1-side]), side == 0
		if in.Do, in.Src[1] = ir.ApplyRows, 0; one {
			in.Do, in.Src[1] = ir.ApplyScalar, g.aliasOne(m.in[side])
		} else {
			in.Src[1] = g.perRow(m.in[side])
		}
	} else {
		for i, v := range m.in {
			in.Src[i] = g.operand(m, v)
		}
	}
	for i := len(m.in); i < len(in.Src); i++ {
		in.Src[i] = in.Src[0]
	}
	if ir.IsReduction(m.n.Op) {
		in.Do, in.Row = ir.Reduce, false
		in.Sum = g.loop.Sums
		g.loop.Sums++
	}
	outside := g.c.isOutside(m.out)
	in.Dst = g.register(register{size: m.out.Size, row: m.row, alias: outside})
	if outside {
		g.emit(ir.Instr{Do: ir.Alias, Dst: in.Dst, View: ir.Whole(m.out, []int{m.out.Count}), Row: m.row})
		g.loop.Results = append(g.loop.Results, m.out)
	}
	g.made[m.out] = in.Dst
	g.loop.Fused = append(g.loop.Fused, ir.FusedOp{Op: m.n.Op, In: m.in, Out: m.out, Row: m.row})
	g.emit(in)
}

// scalarSide returns the operand of a binary operation that is one number, for all elements or for each row, where the
// other is not and there is a kernel for that, or -1.
func (g *generator) scalarSide(m *member) (side int, one bool) {
	if len(m.in) != 2 || m.in[0].Of.DType != dtypes.Float32 || !ir.HasScalarForm(m.n.Op) {
		return -1, false
	}
	var ones, rows [2]bool
	for i, v := range m.in {
		r, made := g.made[v.Of]
		ones[i] = !made && v.Uniform()
		rows[i] = !m.row && (made && g.kinds[r].row || !made && g.loop.Inner > 1 && v.PerRow(g.loop.Inner) != nil)
	}
	for _, which := range [][2]bool{ones, rows} {
		if which[0] != which[1] {
			return slices.Index(which[:], true), ones[0] != ones[1]
		}
	}
	return -1, false
}

// aliasOne returns a register that is the element that a view shows.
func (g *generator) aliasOne(v ir.View) int {
	key := "one " + viewKey(ir.View{Of: v.Of, Off: v.Off}, true)
	if r, ok := g.loaded[key]; ok {
		return r
	}
	r := g.register(register{size: v.Of.Size, row: true, alias: true})
	g.loaded[key] = r
	g.emit(ir.Instr{Do: ir.AliasOne, Dst: r, View: v, Size: v.Of.Size, Row: true})
	return r
}

// perRow returns the register with one element for each row of a view that repeats it.
func (g *generator) perRow(v ir.View) int {
	if r, made := g.made[v.Of]; made {
		return r
	}
	return g.load(*v.PerRow(g.loop.Inner), true)
}

// operand returns the register that holds what a member reads.
func (g *generator) operand(m *member, v ir.View) int {
	narrow := m.row && !ir.IsReduction(m.n.Op)
	r, made := g.made[v.Of]
	switch {
	case !made:
		return g.load(v, narrow)
	case v.Off > 0:
		return g.swapHalves(v, r)
	case !g.kinds[r].row || narrow:
		return r
	}
	if wide, ok := g.wide[r]; ok {
		return wide
	}
	wide := g.register(register{size: v.Of.Size})
	g.emit(ir.Instr{Do: ir.Broadcast, Dst: wide, Src: [3]int{r, r, r}, Size: v.Of.Size})
	g.wide[r] = wide
	return wide
}

// swapHalves returns the register that has the parts of the rows of another one in reverse order.
func (g *generator) swapHalves(v ir.View, r int) int {
	c := v.Collapse()
	key := viewKey(c, false)
	if swapped, ok := g.loaded[key]; ok {
		return swapped
	}
	swapped := g.register(register{size: v.Of.Size})
	g.emit(ir.Instr{Do: ir.SwapHalves, Dst: swapped, Src: [3]int{r, r, r}, View: c, Size: v.Of.Size})
	g.loaded[key] = swapped
	return swapped
}

// load returns the register of an external view, and adds the instruction that fills it unless there is one.
func (g *generator) load(v ir.View, row bool) int {
	c, inner := v.Collapse(), g.loop.Inner
	key := viewKey(c, row)
	if r, ok := g.loaded[key]; ok {
		return r
	}
	in := ir.Instr{Do: ir.Load, View: c, Size: v.Of.Size, Row: row}
	kind := register{size: v.Of.Size, row: row}
	switch {
	case c.Uniform():
		in.Do, kind.keep = ir.FillOne, true
	case v.Of.Virtual || len(c.Dims) == 1 && c.Strides[0] == 1:
		in.Do, kind.alias = ir.Alias, true
	case !row && inner > 0 && inner <= commonBlock && len(c.Dims) == 2 && c.Strides[0] == 0 && c.Dims[1] == inner:
		in.Do, kind.keep = ir.Preload, true
	case len(c.Dims) > ir.MaxAxes:
		panic(fmt.Sprintf("a view with more than %d axes that cannot be merged", ir.MaxAxes))
	}
	in.Dst = g.register(kind)
	g.loaded[key] = in.Dst
	g.emit(in)
	return in.Dst
}

func (g *generator) register(k register) int {
	g.kinds = append(g.kinds, k)
	return len(g.kinds) - 1
}

func (g *generator) emit(in ir.Instr) {
	at := len(g.loop.Instrs)
	if in.Do >= ir.Apply {
		for _, r := range in.Src {
			g.uses[r] = at
		}
	}
	g.uses[in.Dst] = max(g.uses[in.Dst], at)
	g.loop.Instrs = append(g.loop.Instrs, in)
}

// viewKey says what a view shows.
func viewKey(v ir.View, row bool) string {
	b := []byte{byte(len(v.Dims)), 0}
	if row {
		b[1] = 1
	}
	for _, list := range [][]int{{v.Of.ID, v.Off}, v.Dims, v.Strides} {
		for _, x := range list {
			for range 8 {
				b = append(b, byte(x))
				x >>= 8
			}
		}
	}
	return string(b)
}
