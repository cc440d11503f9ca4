package gemm

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/goart-dev/art/backend/device/cpu/internal/cpuid"
	"github.com/goart-dev/art/backend/device/cpu/internal/fma"
	"github.com/goart-dev/art/backend/device/cpu/internal/pool"
)

// guard is around the elements that a matmul may write.
const guard = float32(-123.25)

// example is a matmul with random operands and strides, and what it must yield.
type example struct {
	m, n, k int
	a, b    View
	c       []float32 // before
	at, ldc int       // of the first element of c
	add     bool
	want    []float32
}

// value is a random number; some are special.
func value(r *rand.Rand, special bool) float32 {
	if special {
		switch r.IntN(40) {
		case 0:
			return float32(math.Inf(1 - 2*r.IntN(2)))
		case 1:
			return float32(math.NaN())
		case 2:
			return float32(math.Copysign(0, -1))
		case 3:
			return math.Float32frombits(r.Uint32() & 0x807fffff)
		case 4:
			return math.Float32frombits(r.Uint32())
		}
	}
	return float32(r.NormFloat64())
}

// randomView is a matrix with random strides, at a random place of a slice that ends with its last element.
func randomView(r *rand.Rand, rows, columns int, special bool) View {
	v := View{Row: columns, Col: 1}
	switch r.IntN(6) {
	case 0, 1:
		v = View{Row: 1, Col: rows}
	case 2:
		v.Row += r.IntN(70)
	case 3:
		v = View{Row: 1, Col: rows + r.IntN(70)}
	case 4:
		v = View{Row: 2 + r.IntN(3), Col: 0}
		v.Col = v.Row*rows + r.IntN(3)
	}
	return fill(r, v, rows, columns, special)
}

// fill gives a view its numbers.
func fill(r *rand.Rand, v View, rows, columns int, special bool) View {
	if rows == 0 || columns == 0 {
		return v
	}
	at := r.IntN(20)
	v.Data = make([]float32, at+(rows-1)*v.Row+(columns-1)*v.Col+1)
	for i := range v.Data {
		v.Data[i] = value(r, special)
	}
	v.Data = v.Data[at:]
	return v
}

func newExample(r *rand.Rand, m, n, k int, special bool) *example {
	e := &example{m: m, n: n, k: k, a: randomView(r, m, k, special), b: randomView(r, k, n, special)}
	e.output(r, special)
	return e
}

// output chooses c and computes what it becomes.
func (e *example) output(r *rand.Rand, special bool) {
	e.before(r, special)
	e.want = append([]float32(nil), e.c...)
	for i := range e.m {
		for j := range e.n {
			e.element(i, j, &e.want[e.at+i*e.ldc+j])
		}
	}
}

// element computes an element of c as the package describes it.
func (e *example) element(i, j int, c *float32) {
	if !e.add {
		*c = 0
	}
	for from := 0; from < e.k; from += Block {
		sum := float32(0)
		for l := from; l < min(from+Block, e.k); l++ {
			sum = fma.Float32(e.a.Data[i*e.a.Row+l*e.a.Col], e.b.Data[l*e.b.Row+j*e.b.Col], sum)
		}
		if from == 0 && !e.add {
			*c = sum
		} else {
			*c += sum
		}
	}
}

// before chooses c.
func (e *example) before(r *rand.Rand, special bool) {
	e.at, e.ldc, e.add = 1+r.IntN(20), e.n+r.IntN(3)*r.IntN(40), r.IntN(2) == 0
	e.c = make([]float32, e.at+e.m*e.ldc+20)
	for i := range e.c {
		e.c[i] = guard
	}
	for i := range e.m {
		for j := range e.n {
			e.c[e.at+i*e.ldc+j] = value(r, special)
		}
	}
}

func (e *example) String() string {
	return fmt.Sprintf("[%d, %d]·[%d, %d], a %d/%d, b %d/%d, ldc %d, add %v",
		e.m, e.k, e.k, e.n, e.a.Row, e.a.Col, e.b.Row, e.b.Col, e.ldc, e.add)
}

// check runs a matmul and compares all of c.
func (e *example) check(t *testing.T, name string, mul func(c []float32)) {
	t.Helper()
	c := append([]float32(nil), e.c...)
	mul(c[e.at:])
	for i := range c {
		if !same(c[i], e.want[i]) {
			i -= e.at
			t.Fatalf("%s, %v: element %d (%d, %d) is %x, want %x", name, e, i, i/e.ldc, i%e.ldc, c[i+e.at], e.want[i+e.at])
		}
	}
}

// eachLevel runs a test with the kernels of each level.
func eachLevel(t *testing.T, test func(t *testing.T, k *Kernels)) {
	for _, l := range cpuid.Supported() {
		t.Run(l.String(), func(t *testing.T) { test(t, New(l)) })
	}
}

// pools are some numbers of workers.
func pools(t *testing.T) []*pool.Pool {
	all := []*pool.Pool{nil}
	for _, n := range []int{2, 5} {
		p := pool.New(n)
		t.Cleanup(p.Close)
		all = append(all, p)
	}
	return all
}

// sizes are around the edges of tiles, panels and blocks.
var sizes = []int{1, 1, 2, 3, 4, 5, 7, 8, 13, 14, 15, 16, 17, 28, 29, 31, 32, 33, 47, 63, 64, 65, 97}

func randomSize(r *rand.Rand) int { return sizes[r.IntN(len(sizes))] }

func TestMul_Random(t *testing.T) {
	eachLevel(t, func(t *testing.T, k *Kernels) {
		r := rand.New(rand.NewPCG(1, 1))
		workers := pools(t)
		for i := range 700 {
			e := newExample(r, randomSize(r), randomSize(r), randomSize(r), i%2 == 0)
			e.checkAll(t, k, workers[r.IntN(len(workers))])
		}
	})
}

// checkAll computes an example in each way.
func (e *example) checkAll(t *testing.T, k *Kernels, p *pool.Pool) {
	t.Helper()
	e.check(t, "Mul", func(c []float32) { k.Mul(p, Matmul{Out{c, e.ldc}, e.a, e.b, e.m, e.n, e.k, e.add}) })
	if e.k == 0 || e.n == 0 {
		return
	}
	packed := packView(e.b, e.k, e.n)
	e.check(t, "MulPacked", func(c []float32) { k.MulPacked(p, Out{c, e.ldc}, e.a, packed, e.m, e.add) })
	packed = packView(e.b.T(), e.n, e.k)
	e.check(t, "MulPackedT", func(c []float32) { k.MulPackedT(p, Out{c, e.ldc}, e.a, packed, e.m, e.add) })
}

func TestMul_Sizes(t *testing.T) {
	eachLevel(t, func(t *testing.T, k *Kernels) {
		r := rand.New(rand.NewPCG(2, 2))
		workers := pools(t)
		for _, size := range [][3]int{
			{0, 3, 3}, {3, 0, 3}, {3, 3, 0}, {0, 0, 0}, {1, 1, 0}, {1, 1, 1}, // m, n, k
			{1, 200, 600}, {1, 9_001, 131}, {200, 1, 600}, {3, 70, 1025}, {600, 8, 40}, {600, 40, 8}, {8, 600, 300}, {300, 8, 600}, {1100, 33, 9},
			{33, 1100, 9}, {131, 127, 521},
		} {
			for range 3 {
				e := newExample(r, size[0], size[1], size[2], false)
				e.checkAll(t, k, workers[r.IntN(len(workers))])
			}
		}
	})
}

// TestMul_Scattered: matrices of which only some rows are read in parallel, since they are large and their rows lie
// far apart. The rows overlap here, so that they need little memory.
func TestMul_Scattered(t *testing.T) {
	r := rand.New(rand.NewPCG(12, 12))
	for _, size := range [][3]int{{1, 95_000, 2*streams + 11}, {17, 95_000, 2*streams + 11}, {3, 16_100, Block + 17}} {
		m, n, kk := size[0], size[1], size[2]
		e := &example{m: m, n: n, k: kk, a: randomView(r, m, kk, false), b: fill(r, View{Row: pageBytes / 4, Col: 1}, kk, n,
			false)}
		e.output(r, false)
		o := operand{view: e.b}
		if !o.scattered(kk, n) || o.scattered(kk, n/2) {
			t.Fatal("the sizes miss the limit")
		}
		eachLevel(t, func(t *testing.T, k *Kernels) {
			for _, p := range pools(t) {
				e.check(t, "Mul", func(c []float32) { k.Mul(p, Matmul{Out{c, e.ldc}, e.a, e.b, m, n, kk, e.add}) })
			}
		})
	}
}

func TestMul_BF16(t *testing.T) {
	eachLevel(t, func(t *testing.T, k *Kernels) {
		r := rand.New(rand.NewPCG(3, 3))
		workers := pools(t)
		for i := range 300 {
			m, n, kk := randomSize(r), randomSize(r), randomSize(r)
			e := &example{m: m, n: n, k: kk, a: randomView(r, m, kk, i%2 == 0), b: randomView(r, kk, n, i%2 == 0)}
			half := make([]uint16, len(e.b.Data))
			for i, v := range e.b.Data {
				half[i] = uint16(math.Float32bits(v) >> 16)
				e.b.Data[i] = widen(half[i])
			}
			e.output(r, false)
			p := workers[r.IntN(len(workers))]
			packed := packHalf(half, e.b.Row, e.b.Col, kk, n)
			e.check(t, "MulPacked", func(c []float32) { k.MulPacked(p, Out{c, e.ldc}, e.a, packed, m, e.add) })
			packed = packHalf(half, e.b.Col, e.b.Row, n, kk)
			e.check(t, "MulPackedT", func(c []float32) { k.MulPackedT(p, Out{c, e.ldc}, e.a, packed, m, e.add) })
		}
	})
}

// Contiguous columns of B are transposed: whole squares of 16 by kernels of their own, what is left by others.
func TestMul_Turned(t *testing.T) {
	eachLevel(t, func(t *testing.T, k *Kernels) {
		r := rand.New(rand.NewPCG(11, 11))
		for m := 1; m <= 31; m++ {
			for _, n := range []int{16, 31, 33, 96, 117} {
				for _, kk := range []int{15, 16, 48, 53} {
					e := &example{m: m, n: n, k: kk, a: randomView(r, m, kk, false), b: fill(r, View{Row: 1, Col: kk + m%3}, kk, n,
						false)}
					e.output(r, false)
					e.checkAll(t, k, nil)
				}
			}
		}
	})
}

// Heads of an attention: queries in groups that share keys, in tensors [batch, rows, heads, width].
// Few columns of a long contracted axis are rows of the transposed matmul, with operands in every layout.
func TestMul_Flipped(t *testing.T) {
	eachLevel(t, func(t *testing.T, k *Kernels) {
		r := rand.New(rand.NewPCG(27, 27))
		workers := pools(t)
		for n := 1; n <= swapColumns+2; n++ {
			for _, kk := range []int{swapDepth - 1, swapDepth, swapDepth + 17} {
				e := newExample(r, n+1+r.IntN(70), n, kk, r.IntN(2) == 0)
				e.checkAll(t, k, workers[r.IntN(len(workers))])
			}
		}
	})
}

func TestMulBatch(t *testing.T) {
	const batch, queries, keys, kv, group, width = 2, 37, 41, 2, 3, 33
	eachLevel(t, func(t *testing.T, k *Kernels) {
		r := rand.New(rand.NewPCG(4, 4))
		for _, p := range pools(t) {
			q := fill(r, View{Row: kv * group * width, Col: 1}, batch*queries, kv*group*width, false)
			x := fill(r, View{Row: 1, Col: kv * width}, kv*width, batch*keys, false)
			axes := []Axis{
				{batch, queries * q.Row, keys * x.Col, kv * group * queries * keys},
				{kv, group * width, width, group * queries * keys},
				{group, width, 0, queries * keys},
			}
			c := make([]float32, batch*kv*group*queries*keys)
			k.MulBatch(p, axes, Matmul{Out{c, keys}, q, x, queries, keys, width, false})
			for i := range batch * kv * group {
				head, n := i%(kv*group), i/(kv*group)
				want := make([]float32, queries*keys)
				New(cpuid.Portable).Mul(nil, Matmul{Out{want, keys}, View{q.Data[n*queries*q.Row+head*width:], q.Row, 1},
					View{x.Data[n*keys*x.Col+head/group*width:], 1, x.Col}, queries, keys, width, false})
				for j, w := range want {
					if got := c[i*len(want)+j]; !same(got, w) {
						t.Fatalf("batch %d, head %d, element %d is %v, want %v", n, head, j, got, w)
					}
				}
			}
		}
	})
}

// same reports whether two numbers have the same bits, or are both no number.
func same(x, y float32) bool {
	return math.Float32bits(x) == math.Float32bits(y) || x != x && y != y
}
