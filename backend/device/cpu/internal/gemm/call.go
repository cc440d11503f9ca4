package gemm

import (
	"fmt"

	"github.com/goart-dev/art/backend/device/cpu/internal/pool"
)

// call is a matmul: c [m, n] of a [m, k] and b [k, n], for each member of a batch.
type call struct {
	level   *level
	batch   []Axis
	c       Out
	a       View
	b       operand
	m, n, k int
	add     bool
	resume  bool // of a part of a block
	swapped bool // a, b, m and n are those of the transposed matmul: c[i, j] is at j*c.Row + i
	plan
}

// operand is the right operand of a matmul.
type operand struct {
	view       View
	packed     *Packed // instead of the view
	transposed bool    // of packed
}

// run computes a matmul.
func (k *Kernels) run(p *pool.Pool, g call) {
	count := 1
	for _, axis := range g.batch {
		count *= axis.N
	}
	if count == 0 || g.m == 0 || g.n == 0 {
		return
	}
	k.prepare(&g)
	if g.isLarge() {
		k.largeBatch(p, g, count)
		return
	}
	g.plan = planOf(&g, count, p.Workers())
	if g.tasks == 1 || p.Workers() == 1 {
		s := k.free.get()
		s.whole = g
		for i := range g.tasks {
			s.whole.task(s, i)
		}
		k.free.put(s)
		return
	}
	all := g // only what several goroutines read is allocated
	p.For(all.tasks, func(i int) {
		s := k.free.get()
		all.task(s, i)
		k.free.put(s)
	})
}

// prepare checks a matmul, and swaps its operands where that is faster.
func (k *Kernels) prepare(g *call) {
	g.level = k.level
	g.check()
	if g.shouldSwap() {
		g.swap()
	}
}

// check panics unless all elements lie in the slices: kernels do not look.
func (g *call) check() {
	a, b, c := 0, 0, 0
	for _, axis := range g.batch {
		a += (axis.N - 1) * axis.A
		b += (axis.N - 1) * axis.B
		c += (axis.N - 1) * axis.C
	}
	if g.k > 0 {
		inside("a", g.a, a, g.m, g.k)
		if p := g.b.packed; p == nil {
			inside("b", g.b.view, b, g.k, g.n)
		}
	}
	inside("c", g.c.view(), c, g.m, g.n)
	if g.resume && (g.k > Block || g.add) {
		panic(fmt.Sprintf("gemm: a contracted axis of %d goes on from C, of at most %d", g.k, Block))
	}
	if g.m > 1 && g.c.Row < g.n {
		panic(fmt.Sprintf("gemm: rows of c overlap: %d columns, %d from a row to the next", g.n, g.c.Row))
	}
}

func inside(name string, v View, at, rows, columns int) {
	if v.Row < 0 || v.Col < 0 {
		panic(fmt.Sprintf("gemm: steps %d and %d of %s are negative", v.Row, v.Col, name))
	}
	if last := at + (rows-1)*v.Row + (columns-1)*v.Col; last >= len(v.Data) {
		panic(fmt.Sprintf("gemm: %s [%d, %d] ends at element %d of %d", name, rows, columns, last, len(v.Data)))
	}
}

// shouldSwap reports whether to compute the transposed matmul, since kernels compute columns of C together and these
// are few, or since it reads contiguous columns of B as rows of A, where they need not be transposed.
func (g *call) shouldSwap() bool {
	if g.b.packed != nil {
		return false
	}
	if g.level.transB == nil && g.b.view.Row == 1 && g.b.view.Col > 1 && g.m < g.n {
		return g.m >= swapRows && g.m <= g.level.columns
	}
	if g.n >= g.m || g.n > swapMost {
		return false
	}
	rows := g.a.Col == 1 && g.level.transB != nil && g.n <= swapColumns && g.k >= swapDepth
	return g.a.Row == 1 || g.n <= swapAlways || rows
}

func (g *call) swap() {
	g.swapped = true
	g.m, g.n = g.n, g.m
	g.a, g.b.view = g.b.view.T(), g.a.T()
}

// task computes a block of the matmul of a batch member.
func (g *call) task(s *scratch, i int) {
	j0 := i % g.across * g.nb
	i /= g.across
	i0 := i % g.down * g.mb
	s.member = g.member(i / g.down)
	one := &s.member
	mb, nb := min(g.mb, g.m-i0), min(g.nb, g.n-j0)
	if !g.swapped {
		one.compute(s, i0, mb, j0, nb, View{one.c.Data[i0*g.c.Row+j0:], g.c.Row, 1})
		return
	}
	row := g.level.padded(nb)
	c, to := s.c.take(mb*row), one.c.Data[j0*g.c.Row+i0:]
	if g.add || g.resume {
		g.level.pack(s, lines{dst: Out{c, row}, src: View{to, 1, g.c.Row}, k: mb, width: nb})
	}
	one.compute(s, i0, mb, j0, nb, View{c, row, 1})
	g.level.pack(s, lines{dst: Out{to, g.c.Row}, src: View{c, 1, row}, k: nb, width: mb})
}

// copyView copies a matrix.
func copyView(dst, src View, rows, columns int) {
	for i := range rows {
		for j := range columns {
			dst.Data[i*dst.Row+j*dst.Col] = src.Data[i*src.Row+j*src.Col]
		}
	}
}

// member is the matmul of a batch member.
func (g *call) member(i int) call {
	one := *g
	for d := len(g.batch) - 1; d >= 0; d-- {
		axis := g.batch[d]
		at := i % axis.N
		i /= axis.N
		a, b := axis.A, axis.B
		if one.swapped {
			a, b = b, a
		}
		one.a.Data = one.a.Data[at*a:]
		one.b.view.Data = one.b.view.Data[at*b:]
		one.c.Data = one.c.Data[at*axis.C:]
	}
	return one
}
