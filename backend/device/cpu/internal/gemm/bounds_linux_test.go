package gemm

import (
	"math/rand/v2"
	"syscall"
	"testing"
	"unsafe"
)

// fence returns n numbers that end where memory that must not be touched begins.
func fence(t *testing.T, n int) []float32 {
	page := syscall.Getpagesize()
	size := ceil(4*n, page) * page
	memory, err := syscall.Mmap(-1, 0, size+page, syscall.PROT_READ|syscall.PROT_WRITE,
		syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Munmap(memory) })
	if err := syscall.Mprotect(memory[size:], syscall.PROT_NONE); err != nil {
		t.Fatal(err)
	}
	return unsafe.Slice((*float32)(unsafe.Pointer(&memory[size-4*n])), n)
}

// fenced is a copy of numbers that ends at a fence.
func fenced(t *testing.T, x []float32) []float32 {
	if len(x) == 0 {
		return x
	}
	y := fence(t, len(x))
	copy(y, x)
	return y
}

// Kernels read and write nothing after a slice.
func TestMul_Bounds(t *testing.T) {
	eachLevel(t, func(t *testing.T, k *Kernels) {
		r := rand.New(rand.NewPCG(5, 5))
		for i := range 150 {
			m, n, kk := randomSize(r), randomSize(r), randomSize(r)
			if i >= 144 {
				m, n, kk = skinny+1+r.IntN(10), largeColumns+r.IntN(100), largeDepth+r.IntN(20)
			}
			e := newExample(r, m, n, kk, false)
			e.a.Data, e.b.Data = fenced(t, e.a.Data), fenced(t, e.b.Data)
			e.check(t, "Mul", func(c []float32) {
				out := fence(t, (e.m-1)*e.ldc+e.n)
				copy(out, c)
				k.Mul(nil, Matmul{Out{out, e.ldc}, e.a, e.b, e.m, e.n, e.k, e.add})
				copy(c, out)
			})
			packed := packView(e.b, e.k, e.n)
			packed.full = fenced(t, packed.full)
			e.check(t, "MulPacked", func(c []float32) { k.MulPacked(nil, Out{c, e.ldc}, e.a, packed, e.m, e.add) })
			packed = packView(e.b.T(), e.n, e.k)
			packed.full = fenced(t, packed.full)
			e.check(t, "MulPackedT", func(c []float32) { k.MulPackedT(nil, Out{c, e.ldc}, e.a, packed, e.m, e.add) })
		}
		k.Read(nil, fence(t, 100_003))
	})
}

// Lines of every length are copied and transposed, and nothing beside them is read or written.
func TestPack_Lines(t *testing.T) {
	eachLevel(t, func(t *testing.T, kernels *Kernels) {
		for width := 1; width <= panel; width++ {
			for _, k := range []int{1, 3, 4, 7, 16, 21} {
				for _, v := range []View{{Row: 1, Col: k + width%3}, {Row: width + k%5, Col: 1}, {Row: 1, Col: 1}} {
					v.Data = fence(t, (k-1)*v.Row+(width-1)*v.Col+1)
					for i := range v.Data {
						v.Data[i] = float32(i)
					}
					line := width + k%4
					dst := fence(t, (k-1)*line+width)
					for i := range dst {
						dst[i] = guard
					}
					kernels.level.pack(new(scratch), lines{Out{dst, line}, v, k, width, 40})
					for i, got := range dst {
						want := float32(guard)
						if i%line < width {
							want = v.Data[i/line*v.Row+i%line*v.Col]
						}
						if got != want {
							t.Fatalf("%d lines of %d numbers, steps %d and %d: number %d is %v, want %v", k, width, v.Row, v.Col, i, got,
								want)
						}
					}
				}
			}
		}
	})
}
