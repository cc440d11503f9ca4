package ggml

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestFinite: blocks are finite where all of their elements are.
func TestFinite(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for kind := range layouts {
		seen := map[bool]int{}
		for range 4000 {
			blocks := make([]byte, 2*kind.Bytes(kind.Block()))
			for i := range blocks {
				blocks[i] = byte(rng.Uint32())
			}
			var numbers [2 * MaxBlock]float32
			kind.Convert(numbers[:2*kind.Block()], blocks)
			want := true
			for _, x := range numbers {
				want = want && !math.IsNaN(float64(x)) && !math.IsInf(float64(x), 0)
			}
			if kind == MXFP4 { // its largest scales are those of numbers if the codes are small
				want = want && max(blocks[0], blocks[kind.Bytes(kind.Block())]) <= 252
			}
			if got := kind.Finite(blocks); got != want {
				t.Fatalf("%v: Finite is %v of %v", kind, got, numbers[:2*kind.Block()])
			}
			seen[want]++
		}
		if seen[true] < 50 || seen[false] < 50 {
			t.Errorf("%v: %v", kind, seen)
		}
	}
}
