package gemm

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/goart-dev/art/internal/ggml"
)

var quantizedTypes = []ggml.Type{ggml.Q4_0, ggml.Q4_1, ggml.Q5_0, ggml.Q5_1, ggml.Q8_0, ggml.Q2_K, ggml.Q3_K, ggml.Q4_K,
	ggml.Q5_K, ggml.Q6_K, ggml.IQ4_NL, ggml.IQ4_XS, ggml.MXFP4, ggml.F16}

// randomQuantized is a random [k, n] matrix of a type, packed, and as float32 numbers of its columns.
func randomQuantized(rng *rand.Rand, t ggml.Type, k, n int) (*Packed, []float32) {
	rows := make([]byte, t.Bytes(k*n))
	for i := range rows {
		rows[i] = byte(rng.IntN(256))
	}
	block := t.Bytes(t.Block())
	for at := 0; at < len(rows); at += block { // scales about 1, not NaN
		scale := func(i int) { rows[at+i], rows[at+i+1] = byte(rng.IntN(256)), byte(0x20|rng.IntN(2)<<7|rng.IntN(8)) }
		switch t {
		case ggml.Q4_1, ggml.Q5_1, ggml.Q4_K, ggml.Q5_K:
			scale(0)
			scale(2)
		case ggml.Q2_K:
			scale(80)
			scale(82)
		case ggml.Q3_K:
			scale(108)
		case ggml.Q6_K:
			scale(208)
		case ggml.MXFP4:
			rows[at] = byte(rng.IntN(250))
		default:
			scale(0)
		}
	}
	columns := make([]float32, k*n)
	t.Convert(columns, rows)
	size, ok := QuantizedBytes(t, k, n)
	if !ok {
		panic("not packed")
	}
	p := NewQuantized(t, make([]byte, size), k, n)
	half := n / 2 / panel * panel
	row := func(i int) []byte { return rows[i*t.Bytes(k):][:t.Bytes(k)] }
	first := PackQuantized(nil, p, 0, t, row, half)
	second := PackQuantized(nil, p, half, t, func(i int) []byte { return row(half + i) }, n-half)
	if first != nil || second != nil {
		panic(fmt.Sprint(first, second))
	}
	return p, columns
}

// TestQuantized_Numbers: a packed matrix has the numbers of the file, to the bit.
func TestQuantized_Numbers(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, ty := range quantizedTypes {
		k, n := 3*ty.Block(), 75
		p, want := randomQuantized(rng, ty, k, n)
		row := make([]float32, k)
		for j := range n {
			p.Column(row, j)
			for i := range k {
				if math.Float32bits(row[i]) != math.Float32bits(want[j*k+i]) {
					t.Fatalf("%v: (%d, %d) is %v, want %v", ty, i, j, row[i], want[j*k+i])
				}
			}
		}
	}
}

// TestQuantized_Products: products with a quantized matrix, as it is and transposed, equal those with its numbers in
// float32 to the bit.
func TestQuantized_Products(t *testing.T) {
	eachLevel(t, func(t *testing.T, kernels *Kernels) {
		rng := rand.New(rand.NewPCG(5, 6))
		workers := pools(t)
		for i := range 60 {
			ty := quantizedTypes[i%len(quantizedTypes)]
			k, n := ty.Block()*(1+rng.IntN(1536/ty.Block())), 1+rng.IntN(330)
			b, columns := randomQuantized(rng, ty, k, n)
			full := View{columns, 1, k}
			for _, m := range []int{1 + rng.IntN(6), 1 + rng.IntN(64), 65 + rng.IntN(30)} {
				p := workers[rng.IntN(len(workers))]
				for _, transposed := range []bool{false, true} {
					in, out := k, n
					view := full
					if transposed {
						in, out, view = n, k, full.T()
					}
					a := fill(rng, View{Row: in, Col: 1}, m, in, false)
					want, got := make([]float32, m*out), make([]float32, m*out)
					add := rng.IntN(2) == 0
					for i := range want {
						want[i] = rng.Float32()
						got[i] = want[i]
					}
					kernels.Mul(p, Matmul{Out{want, out}, a, view, m, out, in, add})
					if transposed {
						kernels.MulPackedT(p, Out{got, out}, a, b, m, add)
					} else {
						kernels.MulPacked(p, Out{got, out}, a, b, m, add)
					}
					for i := range got {
						if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
							t.Fatalf("%v [%d, %d] of %d rows, transposed %v, add %v: element %d is %v, want %v", ty, k, n, m,
								transposed, add, i, got[i], want[i])
						}
					}
				}
			}
		}
	})
}
