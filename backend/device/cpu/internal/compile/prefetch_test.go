package compile

import (
	"testing"

	"github.com/gomlx/compute/dtypes"

	"github.com/goart-dev/art/backend/device/cpu/internal/ir"
	"github.com/goart-dev/art/backend/device/cpu/internal/vec"
)

// TestAhead_FetchesAllOnce: the instructions of a loop together fetch each tensor's part of the next block, and none
// twice, however many of both there are.
func TestAhead_FetchesAllOnce(t *testing.T) {
	x := &ir.Tensor{DType: dtypes.Float32, Size: 4}
	for points := 1; points < 12; points++ {
		for works := 2; works < 25; works++ {
			l := ir.Loop{Numel: prefetchedBytes}
			for range points {
				l.Instrs = append(l.Instrs, ir.Instr{Do: ir.Alias, View: ir.View{Of: x}})
			}
			for range works {
				l.Instrs = append(l.Instrs, ir.Instr{Do: ir.Apply})
			}
			planPrefetches(&l)
			fetched := map[int]map[int]int{}
			for i, list := range l.Prefetches {
				if l.Instrs[i].Do != ir.Apply && len(list) > 0 {
					t.Fatalf("instruction %d, which computes nothing, fetches", i)
				}
				for _, a := range list {
					if fetched[a.Instr] == nil {
						fetched[a.Instr] = map[int]int{}
					}
					for part := a.From; part < a.To; part++ {
						fetched[a.Instr][part]++
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

// TestAhead_Kernels: what a kernel reads that fetches is fetched by it, at the distance of the next block, and by
// nothing else.
func TestAhead_Kernels(t *testing.T) {
	x := &ir.Tensor{DType: dtypes.Float32, Size: 4}
	for _, fetches := range []bool{false, true} {
		first := &ir.FusedKernel{Of: &vec.Fused{Prefetches: fetches}, In: []int{2, 1}, Ahead: nearAhead}
		second := &ir.FusedKernel{Of: &vec.Fused{Prefetches: true}, In: []int{1}, Ahead: nearAhead}
		l := ir.Loop{Numel: prefetchedBytes, Block: 1024, Instrs: []ir.Instr{
			{Do: ir.Alias, Dst: 0, View: ir.View{Of: x}}, {Do: ir.Alias, Dst: 1, View: ir.View{Of: x}}, {Do: ir.Combine, Kernel: first}, {Do: ir.Combine, Kernel: second},
		}}
		planPrefetches(&l)
		if near, far := first.Ahead, second.Ahead; fetches && (near != 4096 || far != nearAhead) || !fetches &&
			(near != nearAhead || far != 4096) {
			t.Errorf("the first fetches: %v; they fetch %d and %d bytes ahead", fetches, near, far)
		}
		for i, list := range l.Prefetches {
			for _, a := range list {
				if a.Instr != 0 {
					t.Errorf("after instruction %d something is fetched of tensor %d, which a kernel fetches", i, a.Instr)
				}
			}
		}
	}
}
