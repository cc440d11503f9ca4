package vec

import (
	"bytes"
	"testing"
	"unsafe"

	"github.com/goart-dev/art/backend/device/cpu/internal/cpuid"
)

// Lines are copied as they are, and nothing beside them is touched, whichever way they follow one another.
func TestLines(t *testing.T) {
	r := newRandom(31)
	src := make([]byte, 1<<20)
	for i := range src {
		src[i] = byte(r.Uint32())
	}
	for _, l := range cpuid.Supported() {
		for range 400 {
			size := r.IntN(300)
			if r.IntN(2) == 0 {
				size = 32 * r.IntN(40)
			}
			p := Plane{Next: r.IntN(5000) - 2500, Lines: r.IntN(60), Step: r.IntN(1700) - 850, Bytes: size}
			if r.IntN(10) == 0 {
				p.Lines *= 20
			}
			planes, from := r.IntN(8), len(src)/2+r.IntN(100)
			if p.Lines > 60 {
				planes, p.Step = min(planes, 1), p.Step/4
			}
			dst := bytes.Repeat([]byte{0xee}, 64+planes*p.Lines*size)
			want := bytes.Clone(dst)
			for i := range planes * p.Lines {
				copy(want[32+i*size:][:size], src[from+i/p.Lines*p.Next+i%p.Lines*p.Step:])
			}
			Lines(l, unsafe.Pointer(&dst[32]), unsafe.Pointer(&src[from]), planes, &p)
			if !bytes.Equal(dst, want) {
				t.Fatalf("%v: %d planes %+v: a wrong copy", l, planes, p)
			}
		}
	}
}
