package cpu

import (
	"math/rand/v2"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/dtypes/bfloat16"
	"github.com/gomlx/compute/shapes"

	"github.com/goart-dev/art/backend/device/cpu/internal/compile"
	"github.com/goart-dev/art/backend/device/cpu/internal/ir"
)

// halves returns a random matrix of bfloat16 three times: as float32, rows first, and packed.
func halves(t *testing.T, d *Device, rows, columns int) (wide, plain, packed compute.Buffer, data []bfloat16.BFloat16) {
	t.Helper()
	r := rand.New(rand.NewPCG(uint64(rows), uint64(columns)))
	data = make([]bfloat16.BFloat16, rows*columns)
	full := make([]float32, len(data))
	for i := range data {
		data[i] = bfloat16.FromFloat32(float32(r.NormFloat64()))
		full[i] = data[i].Float32()
	}
	shape := shapes.Make(dtypes.BFloat16, rows, columns)
	must := func(b compute.Buffer, err error) compute.Buffer {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	wide = must(d.BufferFromFlatData(0, full, shapes.Make(dtypes.Float32, rows, columns)))
	plain = must(d.BufferFromFlatData(0, data, shape))
	packed = must(d.Pack(shape, func(dst []float32, first int) { copy(dst, full[first*columns:]) }))
	return wide, plain, packed, data
}

// TestBF16_SameBits: weights in bfloat16, packed or not, give the bits of weights that were converted to float32
// before, and no tensor holds them converted.
func TestBF16_SameBits(t *testing.T) {
	for _, size := range [][2]int{{2, 2}, {33, 31}, {1, 40}, {40, 1}, {64, 64}, {300, 53}, {1100, 700}, {600, 1300}} {
		for _, workers := range []int{1, 3} {
			for _, n := range []int{1, 3, 40} {
				d := newDevice(t, workers)
				rows, columns := size[0], size[1]
				wide, plain, packed, data := halves(t, d, rows, columns)
				ids := make([]int32, n)
				for i := range ids {
					ids[i] = int32(i*7919 - 5)
				}
				at, err := d.BufferFromFlatData(0, ids, shapes.Make(dtypes.Int32, n, 1))
				if err != nil {
					t.Fatal(err)
				}
				want := execute(t, embedding{dtypes.Float32, rows, columns, n, nil}.compile(t, d), wide, at)
				e := embedding{dtypes.BFloat16, rows, columns, n, nil}.compile(t, d)
				for _, x := range e.(*executable).plan.Tensors {
					if x.DType == dtypes.Float32 && x.Count == rows*columns && x.Memory == ir.InArena && rows != n && n > 1 {
						t.Error("the weights are converted to an array")
					}
				}
				for _, w := range []compute.Buffer{plain, packed} {
					got := execute(t, e, w, at)
					for i := range want {
						same(t, want[i], got[i])
					}
				}
				back := make([]bfloat16.BFloat16, len(data))
				copied, err := packed.CopyToDevice(0)
				if err != nil {
					t.Fatal(err)
				}
				if err := copied.ToFlatData(back); err != nil {
					t.Fatal(err)
				}
				for i := range data {
					if data[i] != back[i] {
						t.Fatalf("number %d of the packed matrix is %v, want %v", i, back[i], data[i])
					}
				}
			}
		}
	}
}

// TestBF16_Attention: the matmuls of fused attention, over rows as long as a vocabulary, read weights in bfloat16.
func TestBF16_Attention(t *testing.T) {
	d := newDevice(t, 2)
	const n, size, vocabulary = compile.WideRows + 2, 8, compile.WideRow + 5
	wide, plain, packed, _ := halves(t, d, vocabulary, size)
	r := rand.New(rand.NewPCG(3, 3))
	x := make([]float32, n*size)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	in, err := d.BufferFromFlatData(0, x, shapes.Make(dtypes.Float32, n, size))
	if err != nil {
		t.Fatal(err)
	}
	must := valueOf(t)
	build := func(kind dtypes.DType) *executable {
		b := d.Builder("attention")
		f := b.Main()
		x := must(f.Parameter("x", shapes.Make(dtypes.Float32, n, size), nil))
		w := must(f.ConvertDType(must(f.Parameter("w", shapes.Make(kind, vocabulary, size), nil)), dtypes.Float32))
		z := must(f.DotGeneral(x, []int{1}, nil, w, []int{1}, nil, compute.DotGeneralConfig{}))
		e := must(f.Exp(z))
		p := must(f.Div(e, must(f.BroadcastInDim(must(f.ReduceSum(e, 1)), shapes.Make(dtypes.Float32, n, vocabulary),
			[]int{0}))))
		y := must(f.DotGeneral(p, []int{1}, nil, w, []int{0}, nil, compute.DotGeneralConfig{}))
		if err := f.Return([]compute.Value{y}, nil); err != nil {
			t.Fatal(err)
		}
		c, err := b.Compile()
		if err != nil {
			t.Fatal(err)
		}
		return c.(*executable)
	}
	want := execute(t, build(dtypes.Float32), in, wide)[0]
	e := build(dtypes.BFloat16)
	if len(e.plan.Steps) != 1 {
		t.Errorf("%d steps, want one fused attention", len(e.plan.Steps))
	}
	for _, w := range []compute.Buffer{plain, packed} {
		same(t, want, execute(t, e, in, w)[0])
	}
}

// TestBF16_OtherUses: weights in bfloat16 that something else reads too are converted for that, and cannot be packed.
func TestBF16_OtherUses(t *testing.T) {
	d := newDevice(t, 2)
	wide, plain, packed, _ := halves(t, d, 40, 50)
	at, err := d.BufferFromFlatData(0, []int32{1, 2}, shapes.Make(dtypes.Int32, 2, 1))
	if err != nil {
		t.Fatal(err)
	}
	negated := func(f compute.Function, w compute.Value) compute.Value { return valueOf(t)(f.Neg(w)) }
	e := embedding{dtypes.BFloat16, 40, 50, 2, negated}.compile(t, d)
	want := execute(t, embedding{dtypes.Float32, 40, 50, 2, negated}.compile(t, d), wide, at)
	for i, got := range execute(t, e, plain, at) {
		same(t, want[i], got)
	}
	if _, err := e.Execute([]compute.Buffer{packed, at}, nil, 0); err == nil {
		t.Error("a packed matrix was negated")
	}
}
