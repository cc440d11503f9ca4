package gemm

import (
	"math/rand/v2"
	"testing"
)

// TestMul_Resume: a block of the contracted axis that is computed part by part has the bits of the whole, however it is
// cut, for all sizes, strides and numbers of workers.
func TestMul_Resume(t *testing.T) {
	eachLevel(t, func(t *testing.T, k *Kernels) {
		all := pools(t)
		for seed := range uint64(100) {
			r := rand.New(rand.NewPCG(seed, 61))
			n := randomSize(r)
			if seed%5 == 0 {
				n = largeColumns + r.IntN(40)
			}
			e := newExample(r, randomSize(r), n, 1+r.IntN(Block), false)
			if e.add {
				continue
			}
			e.check(t, "in parts", func(c []float32) {
				for at, n := 0, 0; at < e.k; at += n {
					n = min(1+r.IntN(64), e.k-at)
					m := Matmul{C: Out{c, e.ldc}, A: e.a, B: e.b, M: e.m, N: e.n, K: n}
					m.A.Data, m.B.Data = e.a.Data[at*e.a.Col:], e.b.Data[at*e.b.Row:]
					mul := k.Mul
					if at > 0 {
						mul = k.Resume
					}
					mul(all[r.IntN(len(all))], m)
				}
			})
		}
	})
}
