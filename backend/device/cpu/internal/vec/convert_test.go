package vec

import (
	"math"
	"math/big"
	"testing"

	"github.com/goart-dev/art/backend/device/cpu/internal/cpuid"
)

func TestBfloat16_AllValues(t *testing.T) {
	x := make([]uint16, 1<<16)
	for i := range x {
		x[i] = uint16(i)
	}
	for _, l := range cpuid.Supported() {
		wide, back := make([]float32, len(x)), make([]uint16, len(x))
		FromBfloat16(l, wide, x)
		ToBfloat16(l, back, wide)
		for i, v := range wide {
			if math.Float32bits(v) != uint32(i)<<16 {
				t.Fatalf("%v: %04x becomes %08x", l, i, math.Float32bits(v))
			}
			if want := uint16(i); back[i] != want && !(isNaN(v) && back[i] == 0x7fc0) {
				t.Fatalf("%v: %04x comes back as %04x", l, want, back[i])
			}
		}
	}
}

func TestToBfloat16_Rounds(t *testing.T) {
	r := newRandom(17)
	for _, n := range append(sizes, chunk+3) {
		x := random(r, n)
		for _, l := range cpuid.Supported() {
			got := make([]uint16, n+1)
			ToBfloat16(l, got[:n], x)
			for i, v := range x {
				if f := float64(v); !math.IsNaN(f) && !math.IsInf(f, 0) && math.Abs(f) > 0x1p-126 {
					wide := new(big.Float).SetPrec(8).SetFloat64(f)
					want, _ := wide.Float64()
					if math.Abs(want) > math.MaxFloat32 {
						want = math.Inf(int(want / math.Abs(want)))
					}
					if math.Float32bits(float32(want))>>16 != uint32(got[i]) {
						t.Fatalf("%v: %v becomes %04x, want %v", l, v, got[i], want)
					}
				}
			}
			if got[n] != 0 {
				t.Fatalf("%v: wrote behind its slice", l)
			}
		}
	}
}
