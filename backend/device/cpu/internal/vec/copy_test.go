package vec

import (
	"math/rand/v2"
	"testing"

	"github.com/goart-dev/art/backend/device/cpu/internal/cpuid"
)

func TestTranspose(t *testing.T) {
	r := newRandom(19)
	for _, size := range [][2]int{{0, 5}, {5, 0}, {1, 1}, {3, 70}, {16, 16}, {32, 64}, {17, 33}, {100, 200}, {130, 65}} {
		rows, columns := size[0], size[1]
		dstStride, srcStride := rows+r.IntN(5), columns+r.IntN(5)
		src := random(r, rows*srcStride)
		for _, l := range cpuid.Supported() {
			dst, all := guarded(columns*dstStride, 1)
			Transpose(l, dst, src, Block{rows, columns, dstStride, srcStride})
			for j := range columns {
				for i := range dstStride {
					want := guard
					if i < rows {
						want = src[i*srcStride+j]
					}
					if !same(dst[j*dstStride+i], want) {
						t.Fatalf("%v: %d by %d: element %d, %d is %v, want %v", l, rows, columns, j, i, dst[j*dstStride+i], want)
					}
				}
			}
			wantGuards(t, l.String(), all, columns*dstStride, 1)
		}
	}
}

// copySlow looks each element up.
func copySlow[T any](sizes, strides []int, src []T) (dst []T) {
	if len(sizes) == 0 {
		return src[:1]
	}
	for i := range sizes[0] {
		dst = append(dst, copySlow(sizes[1:], strides[1:], src[i*strides[0]:])...)
	}
	return dst
}

func testCopy[T Element](t *testing.T, r *rand.Rand, c Copy, sizes, strides []int, src []T) {
	t.Helper()
	want := copySlow(sizes, strides, src)
	for _, l := range cpuid.Supported() {
		dst := make([]T, len(want))
		order := r.Perm(c.Units())
		for _, u := range order {
			Run(l, c, dst, src, u, u+1)
		}
		for i := range want {
			if dst[i] != want[i] {
				t.Fatalf("%v: sizes %v, strides %v: element %d is %v, want %v", l, sizes, strides, i, dst[i], want[i])
			}
		}
	}
}

func TestCopy_Permutations(t *testing.T) {
	r := newRandom(20)
	for range 300 {
		n := 1 + r.IntN(6)
		sizes := make([]int, n)
		total := 1
		for i := range sizes {
			sizes[i] = 1 + r.IntN(5)
			if r.IntN(3) == 0 && total < 500 {
				sizes[i] = 16 + r.IntN(60)
			}
			total *= sizes[i]
		}
		if total > 200_000 {
			continue
		}
		order := r.Perm(n)
		stride := make([]int, n)
		for i, s := n-1, 1; i >= 0; i-- {
			stride[i], s = s, s*sizes[i]
		}
		toSizes, toStrides := make([]int, n), make([]int, n)
		for i, from := range order {
			toSizes[i], toStrides[i] = sizes[from], stride[from]
		}
		c := NewCopy(toSizes, toStrides)
		testCopy(t, r, c, toSizes, toStrides, moderate(r, total))
		words, bytes := make([]int32, total), make([]bool, total)
		for i := range words {
			words[i], bytes[i] = r.Int32(), r.IntN(2) == 0
		}
		testCopy(t, r, c, toSizes, toStrides, words)
		testCopy(t, r, c, toSizes, toStrides, bytes)
	}
}

func TestCopy_Strides(t *testing.T) {
	r := newRandom(21)
	src := moderate(r, 5000)
	for _, c := range []struct{ sizes, strides []int }{
		{nil, nil},
		{[]int{0}, []int{1}},
		{[]int{3, 0, 2}, []int{2, 2, 1}},
		{[]int{1}, []int{0}},
		{[]int{4, 5}, []int{0, 1}},
		{[]int{4, 5}, []int{1, 0}},
		{[]int{4, 5}, []int{0, 0}},
		{[]int{7, 5}, []int{10, 2}},
		{[]int{3, 70, 5}, []int{7, 1, 70}},
		{[]int{2, 3, 4, 5}, []int{0, 20, 0, 3}},
		{[]int{20, 20}, []int{1, 21}},
	} {
		testCopy(t, r, NewCopy(c.sizes, c.strides), c.sizes, c.strides, src)
	}
}
