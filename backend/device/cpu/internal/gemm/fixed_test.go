package gemm

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/goart-dev/art/backend/device/cpu/internal/pool"
)

// TestMul_Accuracy: a contracted axis as long as a vocabulary. The error of one chain is 6.5e-6 of the result; that of
// fixed blocks, 5e-7, is that of other libraries. All operands lie in a few numbers, so that the test needs little
// memory.
func TestMul_Accuracy(t *testing.T) {
	const vocabulary, limit = 151_936, 1e-6
	r := rand.New(rand.NewPCG(31, 31))
	numbers := func() []float32 {
		x := make([]float32, 2*vocabulary+2000)
		for i := range x { // those of bfloat16, so that packed weights may have both types
			x[i] = widen(uint16(math.Float32bits(float32(r.NormFloat64())) >> 16))
		}
		return x
	}
	x, y := numbers(), numbers()
	eachLevel(t, func(t *testing.T, k *Kernels) {
		p := pool.New(2)
		t.Cleanup(p.Close)
		// rows and columns of C
		for _, size := range [][2]int{{1, 40}, {3, 40}, {17, 33}, {40, 5}, {70, 40}, {66, largeColumns}} {
			m, n := size[0], size[1]
			if k.level == &portable && m*n > 100 {
				continue // takes long, and has the bits of the others
			}
			for name, b := range map[string]View{"plain": {y, 2, 1}, "transposed": {y, 1, 2}} {
				a := View{x, 3, 1}
				c := make([]float32, m*n)
				check := func(path string) {
					t.Helper()
					if e := relative(r, c, a, b, n, vocabulary); !(e < limit) {
						t.Errorf("%s, %s, %d rows, %d columns: the error is %.2g of the result", name, path, m, n, e)
					}
					clear(c)
				}
				k.Mul(p, Matmul{Out{c, n}, a, b, m, n, vocabulary, false})
				check("Mul")
				if m*n > 1000 {
					continue
				}
				k.MulPacked(p, Out{c, n}, a, packView(b, vocabulary, n), m, false)
				check("MulPacked")
				k.MulPackedT(p, Out{c, n}, a, packView(b.T(), n, vocabulary), m, false)
				check("MulPackedT")
				half := make([]uint16, len(y))
				for i, v := range y {
					half[i] = uint16(math.Float32bits(v) >> 16)
				}
				k.MulPacked(p, Out{c, n}, a, packHalf(half, b.Row, b.Col, vocabulary, n), m, false)
				check("MulPacked, bfloat16")
			}
		}
	})
}

// relative is the root of the mean square of the errors of some elements of c [m, n] of a [m, k] and b [k, n], over
// that of the elements.
func relative(r *rand.Rand, c []float32, a, b View, n, k int) float64 {
	var errors, all float64
	for range 40 {
		at := r.IntN(len(c))
		i, j := at/n, at%n
		want := 0.0
		for l := range k {
			want += float64(a.Data[i*a.Row+l*a.Col]) * float64(b.Data[l*b.Row+j*b.Col])
		}
		e := float64(c[at]) - want
		errors, all = errors+e*e, all+want*want
	}
	return math.Sqrt(errors / all)
}

// TestMul_FixedBlocks: all ways to compute a matmul yield the bits that the package describes, where the contracted
// axis ends beside a fixed block, and where what a kernel takes at once does not divide it.
func TestMul_FixedBlocks(t *testing.T) {
	lengths := []int{255, 256, 257, Block - 1, Block, Block + 1, Block + 16, Block + 17, 2*Block - 1, 2 * Block, 2*Block +
		1, 3*Block + 5}
	eachLevel(t, func(t *testing.T, k *Kernels) {
		r := rand.New(rand.NewPCG(32, 32))
		workers := pools(t)
		for _, size := range [][2]int{{1, 40}, {1, 137}, {2, 131}, {5, 35}, {9, 33}, {17, 16}, {40, 5}, {70, 9}, {66, 33},
			{66, 257}} {
			m, n := size[0], size[1]
			for _, kk := range lengths {
				if m*n > 2000 && kk != Block-1 && kk != Block+1 {
					continue
				}
				b := []View{{Row: n + 3, Col: 1}, {Row: 1, Col: kk}, {Row: 1, Col: kk + 2}}[r.IntN(3)]
				e := &example{m: m, n: n, k: kk, a: randomView(r, m, kk, false), b: fill(r, b, kk, n, false)}
				e.output(r, false)
				e.checkAll(t, k, workers[r.IntN(len(workers))])
			}
		}
	})
}
