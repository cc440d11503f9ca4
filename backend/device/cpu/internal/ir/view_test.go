package ir

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// random views are made by random operations, and every operation keeps what a walk over the elements says.
func TestView_Random(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		dims := make([]int, rng.IntN(5))
		for i := range dims {
			dims[i] = 1 + rng.IntN(4)
		}
		v := Whole(nil, dims)
		for range rng.IntN(4) {
			v = randomView(t, rng, v)
		}
		want := v.Offsets()
		if got := v.Collapse().Offsets(); !slices.Equal(got, want) {
			t.Fatalf("collapse of %+v walks %v, want %v", v, got, want)
		}
		for i, off := range want {
			if got := v.At(i); got != off {
				t.Fatalf("element %d of %+v is at %d, want %d", i, v, got, off)
			}
		}
		spaced := NewOffsets(v)
		if spaced.Len() != len(want) {
			t.Fatalf("%d offsets of %+v, want %d", spaced.Len(), v, len(want))
		}
		for i, off := range want {
			if got := spaced.At(i); got != off {
				t.Fatalf("offset %d of %+v is %d, want %d", i, v, got, off)
			}
		}
		run := make([]int, len(want))
		for i := range run {
			run[i] = v.Off + i
		}
		if got := v.Contiguous(); got != slices.Equal(run, want) {
			t.Fatalf("contiguous of %+v is %v", v, got)
		}
		for _, shape := range factors(rng, len(want)) {
			if r, ok := v.Reshape(shape); ok && !slices.Equal(r.Offsets(), want) {
				t.Fatalf("reshape of %+v to %v walks %v, want %v", v, shape, r.Offsets(), want)
			} else if !ok && v.Contiguous() {
				t.Fatalf("no reshape of the contiguous %+v to %v", v, shape)
			}
		}
	}
}

func randomView(t *testing.T, rng *rand.Rand, v View) View {
	t.Helper()
	k := len(v.Dims)
	switch rng.IntN(4) {
	case 0:
		return v.Transpose(rng.Perm(k))
	case 1:
		starts, steps, dims := make([]int, k), make([]int, k), make([]int, k)
		for i, d := range v.Dims {
			starts[i], steps[i] = rng.IntN(d), 1+rng.IntN(2)
			dims[i] = (d-1-starts[i])/steps[i] + 1
		}
		return v.Slice(starts, steps, dims)
	case 2:
		dims, axes := []int{}, make([]int, k)
		for i, d := range v.Dims {
			for rng.IntN(3) == 0 {
				dims = append(dims, 1+rng.IntN(3))
			}
			axes[i] = len(dims)
			if d == 1 {
				d = 1 + rng.IntN(2)
			}
			dims = append(dims, d)
		}
		return v.Broadcast(dims, axes)
	}
	var axes []int
	for i := range k {
		if rng.IntN(2) == 0 {
			axes = append(axes, i)
		}
	}
	return v.Reverse(axes)
}

// factors returns some shapes of n elements.
func factors(rng *rand.Rand, n int) (list [][]int) {
	for range 3 {
		var dims []int
		left := n
		for d := 2; left > 1; {
			if left%d == 0 {
				dims = append(dims, d)
				left /= d
			} else {
				d++
			}
			if rng.IntN(4) == 0 {
				dims = append(dims, 1)
			}
		}
		rng.Shuffle(len(dims), func(i, j int) { dims[i], dims[j] = dims[j], dims[i] })
		list = append(list, dims)
	}
	return list
}
