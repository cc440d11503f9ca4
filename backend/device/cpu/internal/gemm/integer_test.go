package gemm

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/goart-dev/art/backend/device/cpu/internal/fma"
	"github.com/goart-dev/art/internal/ggml"
)

// integerElement is element (i, j) of a product of integers as integer.go defines it, from numbers and scales of B.
func integerElement(a View, p *Packed, i, j int, c float32, add bool) float32 {
	q := p.quantized
	for k0 := 0; k0 < p.K; k0 += Block {
		sum := float32(0)
		for k := k0; k < min(k0+Block, p.K); k += q.Group {
			tile := p.tileAt(k, j)
			ds, dm := q.scale(tile, k%q.tile/q.Group, j%panel)
			scale, whole, numbers := float32(0), int64(0), int64(0)
			for e := k / 32 * 32; e < k/32*32+32; e++ {
				x := a.Data[i*a.Row+e*a.Col]
				if x-x != 0 {
					return float32(math.NaN())
				}
				scale = max(scale, float32(math.Abs(float64(x)))/127)
			}
			if scale < 0x1p-126 {
				scale = 0
			} else {
				for e := k; e < k+q.Group; e++ {
					v := int64(math.RoundToEven(float64(a.Data[i*a.Row+e*a.Col] * (1 / scale))))
					whole += v
					numbers += v * int64(q.number(tile, e%q.tile, j%panel))
				}
			}
			sum = fma.Float32(ds*scale, float32(numbers), sum)
			if q.Min {
				sum = fma.Float32(dm, scale*float32(whole), sum)
			}
		}
		if k0 == 0 && !add {
			c = sum
		} else {
			c += sum
		}
	}
	return c
}

// integerTypes are those of integers with scales.
var integerTypes = slices.DeleteFunc(slices.Clone(quantizedTypes), func(t ggml.Type) bool { return t == ggml.F16 })

// TestIntegers_Definition: products of integers have the bits of the definition, whatever the type, the number of rows,
// the workers and the instruction set.
func TestIntegers_Definition(t *testing.T) {
	eachLevel(t, checkIntegers)
}

func checkIntegers(t *testing.T, kernels *Kernels) {
	rng := rand.New(rand.NewPCG(7, 8))
	workers := pools(t)
	for i := range 5 * len(integerTypes) {
		ty := integerTypes[i%len(integerTypes)]
		k, n, m := ty.Block()*(1+rng.IntN(1536/ty.Block())), 1+rng.IntN(130), 1+rng.IntN(9)
		if i < len(integerTypes) {
			m = 30 + rng.IntN(20)
		}
		b, _ := randomQuantized(rng, ty, k, n)
		b.Int8 = true
		a := fill(rng, []View{{Row: k, Col: 1}, {Row: 1, Col: m}, {Row: k + 7, Col: 1}}[rng.IntN(3)], m, k, false)
		special(rng, a, m, k)
		row := n + rng.IntN(3)
		got, add := make([]float32, m*row), rng.IntN(2) == 0
		for i := range got {
			got[i] = rng.Float32()
		}
		before := append([]float32(nil), got...)
		kernels.MulPacked(workers[i%len(workers)], Out{got, row}, a, b, m, add)
		for i := range got {
			want := before[i]
			if i%row < n {
				want = integerElement(a, b, i/row, i%row, before[i], add)
			}
			if math.Float32bits(got[i]) != math.Float32bits(want) && (got[i] == got[i] || want == want) {
				t.Fatalf("%v [%d, %d] of %d rows, add %v: element (%d, %d) is %v, want %v", ty, k, n, m, add, i/row, i%row,
					got[i], want)
			}
		}
	}
}

// special makes some numbers of a matrix zero, tiny or not numbers, and some rows large.
func special(rng *rand.Rand, a View, m, k int) {
	for i := range m {
		scale := float32(math.Exp(8 * rng.NormFloat64()))
		for j := range k {
			a.Data[i*a.Row+j*a.Col] *= scale
		}
		at := rng.IntN(k/32) * 32
		x := []float32{0, 0, 0x1p-140, 0x1p-120, float32(math.Inf(1)), float32(math.NaN()), float32(math.Inf(-1)), 1}[i%8]
		if i%8 > 3 {
			a.Data[i*a.Row+(at+rng.IntN(32))*a.Col] = x
			continue
		}
		for j := range 32 {
			a.Data[i*a.Row+(at+j)*a.Col] = x
		}
	}
}

// TestIntegers_Error: a product of integers differs from that of the numbers by no more than half a step of each number
// of A, and the rounding of the sums.
func TestIntegers_Error(t *testing.T) {
	eachLevel(t, func(t *testing.T, kernels *Kernels) {
		rng := rand.New(rand.NewPCG(9, 10))
		for _, ty := range integerTypes {
			k, n, m := 512, 40, 3
			b, columns := randomQuantized(rng, ty, k, n)
			b.Int8 = true
			a := fill(rng, View{Row: k, Col: 1}, m, k, false)
			got := make([]float32, m*n)
			kernels.MulPacked(nil, Out{got, n}, a, b, m, false)
			for i := range got {
				want, bound := 0.0, 0.0
				for g := 0; g < k; g += 32 {
					most := 0.0
					for e := g; e < g+32; e++ {
						most = max(most, math.Abs(float64(a.Data[i/n*k+e])))
					}
					for e := g; e < g+32; e++ {
						x, w := float64(a.Data[i/n*k+e]), float64(columns[i%n*k+e])
						want += x * w
						bound += math.Abs(w)*most/127*0.5001 + 0x1p-16*most*math.Abs(w)
					}
				}
				if diff := math.Abs(float64(got[i]) - want); diff > bound || diff == 0 && want != 0 {
					t.Fatalf("%v: element %d is %v, want %v within %v", ty, i, got[i], want, bound)
				}
			}
		}
	})
}

// TestIntegers_Extremes: nothing overflows or saturates where all numbers have the largest magnitudes.
func TestIntegers_Extremes(t *testing.T) {
	eachLevel(t, checkExtremes)
}

func checkExtremes(t *testing.T, kernels *Kernels) {
	rng := rand.New(rand.NewPCG(11, 12))
	for _, ty := range integerTypes {
		k, n, m := 512, panel, 3
		b, _ := randomQuantized(rng, ty, k, n)
		b.Int8 = true
		q := b.quantized
		codes := []byte{0, 0xff, 0x80, 0x7f, 0x0f, 0xf0}
		if ty == ggml.Q6_K { // which has numbers of 6 bits
			codes = []byte{0xe0, 0x1f}
		}
		for _, code := range codes {
			for at := 0; at < k; at += q.tile {
				tile := b.tileAt(at, 0)
				from := q.code
				if q.Bits == 5 {
					from = q.fifthAt
				}
				for i := from; i < len(tile); i++ {
					tile[i] = code
				}
			}
			a := View{make([]float32, m*k), k, 1}
			for i := range a.Data {
				a.Data[i] = []float32{1, -1, float32(1 - i%2*2)}[i/k]
			}
			got := make([]float32, m*n)
			kernels.MulPacked(nil, Out{got, n}, a, b, m, false)
			for i, x := range got {
				if want := integerElement(a, b, i/n, i%n, 0, false); x != want {
					t.Fatalf("%v, codes %x: element %d is %v, want %v", ty, code, i, x, want)
				}
			}
		}
	}
}
