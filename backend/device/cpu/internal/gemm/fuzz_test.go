package gemm

import (
	"math/rand/v2"
	"testing"

	"github.com/goart-dev/art/backend/device/cpu/internal/cpuid"
	"github.com/goart-dev/art/backend/device/cpu/internal/pool"
)

// FuzzMul compares the kernels of all levels with the chain. Seeds choose the numbers, strides and blocks.
func FuzzMul(f *testing.F) {
	f.Add(uint8(3), uint8(40), uint16(17), uint64(1), uint8(0))
	f.Add(uint8(65), uint8(33), uint16(31), uint64(2), uint8(5))
	f.Add(uint8(15), uint8(16), uint16(130), uint64(3), uint8(64))
	f.Add(uint8(100), uint8(4), uint16(9), uint64(4), uint8(3))
	workers := pool.New(3)
	f.Cleanup(workers.Close)
	f.Fuzz(func(t *testing.T, m, n uint8, k uint16, seed uint64, depth uint8) {
		e := newExample(rand.New(rand.NewPCG(seed, 0)), int(m)+1, int(n)+1, int(k%1100), seed%2 == 0)
		for _, l := range cpuid.Supported() {
			kernels := New(l)
			e.checkAll(t, kernels, nil)
			e.checkAll(t, kernels, workers)
			e.check(t, l.String()+" in blocks", func(c []float32) {
				e.blocks(kernels, c, rand.New(rand.NewPCG(seed, uint64(depth))), int(depth))
			})
		}
	})
}

// blocks computes an example with another plan.
func (e *example) blocks(k *Kernels, c []float32, r *rand.Rand, depth int) {
	g := &call{level: k.level, c: Out{c, e.ldc}, a: e.a, b: operand{view: e.b}, m: e.m, n: e.n, k: e.k, add: e.add}
	g.plan = plan{
		mb: 1 + r.IntN(e.m), nb: panel * (1 + r.IntN(4)), kb: Block * (1 + depth%3),
		rowsOuter: r.IntN(2) == 0, packA: r.IntN(2) == 0,
	}
	if !g.rowsOuter && depth%2 == 0 {
		g.kb, g.piece = Block, 1+depth
	}
	g.down, g.across = ceil(e.m, g.mb), ceil(e.n, g.nb)
	s := new(scratch)
	for i := range g.down * g.across {
		g.task(s, i)
	}
}

// Parts of any number of fixed blocks, and pieces of them of any length, yield the same bits.
func TestMul_Blocks(t *testing.T) {
	eachLevel(t, func(t *testing.T, k *Kernels) {
		r := rand.New(rand.NewPCG(6, 6))
		for range 200 {
			e := newExample(r, randomSize(r), randomSize(r), randomSize(r), false)
			e.check(t, "blocks", func(c []float32) { e.blocks(k, c, r, r.IntN(40)) })
		}
		for range 60 {
			e := newExample(r, 1+r.IntN(20), 1+r.IntN(70), longSize(r), false)
			e.check(t, "blocks", func(c []float32) { e.blocks(k, c, r, r.IntN(40)) })
		}
	})
}

// longSize is a length of the contracted axis around a multiple of a fixed block.
func longSize(r *rand.Rand) int { return Block*(1+r.IntN(2)) + r.IntN(40) - 20 }
