package gemm

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// groupCase is a matmul of a group, and the result that it has alone.
type groupCase struct {
	Group
	want []float32
}

// randomGroup is a matmul of one of the kinds of right operands.
func randomGroup(r *rand.Rand, kernels *Kernels) groupCase {
	ty := quantizedTypes[r.IntN(len(quantizedTypes))]
	k, n := ty.Block()*(1+r.IntN(768/ty.Block())), 1+r.IntN(330)
	packed, columns := randomQuantized(r, ty, k, n)
	g := groupCase{}
	g.M, g.N, g.K, g.Add = []int{0, 1, 1, 1 + r.IntN(8), 1 + r.IntN(64), 65 + r.IntN(40)}[r.IntN(6)], n, k, r.IntN(2) == 0
	view := View{columns, 1, k}
	if g.Transposed = r.IntN(2) == 0; g.Transposed {
		g.N, g.K, view = k, n, view.T()
	}
	switch r.IntN(4) {
	case 0:
		g.B = view
	case 1:
		g.Packed = packView(View{columns, 1, k}, k, n)
	case 2:
		packed.Int8 = ty.Block() >= 32
		fallthrough
	default:
		g.Packed = packed
	}
	g.A = fill(r, View{Row: g.K, Col: 1}, max(g.M, 1), g.K, false)
	g.C = Out{make([]float32, g.M*g.N), g.N}
	for i := range g.C.Data {
		g.C.Data[i] = r.Float32()
	}
	g.want = slices.Clone(g.C.Data)
	c := Out{g.want, g.N}
	switch {
	case g.Packed == nil:
		m := g.Matmul
		m.C = c
		kernels.Mul(nil, m)
	case g.Transposed:
		kernels.MulPackedT(nil, c, g.A, g.Packed, g.M, g.Add)
	default:
		kernels.MulPacked(nil, c, g.A, g.Packed, g.M, g.Add)
	}
	return g
}

// TestMulGroups_SameBits: matmuls that are computed at once have the bits that each has alone, whatever they are and
// however many workers share them.
func TestMulGroups_SameBits(t *testing.T) {
	eachLevel(t, func(t *testing.T, kernels *Kernels) {
		r := rand.New(rand.NewPCG(11, 12))
		for _, p := range pools(t) {
			for range 5 {
				var cases []groupCase
				var list []Group
				for range r.IntN(20) {
					g := randomGroup(r, kernels)
					cases, list = append(cases, g), append(list, g.Group)
				}
				kernels.MulGroups(p, list)
				for i, g := range cases {
					for j, want := range g.want {
						if got := g.C.Data[j]; math.Float32bits(got) != math.Float32bits(want) {
							t.Fatalf("matmul %d of %d, [%d, %d, %d], transposed %v: number %d is %v, want %v", i, len(list), g.M, g.K,
								g.N, g.Transposed, j, got, want)
						}
					}
				}
			}
		}
	})
}
