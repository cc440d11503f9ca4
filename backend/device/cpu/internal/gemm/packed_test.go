package gemm

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/goart-dev/art/backend/device/cpu/internal/cpuid"
)

func TestPacked(t *testing.T) {
	const k, n = 5, 70
	r := rand.New(rand.NewPCG(7, 7))
	for _, b := range []View{fill(r, View{Row: n, Col: 1}, k, n, false), fill(r, View{Row: 1, Col: k + 2}, k, n, false)} {
		half := make([]uint16, len(b.Data))
		for i, v := range b.Data {
			half[i] = uint16(math.Float32bits(v) >> 16)
			b.Data[i] = widen(half[i])
		}
		for _, p := range []*Packed{packView(b, k, n), packHalf(half, b.Row, b.Col, k, n)} {
			checkPacked(t, p, b)
		}
	}
}

// packView packs b with the kernels of this CPU.
func packView(b View, k, n int) *Packed {
	p := NewPacked(make([]float32, PackedSize(k, n)), k, n)
	New(cpuid.Supported()[0]).Pack(nil, p, 0, b, n)
	return p
}

// packHalf packs a matrix of bfloat16.
func packHalf(data []uint16, row, col, k, n int) *Packed {
	p := NewPacked(make([]uint16, PackedSize(k, n)), k, n)
	PackBF16(nil, p, 0, ViewBF16{data, row, col}, n)
	return p
}

// Packing in pieces and by several workers gives the same matrix.
func TestPack_Pieces(t *testing.T) {
	const k, n = 37, 150
	r := rand.New(rand.NewPCG(8, 8))
	eachLevel(t, func(t *testing.T, kernels *Kernels) {
		for _, b := range []View{fill(r, View{Row: n, Col: 1}, k, n, false), fill(r, View{Row: 1, Col: k + 2}, k, n, false)} {
			for _, workers := range pools(t) {
				p := NewPacked(make([]float32, PackedSize(k, n)), k, n)
				for _, piece := range [][2]int{{96, n}, {0, 32}, {32, 96}} {
					kernels.Pack(workers, p, piece[0], View{b.Data[piece[0]*b.Col:], b.Row, b.Col}, piece[1]-piece[0])
				}
				checkPacked(t, p, b)
			}
		}
	})
}

func checkPacked(t *testing.T, p *Packed, b View) {
	t.Helper()
	row, column := make([]float32, p.N), make([]float32, p.K)
	for k := range p.K {
		p.Row(row, k)
		for j := range p.N {
			want := b.Data[k*b.Row+j*b.Col]
			if p.At(k, j) != want || row[j] != want {
				t.Fatalf("element (%d, %d) is %v, %v in its row; want %v", k, j, p.At(k, j), row[j], want)
			}
		}
	}
	for j := range p.N {
		p.Column(column, j)
		for k, got := range column {
			if want := b.Data[k*b.Row+j*b.Col]; got != want {
				t.Fatalf("element (%d, %d) is %v in its column, want %v", k, j, got, want)
			}
		}
	}
}

// A matmul whose operands do not fit panics before a kernel runs.
func TestMul_Panics(t *testing.T) {
	k := New(0)
	x := make([]float32, 12)
	for name, call := range map[string]func(){
		"short a": func() { k.Mul(nil, Matmul{Out{x, 3}, View{x[:11], 4, 1}, View{x, 3, 1}, 3, 3, 4, false}) },
		"short b": func() { k.Mul(nil, Matmul{Out{x, 3}, View{x, 4, 1}, View{x[:11], 3, 1}, 3, 3, 4, false}) },
		"short c": func() { k.Mul(nil, Matmul{Out{x[:8], 3}, View{x, 4, 1}, View{x, 3, 1}, 3, 3, 4, false}) },
		"rows":    func() { k.Mul(nil, Matmul{Out{x, 2}, View{x, 4, 1}, View{x, 3, 1}, 3, 3, 4, false}) },
		"step":    func() { k.Mul(nil, Matmul{Out{x, 3}, View{x, -4, 1}, View{x, 3, 1}, 3, 3, 4, false}) },
		"pack":    func() { k.Pack(nil, NewPacked(make([]float32, 64), 1, 40), 0, View{x, 12, 1}, 12) },
		"packed":  func() { NewPacked(make([]float32, 63), 1, 40) },
		"batch": func() {
			k.MulBatch(nil, []Axis{{2, 0, 0, 9}}, Matmul{Out{x, 3}, View{x, 4, 1}, View{x, 3, 1}, 3, 3, 4, false})
		},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			call()
		}()
	}
}

// Products in steady state allocate nothing of the size of a matrix.
func TestMul_Allocations(t *testing.T) {
	k := New(0)
	a, b, c := make([]float32, 40*50), make([]float32, 50*60), make([]float32, 40*60)
	n := testing.AllocsPerRun(20, func() {
		k.Mul(nil, Matmul{Out{c, 60}, View{a, 50, 1}, View{b, 60, 1}, 40, 60, 50,
			false})
	})
	if n > 2 {
		t.Errorf("%v allocations", n)
	}
}
