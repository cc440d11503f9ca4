package gemm

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
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
		for _, p := range []*Packed{Pack(b, k, n), PackBF16(half, b.Row, b.Col, k, n)} {
			checkPacked(t, p, b)
		}
	}
	if got := Pack(View{make([]float32, 70), 70, 1}, 1, 70).Bytes(); got != 3*32*4 {
		t.Errorf("%d bytes", got)
	}
	if got := PackBF16(make([]uint16, 70), 70, 1, 1, 70).Bytes(); got != 3*32*2 {
		t.Errorf("%d bytes of bfloat16", got)
	}
}

func checkPacked(t *testing.T, p *Packed, b View) {
	t.Helper()
	row, column, all := make([]float32, p.N), make([]float32, p.K), make([]float32, p.K*p.N)
	p.Unpack(View{all, 1, p.K})
	for k := range p.K {
		p.Row(row, k)
		for j := range p.N {
			want := b.Data[k*b.Row+j*b.Col]
			if p.At(k, j) != want || row[j] != want || all[k+j*p.K] != want {
				t.Fatalf("element (%d, %d) is %v, %v in its row, %v unpacked; want %v", k, j, p.At(k, j), row[j], all[k+j*p.K], want)
			}
		}
	}
	for j := range p.N {
		p.Column(column, j)
		if !slices.Equal(column, all[j*p.K:][:p.K]) {
			t.Fatalf("column %d is %v", j, column)
		}
	}
}

// A product whose operands do not fit panics before a kernel runs.
func TestMul_Panics(t *testing.T) {
	k := New(0)
	x := make([]float32, 12)
	for name, call := range map[string]func(){
		"short a": func() { k.Mul(nil, x, 3, View{x[:11], 4, 1}, View{x, 3, 1}, 3, 3, 4, false) },
		"short b": func() { k.Mul(nil, x, 3, View{x, 4, 1}, View{x[:11], 3, 1}, 3, 3, 4, false) },
		"short c": func() { k.Mul(nil, x[:8], 3, View{x, 4, 1}, View{x, 3, 1}, 3, 3, 4, false) },
		"rows":    func() { k.Mul(nil, x, 2, View{x, 4, 1}, View{x, 3, 1}, 3, 3, 4, false) },
		"step":    func() { k.Mul(nil, x, 3, View{x, -4, 1}, View{x, 3, 1}, 3, 3, 4, false) },
		"batch": func() {
			k.MulBatch(nil, []Axis{{2, 0, 0, 9}}, x, 3, View{x, 4, 1}, View{x, 3, 1}, 3, 3, 4, false)
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
	n := testing.AllocsPerRun(20, func() { k.Mul(nil, c, 60, View{a, 50, 1}, View{b, 60, 1}, 40, 60, 50, false) })
	if n > 2 {
		t.Errorf("%v allocations", n)
	}
}
