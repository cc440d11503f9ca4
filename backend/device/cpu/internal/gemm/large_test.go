package gemm

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/goart-dev/art/backend/device/cpu/internal/cpuid"
	"github.com/goart-dev/art/backend/device/cpu/internal/pool"
)

// largeSizes are around the limits of large matmuls, broad tiles, panels, groups and blocks.
var largeSizes = struct{ m, n, k []int }{
	m: []int{65, 66, 72, 73, 100, 131, 520},
	n: []int{256, 257, 271, 288, 289, 300, 319, 336, 351, 383, 384, 577},
	k: []int{64, 65, 66, 67, 100, 511, 512, 513, 530},
}

func randomLarge(r *rand.Rand) (m, n, k int) {
	any := func(list []int) int { return list[r.IntN(len(list))] }
	return any(largeSizes.m), any(largeSizes.n), any(largeSizes.k)
}

// fastest is the last of the levels that this CPU has.
func fastest() cpuid.Level {
	all := cpuid.Supported()
	return all[len(all)-1]
}

// inRows computes an example a few rows at a time, which are not a large matmul.
func (e *example) inRows(k *Kernels) []float32 {
	c := append([]float32(nil), e.c...)
	for i := 0; i < e.m; i += skinny {
		a := View{e.a.Data[i*e.a.Row:], e.a.Row, e.a.Col}
		k.Mul(nil, Matmul{Out{c[e.at+i*e.ldc:], e.ldc}, a, e.b, min(skinny, e.m-i), e.n, e.k, e.add})
	}
	return c
}

// newLarge is an example that is expected to yield what its rows yield by themselves.
func newLarge(r *rand.Rand, k *Kernels, m, n, kk int) *example {
	special := r.IntN(2) == 0
	e := &example{m: m, n: n, k: kk, a: randomView(r, m, kk, special), b: randomView(r, kk, n, special)}
	e.before(r, special)
	e.want = e.inRows(k)
	return e
}

// A large matmul has the bits of its rows, in each way to give its operands, and with the kernels of each level.
func TestLarge_Rows(t *testing.T) {
	rounds := 40
	if testing.Short() {
		rounds = 10
	}
	eachLevel(t, func(t *testing.T, k *Kernels) {
		r := rand.New(rand.NewPCG(21, 21))
		workers := pools(t)
		for range rounds {
			m, n, kk := randomLarge(r)
			if k.level == &portable {
				m, kk = min(m, 73), min(kk, 67)
			}
			e := newLarge(r, k, m, n, kk)
			if g := (&call{m: m, n: n, k: kk}); !g.isLarge() {
				t.Fatalf("%v is not large", e)
			}
			e.checkAll(t, k, workers[r.IntN(len(workers))])
		}
	})
}

// The same for matrices of bfloat16, which are widened.
func TestLarge_BF16(t *testing.T) {
	eachLevel(t, func(t *testing.T, k *Kernels) {
		r := rand.New(rand.NewPCG(22, 22))
		workers := pools(t)
		for range 6 {
			n, kk := 256+r.IntN(100), 64+r.IntN(30)
			e := newLarge(r, k, 65+r.IntN(20), n, kk)
			half := make([]uint16, len(e.b.Data))
			for i, v := range e.b.Data {
				half[i] = uint16(math.Float32bits(v) >> 16)
				e.b.Data[i] = widen(half[i])
			}
			e.want = e.inRows(k)
			p := workers[r.IntN(len(workers))]
			packed := packHalf(half, e.b.Row, e.b.Col, kk, n)
			e.check(t, "MulPacked", func(c []float32) { k.MulPacked(p, Out{c, e.ldc}, e.a, packed, e.m, e.add) })
			packed = packHalf(half, e.b.Col, e.b.Row, n, kk)
			e.check(t, "MulPackedT", func(c []float32) { k.MulPackedT(p, Out{c, e.ldc}, e.a, packed, e.m, e.add) })
		}
	})
}

// Products of several parts: too many rows, columns and numbers to pack at once.
func TestLarge_Parts(t *testing.T) {
	p := pool.New(3)
	t.Cleanup(p.Close)
	k := New(fastest())
	r := rand.New(rand.NewPCG(23, 23))
	for _, size := range [][3]int{{partRows + 1, 300, 70}, {65, partColumns + 33, 70}, {70, 256, partNumbers/(70+256) +
		40}, {partRows, partColumns, Block + 5}} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			if k.level == &portable {
				t.Skip("takes minutes without vector instructions")
			}
			newLarge(r, k, size[0], size[1], size[2]).checkAll(t, k, p)
		})
	}
}

// Parts may be cut into groups, blocks and tasks of any size.
func TestLarge_Cuts(t *testing.T) {
	eachLevel(t, func(t *testing.T, k *Kernels) {
		r := rand.New(rand.NewPCG(24, 24))
		workers := pools(t)
		for i := range 150 {
			kk := randomSize(r)
			if i%5 == 0 {
				kk = longSize(r)
			}
			e := newExample(r, randomSize(r), randomSize(r)+r.IntN(2)*256*(1-min(1, kk/400)), kk, false)
			e.check(t, "cuts", func(c []float32) { e.cut(k, workers[r.IntN(len(workers))], c, r) })
		}
	})
}

// cut computes an example as parts of random sizes, which are cut at random.
func (e *example) cut(k *Kernels, p *pool.Pool, c []float32, r *rand.Rand) {
	g := &call{level: k.level, c: Out{c, e.ldc}, a: e.a, b: operand{view: e.b}, m: e.m, n: e.n, k: e.k, add: e.add}
	if r.IntN(2) == 0 {
		g.b = operand{packed: packView(e.b.T(), e.n, e.k), transposed: true}
	}
	rows, columns, depth := 1+r.IntN(e.m), panel*(1+r.IntN(ceil(e.n, panel))), Block*(1+r.IntN(ceil(e.k, Block)))
	packs := new(packs)
	for at := 0; at < e.k; at += depth {
		for i := 0; i < e.m; i += rows {
			for j := 0; j < e.n; j += columns {
				l := large{packs: packs, block: block{
					call: g, i0: i, mb: min(rows, e.m-i), j0: j, nb: min(columns, e.n-j), k0: at, kc: min(depth, e.k-at),
				}}
				l.count = min(l.mb, ceil(l.mb, l.level.largest())+r.IntN(3))
				l.each = Block
				l.shares, l.down = 1+r.IntN(panels(l.nb)), 1+r.IntN(l.count)
				l.across = 1 + r.IntN(ceil(panels(l.nb)/l.shares*panel, broadPair))
				l.compute(k, p)
			}
		}
	}
}

// Rows of A that follow one another are read where they are: as many as a tile may have, with a remainder of columns of
// A or none.
func TestLarge_InPlace(t *testing.T) {
	eachLevel(t, func(t *testing.T, k *Kernels) {
		r := rand.New(rand.NewPCG(26, 26))
		for m := 1; m <= 20; m++ {
			for _, kk := range []int{1, 2, 3, 4, 7, 36, 64, 130} {
				e := newExample(r, m, broadPair+r.IntN(70), kk, false)
				e.a = fill(r, View{Row: kk, Col: 1}, m, kk, false)
				e.output(r, false)
				e.check(t, "large", func(c []float32) {
					g := &call{level: k.level, c: Out{c, e.ldc}, a: e.a, b: operand{view: e.b}, m: m, n: e.n, k: kk, add: e.add}
					l := large{packs: new(packs), block: block{call: g, mb: m, nb: e.n, kc: kk}}
					l.count = ceil(m, l.level.largest())
					l.each, l.shares, l.down, l.across = kk, 1, 1, 1
					l.compute(k, nil)
					if l.left != nil {
						t.Fatal("A was packed")
					}
				})
			}
		}
	})
}

// Groups of rows are all rows, are as high as each other or one row less, and fit into tiles. Workers that share them
// get equally many, unless that makes groups much smaller.
func TestLarge_Groups(t *testing.T) {
	eachLevel(t, func(t *testing.T, k *Kernels) {
		for _, workers := range []int{1, 2, 3, 8} {
			p := pool.New(workers)
			t.Cleanup(p.Close)
			for m := skinny + 1; m < 700; m += 3 {
				g := &call{level: k.level, a: View{Row: 512, Col: 1}, b: operand{view: View{Row: 512, Col: 1}}, m: m, n: 512,
					k: 512}
				l := large{block: block{call: g, mb: m, nb: 512, kc: 512}}
				l.plan(p)
				rows, low, high := 0, m, 0
				for i := range l.count {
					run := l.group(i)
					if run.row != rows || run.count != 1 {
						t.Fatalf("%d rows: group %d is %v after %d rows", m, i, run, rows)
					}
					rows, low, high = rows+run.height, min(low, run.height), max(high, run.height)
				}
				if rows != m || high > low+1 || high > k.level.largest() {
					t.Fatalf("%d groups of %d to %d rows are %d of %d", l.count, low, high, rows, m)
				}
				least := ceil(m, k.level.largest())
				if l.count > least+least/8 || l.shares == 1 && l.count%workers != 0 && least > 8*workers {
					t.Fatalf("%d rows: %d groups for %d workers", m, l.count, workers)
				}
			}
		}
	})
}

// Large matmuls of a batch, few and many of them.
func TestLarge_Batch(t *testing.T) {
	const m, n, kk = 67, 260, 65
	eachLevel(t, func(t *testing.T, k *Kernels) {
		r := rand.New(rand.NewPCG(25, 25))
		for _, p := range pools(t) {
			for _, batch := range []int{2, 21} {
				a, b := fill(r, View{Row: kk, Col: 1}, batch*m, kk, false), fill(r, View{Row: n, Col: 1}, kk, n, false)
				c := make([]float32, batch*m*n)
				k.MulBatch(p, []Axis{{batch, m * kk, 0, m * n}}, Matmul{Out{c, n}, a, b, m, n, kk, false})
				want := make([]float32, batch*m*n)
				for i := 0; i < batch*m; i += skinny {
					k.Mul(nil, Matmul{Out{want[i*n:], n}, View{a.Data[i*kk:], kk, 1}, b, min(skinny, batch*m-i), n, kk, false})
				}
				for i := range c {
					if !same(c[i], want[i]) {
						t.Fatalf("batch of %d: element %d is %v, want %v", batch, i, c[i], want[i])
					}
				}
			}
		}
	})
}

// Memory for packed operands is used again: a call allocates less than the smaller one takes. With the race detector
// lists of free memory forget some of it on purpose, so that a limit of their number would fail now and then.
func TestLarge_Allocations(t *testing.T) {
	const m, n, kk = 100, 300, 600
	k := New(fastest())
	a, b, c := make([]float32, m*kk), make([]float32, kk*n), make([]float32, m*n)
	call := func() { k.Mul(nil, Matmul{Out{c, n}, View{a, kk, 1}, View{b, n, 1}, m, n, kk, false}) }
	call()
	const calls = 20
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range calls {
		call()
	}
	runtime.ReadMemStats(&after)
	if bytes := (after.TotalAlloc - before.TotalAlloc) / calls; bytes > 4*m*kk {
		t.Errorf("%d bytes allocated for a call", bytes)
	}
	if len(k.packs.list) != 1 || cap(k.packs.list[0].left.data) < m*kk {
		t.Error("the memory is gone")
	}
}
