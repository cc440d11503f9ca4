package cpu

import (
	"testing"

	"github.com/gomlx/compute/dtypes"

	"github.com/goart-dev/art/backend/device/cpu/internal/vec"
)

// TestAhead_FetchesAllOnce: the instructions of a loop together fetch each tensor's part of the next block, and none twice,
// however many of both there are.
func TestAhead_FetchesAllOnce(t *testing.T) {
	x := &tensor{kind: dtypes.Float32, size: 4}
	for points := 1; points < 12; points++ {
		for works := 2; works < 25; works++ {
			l := loop{numel: prefetchedBytes}
			for range points {
				l.instrs = append(l.instrs, instr{do: doAlias, v: view{of: x}})
			}
			for range works {
				l.instrs = append(l.instrs, instr{do: doApply})
			}
			planPrefetches(&l)
			fetched := map[int]map[int]int{}
			for i, list := range l.prefetches {
				if l.instrs[i].do != doApply && len(list) > 0 {
					t.Fatalf("instruction %d, which computes nothing, fetches", i)
				}
				for _, a := range list {
					if fetched[a.instr] == nil {
						fetched[a.instr] = map[int]int{}
					}
					for part := a.from; part < a.to; part++ {
						fetched[a.instr][part]++
					}
				}
			}
			for p := range points {
				for part := range 64 {
					if n := fetched[p][part]; n != 1 {
						t.Fatalf("%d tensors, %d instructions: part %d of tensor %d is fetched %d times", points, works, part, p, n)
					}
				}
			}
		}
	}
}

// TestAhead_Kernels: what a kernel reads that fetches is fetched by it, at the distance of the next block, and by nothing else.
func TestAhead_Kernels(t *testing.T) {
	x := &tensor{kind: dtypes.Float32, size: 4}
	for _, fetches := range []bool{false, true} {
		first := &fusedKernel{of: &vec.Fused{Fetches: fetches}, in: []int{2, 1}, ahead: nearAhead}
		second := &fusedKernel{of: &vec.Fused{Fetches: true}, in: []int{1}, ahead: nearAhead}
		l := loop{numel: prefetchedBytes, block: 1024, instrs: []instr{
			{do: doAlias, dst: 0, v: view{of: x}}, {do: doAlias, dst: 1, v: view{of: x}}, {do: doCombine, kernel: first}, {do: doCombine, kernel: second},
		}}
		planPrefetches(&l)
		if near, far := first.ahead, second.ahead; fetches && (near != 4096 || far != nearAhead) || !fetches && (near != nearAhead || far != 4096) {
			t.Errorf("the first fetches: %v; they fetch %d and %d bytes ahead", fetches, near, far)
		}
		for i, list := range l.prefetches {
			for _, a := range list {
				if a.instr != 0 {
					t.Errorf("after instruction %d something is fetched of tensor %d, which a kernel fetches", i, a.instr)
				}
			}
		}
	}
}
