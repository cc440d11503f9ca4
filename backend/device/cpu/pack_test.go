package cpu

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"

	"github.com/goart-dev/art/internal/ggml"
)

// embedding is a graph as of a model whose embedding [rows, columns] is also its head: n rows are gathered, multiplied
// by all rows, and by what comes of it again. Weights are converted to float32.
type embedding struct {
	dtype            dtypes.DType
	rows, columns, n int
	corrupt          func(f compute.Function, w compute.Value) compute.Value // another use of the weights, or nil
}

func (e embedding) compile(t *testing.T, d *Device) compute.Executable {
	t.Helper()
	b := d.Builder("embedding")
	f := b.Main()
	w := valueOf(t)(f.Parameter("w", shapes.Make(e.dtype, e.rows, e.columns), nil))
	w = valueOf(t)(f.ConvertDType(w, dtypes.Float32))
	ids := valueOf(t)(f.Parameter("ids", shapes.Make(dtypes.Int32, e.n, 1), nil))
	x := valueOf(t)(f.Gather(w, ids, 1, []int{1}, []int{0}, []int{0}, []int{1, e.columns}, false))
	y := valueOf(t)(f.DotGeneral(x, []int{1}, nil, w, []int{1}, nil, compute.DotGeneralConfig{}))
	z := valueOf(t)(f.DotGeneral(y, []int{1}, nil, w, []int{0}, nil, compute.DotGeneralConfig{}))
	out := []compute.Value{x, y, z}
	if e.corrupt != nil {
		out = append(out, e.corrupt(f, w))
	}
	if err := f.Return(out, nil); err != nil {
		t.Fatal(err)
	}
	compiled, err := b.Compile()
	if err != nil {
		t.Fatal(err)
	}
	return compiled
}

func valueOf(t *testing.T) func(v compute.Value, err error) compute.Value {
	return func(v compute.Value, err error) compute.Value {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// packedMatrix returns the same random matrix twice: rows first, and packed.
func packedMatrix(t *testing.T, d *Device, rows, columns int) (plain, packed compute.Buffer, data []float32) {
	t.Helper()
	r := rand.New(rand.NewPCG(uint64(rows), uint64(columns)))
	data = make([]float32, rows*columns)
	for i := range data {
		data[i] = float32(r.NormFloat64())
	}
	shape := shapes.Make(dtypes.Float32, rows, columns)
	plain, err := d.BufferFromFlatData(0, data, shape)
	if err != nil {
		t.Fatal(err)
	}
	packed, err = d.Pack(shape, func(dst []float32, first int) { copy(dst, data[first*columns:]) })
	if err != nil {
		t.Fatal(err)
	}
	return plain, packed, data
}

// TestPack_SameBits: with a packed matrix a graph computes what it does with rows first.
func TestPack_SameBits(t *testing.T) {
	for _, size := range [][2]int{{2, 2}, {33, 31}, {1, 40}, {40, 1}, {64, 64}, {300, 53}} {
		for _, workers := range []int{1, 3} {
			d := newDevice(t, workers)
			rows, columns := size[0], size[1]
			plain, packed, data := packedMatrix(t, d, rows, columns)
			ids := []int32{int32(rows - 1), 0, int32(rows / 2), -5, 1 << 20}
			at, err := d.BufferFromFlatData(0, ids, shapes.Make(dtypes.Int32, len(ids), 1))
			if err != nil {
				t.Fatal(err)
			}
			e := embedding{dtypes.Float32, rows, columns, len(ids), nil}.compile(t, d)
			want := execute(t, e, plain, at)
			got := execute(t, e, packed, at)
			for i := range want {
				same(t, want[i], got[i])
			}
			same(t, data, contents(t, packed))
			copied, err := packed.CopyToDevice(0)
			if err != nil {
				t.Fatal(err)
			}
			same(t, want[1], execute(t, e, copied, at)[1])
		}
	}
}

func execute(t *testing.T, e compute.Executable, in ...compute.Buffer) (out [][]float32) {
	t.Helper()
	buffers, err := e.Execute(in, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range buffers {
		out = append(out, contents(t, b))
	}
	return out
}

func contents(t *testing.T, b compute.Buffer) []float32 {
	t.Helper()
	s, err := b.Shape()
	if err != nil {
		t.Fatal(err)
	}
	data := make([]float32, s.Size())
	if err := b.ToFlatData(data); err != nil {
		t.Fatal(err)
	}
	return data
}

func same(t *testing.T, want, got []float32) {
	t.Helper()
	if len(want) != len(got) {
		t.Fatalf("%d numbers, want %d", len(got), len(want))
	}
	for i := range want {
		if math.Float32bits(want[i]) != math.Float32bits(got[i]) {
			t.Fatalf("number %d is %v, want %v", i, got[i], want[i])
		}
	}
}

// TestPack_Refused: a packed matrix that a graph reads in another way is an error that names it.
func TestPack_Refused(t *testing.T) {
	d := newDevice(t, 2)
	plain, packed, _ := packedMatrix(t, d, 40, 50)
	at, err := d.BufferFromFlatData(0, []int32{1, 2}, shapes.Make(dtypes.Int32, 2, 1))
	if err != nil {
		t.Fatal(err)
	}
	must := valueOf(t)
	for name, use := range map[string]func(f compute.Function, w compute.Value) compute.Value{
		"returned": func(_ compute.Function, w compute.Value) compute.Value { return w },
		"negated":  func(f compute.Function, w compute.Value) compute.Value { return must(f.Neg(w)) },
		"sliced": func(f compute.Function, w compute.Value) compute.Value {
			return must(f.Slice(w, []int{1, 0}, []int{3, 50}, []int{1, 1}))
		},
		"on the left": func(f compute.Function, w compute.Value) compute.Value {
			return must(f.DotGeneral(w, []int{1}, nil, w, []int{1}, nil, compute.DotGeneralConfig{}))
		},
		"a part of a matmul": func(f compute.Function, w compute.Value) compute.Value {
			part := must(f.Slice(w, []int{0, 0}, []int{20, 50}, []int{1, 1}))
			x := must(f.Constant(make([]float32, 50), 1, 50))
			return must(f.DotGeneral(x, []int{1}, nil, part, []int{1}, nil, compute.DotGeneralConfig{}))
		},
		"as another matrix": func(f compute.Function, w compute.Value) compute.Value {
			x := must(f.Constant(make([]float32, 40), 1, 40))
			return must(f.DotGeneral(x, []int{1}, nil, must(f.Reshape(w, 50, 40)), []int{1}, nil, compute.DotGeneralConfig{}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := embedding{dtypes.Float32, 40, 50, 2, use}.compile(t, d)
			if _, err := e.Execute([]compute.Buffer{packed, at}, nil, 0); err == nil || !strings.Contains(err.Error(), `"w"`) {
				t.Errorf("error %v, want one that names the input", err)
			}
			execute(t, e, plain, at)
		})
	}
	e := embedding{dtypes.Float32, 40, 50, 2, nil}.compile(t, d)
	if _, err := e.Execute([]compute.Buffer{packed, at}, []bool{true, false}, 0); err == nil {
		t.Error("a packed matrix was donated")
	}
	if _, err := packed.(*buffer).Data(); err == nil {
		t.Error("the memory of a packed matrix was shown")
	}
	if _, err := d.Pack(shapes.Make(dtypes.Int32, 4, 4), nil); err == nil {
		t.Error("integers were packed")
	}
}

// TestPackQuantized_Memory: a quantized matrix takes the bytes of its blocks, and its numbers are read and copied.
func TestPackQuantized_Memory(t *testing.T) {
	d := newDevice(t, 2)
	const rows, columns = 70, 256
	blocks := make([]byte, ggml.Q4_K.Bytes(rows*columns))
	for i := range blocks {
		blocks[i] = byte(i*7) & 0x3f // no exponent of NaN
	}
	want := make([]float32, rows*columns)
	ggml.Q4_K.Convert(want, blocks)
	row := ggml.Q4_K.Bytes(columns)
	packed, err := d.PackQuantized(ggml.Q4_K, rows, columns, false, func(i int) []byte { return blocks[i*row:][:row] })
	if err != nil {
		t.Fatal(err)
	}
	size, ok := d.QuantizedBytes(ggml.Q4_K, rows, columns)
	if held := packed.(*buffer).mem.Size; !ok || held != size || size > 4*rows*columns/5 {
		t.Errorf("it takes %d bytes, and is said to take %d", held, size)
	}
	copied, err := packed.CopyToDevice(0)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range []compute.Buffer{packed, copied} {
		got := make([]float32, rows*columns)
		if err := b.ToFlatData(got); err != nil || !slices.Equal(got, want) {
			t.Errorf("other numbers, or %v", err)
		}
	}
	if size, ok := d.QuantizedBytes(ggml.F16, rows, 64); !ok || size != 2*96*64 {
		t.Errorf("a matrix of float16 takes %d bytes, want two for each element of whole panels", size)
	}
	if _, ok := d.QuantizedBytes(ggml.Q4_K, rows, 64); ok {
		t.Error("a row is no whole block")
	}
}

// TestPackQuantized_Rounds: with a matrix that has activations rounded, rows are gathered and gradients computed as
// without, and other products are near; so is all with a copy.
// TestPackQuantized_Finite: what is refused is what package ggml says.
func TestPackQuantized_Finite(t *testing.T) {
	d := newDevice(t, 2)
	for _, kind := range []ggml.Type{ggml.MXFP4, ggml.Q4_0, ggml.Q4_1, ggml.Q4_K, ggml.Q6_K, ggml.Q8_0} {
		seen := map[bool]int{}
		for i := range 256 {
			block := make([]byte, kind.Bytes(kind.Block()))
			for at := range block {
				block[at] = byte(i) // the scale, wherever it is
			}
			_, err := d.PackQuantized(kind, 1, kind.Block(), false, func(int) []byte { return block })
			if want := kind.Finite(block); (err == nil) != want {
				t.Errorf("%v of %#x: %v, finite is %v", kind, i, err, want)
			}
			seen[err == nil]++
		}
		if seen[true] == 0 || seen[false] == 0 {
			t.Errorf("%v: %v", kind, seen)
		}
	}
}

func TestPackQuantized_Rounds(t *testing.T) {
	d := newDevice(t, 2)
	const rows, columns = 70, 512
	r := rand.New(rand.NewPCG(1, 2))
	blocks := make([]byte, ggml.Q8_0.Bytes(rows*columns))
	for i := range blocks {
		blocks[i] = byte(r.IntN(256)) & 0x3f // no exponent of NaN
	}
	row := ggml.Q8_0.Bytes(columns)
	buffers := map[string]compute.Buffer{}
	for name, rounds := range map[string]bool{"exact": false, "rounds": true} {
		b, err := d.PackQuantized(ggml.Q8_0, rows, columns, rounds, func(i int) []byte { return blocks[i*row:][:row] })
		if err != nil {
			t.Fatal(err)
		}
		buffers[name] = b
	}
	var err error
	if buffers["copied"], err = buffers["rounds"].CopyToDevice(0); err != nil {
		t.Fatal(err)
	}
	at, err := d.BufferFromFlatData(0, []int32{0, 7, 69}, shapes.Make(dtypes.Int32, 3, 1))
	if err != nil {
		t.Fatal(err)
	}
	e := embedding{dtypes.Float32, rows, columns, 3, nil}.compile(t, d)
	exact, rounded := execute(t, e, buffers["exact"], at), execute(t, e, buffers["rounds"], at)
	for i, x := range execute(t, e, buffers["copied"], at) {
		same(t, rounded[i], x)
	}
	same(t, exact[0], rounded[0])
	if slices.Equal(exact[1], rounded[1]) {
		t.Error("nothing was rounded")
	}
	for i, x := range rounded[1] {
		if diff := math.Abs(float64(x - exact[1][i])); diff > 0.01*math.Abs(float64(exact[1][i])) {
			t.Errorf("product %d is %v, want about %v", i, x, exact[1][i])
		}
	}
	matrix := contents(t, buffers["exact"])
	for i, x := range rounded[2] { // the gradient of what was computed
		want := 0.0
		for j := range rows {
			want += float64(rounded[1][i/columns*rows+j]) * float64(matrix[j*columns+i%columns])
		}
		if math.Abs(float64(x)-want) > 1e-5*math.Abs(want) {
			t.Errorf("gradient %d is %v, want %v", i, x, want)
		}
	}
}
