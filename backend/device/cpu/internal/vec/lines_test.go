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
			lines, step, from := r.IntN(600), r.IntN(1700)-850, len(src)/2+r.IntN(100)
			dst := bytes.Repeat([]byte{0xee}, 64+lines*size)
			want := bytes.Clone(dst)
			for i := range lines {
				copy(want[32+i*size:][:size], src[from+i*step:])
			}
			Lines(l, unsafe.Pointer(&dst[32]), unsafe.Pointer(&src[from]), lines, size, step)
			if !bytes.Equal(dst, want) {
				t.Fatalf("%v: %d lines of %d bytes, %d from one to the next: a wrong copy", l, lines, size, step)
			}
		}
	}
}
