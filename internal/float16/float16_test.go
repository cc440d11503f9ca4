package float16

import (
	"math"
	"testing"
)

// TestFromFloat32_Nearest: each number has its own bits, what lies between two goes to the nearer, and what is halfway
// to the even one.
func TestFromFloat32_Nearest(t *testing.T) {
	check := func(v float32, want uint16) {
		t.Helper()
		if got := FromFloat32(v); got != want {
			t.Errorf("%x: %04x, want %04x", v, got, want)
		}
		if got := FromFloat32(-v); got != want|0x8000 {
			t.Errorf("%x: %04x, want %04x", -v, got, want|0x8000)
		}
	}
	for h := range uint16(0x7c00) {
		low, high := Float32(h), Float32(h+1)
		if h+1 == 0x7c00 {
			high = 65536
		}
		half := (low + high) / 2
		check(low, h)
		check(math.Nextafter32(half, low), h)
		check(half, h+h&1)
		check(math.Nextafter32(half, high), h+1)
	}
	check(math.MaxFloat32, 0x7c00)
	check(float32(math.Inf(1)), 0x7c00)
	if v := Float32(FromFloat32(float32(math.NaN()))); v == v {
		t.Errorf("NaN becomes %v", v)
	}
}
