package vec

import (
	"syscall"
	"testing"
	"unsafe"

	"github.com/goart-dev/art/backend/device/cpu/internal/cpuid"
)

// fenced returns a slice of n floats with a page behind it, or in front of it, that may not be touched.
func fenced(t *testing.T, n int, behind bool) []float32 {
	t.Helper()
	page := syscall.Getpagesize()
	size := (n*4 + page - 1) / page * page
	m, err := syscall.Mmap(-1, 0, size+2*page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Munmap(m) })
	for _, fence := range [][]byte{m[:page], m[page+size:]} {
		if err := syscall.Mprotect(fence, syscall.PROT_NONE); err != nil {
			t.Fatal(err)
		}
	}
	from := page
	if behind {
		from = page + size - n*4
	}
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(m[from:]))), n)
}

// Reading or writing outside of a slice ends the test process.
func TestBounds(t *testing.T) {
	for _, behind := range []bool{false, true} {
		var x [4][]float32
		const most = 300
		for i := range x {
			x[i] = fenced(t, most, behind)
		}
		for n := range most {
			var s [4][]float32
			for i := range s {
				if s[i] = x[i][:n]; behind {
					s[i] = x[i][most-n:]
				}
			}
			for _, l := range cpuid.Supported() {
				touch(l, s)
			}
		}
	}
}

// touch runs one operation of each shape.
func touch(l Level, s [4][]float32) {
	n := len(s[0])
	for op := range kernelsPortable.unary {
		if l != Portable || n < 5 {
			UnaryFunc(l, UnaryOp(op))(s[0], s[1])
		}
	}
	BinaryFunc(l, OpMax)(s[0], s[1], s[2])
	BinaryScalarFunc(l, OpAdd)(s[0], s[1], 1)
	BinaryScalarFunc(l, OpDiv)(s[0], s[1], 3)
	Fill(l, s[0], 0)
	bools := unsafe.Slice((*bool)(unsafe.Pointer(unsafe.SliceData(s[3]))), n*4)[3*n:]
	halves := unsafe.Slice((*uint16)(unsafe.Pointer(unsafe.SliceData(s[3]))), n*2)[n:]
	CompareFunc(l, OpLess)(bools, s[1], s[2])
	WhereFunc(l)(s[0], bools, s[1], s[2])
	ToBfloat16(l, halves, s[1])
	FromBfloat16(l, s[0], halves)
	Fill(l, s[3], 0)
	Sum(l, s[0])
	Max(l, s[0])
	for _, rows := range []int{1, 3} {
		SumRows(l, s[1][:min(rows, n)], s[0], n/rows)
	}
	for _, f := range fusedTable {
		o := fusedOperands{in: s[:f.Streams], scalars: make([]float32, f.Scalars)}
		f.run(l, o, [][]float32{s[3], s[2], s[1], s[0]}[:len(f.Out)])
	}
	for _, rows := range []int{1, 8, 16, 17} {
		Transpose(l, s[0][:n/rows*rows], s[1][:n/rows*rows], Block{rows, n / rows, rows, n / rows})
	}
}
