package cpu

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/goart-dev/art/backend/device/cpu/internal/ir"
	"github.com/goart-dev/art/internal/ggml"
)

// chosen is a graph of tokens [t, k] that have chosen experts [rows, columns], each an input: y [t, k, rows] of x
// [t, 1, columns], which all choices of a token share, and z [t, k, columns] of y.
type chosen struct {
	dtype                  dtypes.DType
	t, k                   int
	experts, rows, columns int
}

var plainDot = compute.DotGeneralConfig{}

func (c chosen) compile(t *testing.T, d *Device) compute.Executable {
	t.Helper()
	b := d.Builder("chosen")
	f := b.Main()
	must := valueOf(t)
	x := must(f.Parameter("x", shapes.Make(dtypes.Float32, c.t, c.columns), nil))
	ids := must(f.Parameter("ids", shapes.Make(dtypes.Int32, c.t, c.k, 1), nil))
	var all []compute.Value
	for e := range c.experts {
		w := must(f.Parameter(fmt.Sprint("w", e), shapes.Make(c.dtype, c.rows, c.columns), nil))
		all = append(all, must(f.Reshape(must(f.ConvertDType(w, dtypes.Float32)), 1, c.rows, c.columns)))
	}
	w := must(f.Concatenate(0, all...))
	w = must(f.Gather(w, ids, 2, []int{2, 3}, []int{0}, []int{0}, []int{1, c.rows, c.columns}, false))
	x = must(f.BroadcastInDim(x, shapes.Make(dtypes.Float32, c.t, c.k, c.columns), []int{0, 2}))
	batch := []int{0, 1}
	y := must(f.DotGeneral(x, []int{2}, batch, w, []int{3}, batch, plainDot))
	z := must(f.DotGeneral(y, []int{2}, batch, w, []int{2}, batch, plainDot))
	if err := f.Return([]compute.Value{y, z}, nil); err != nil {
		t.Fatal(err)
	}
	e, err := b.Compile()
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// alone is the products of all rows x [n, columns] and y [n, rows] with one expert.
func (c chosen) alone(t *testing.T, d *Device, w compute.Buffer, x, y []float32) (xw, yw []float32) {
	t.Helper()
	b := d.Builder("alone")
	f := b.Main()
	must := valueOf(t)
	v := must(f.Parameter("w", shapes.Make(c.dtype, c.rows, c.columns), nil))
	v = must(f.ConvertDType(v, dtypes.Float32))
	first := must(f.Parameter("x", shapes.Make(dtypes.Float32, len(x)/c.columns, c.columns), nil))
	second := must(f.Parameter("y", shapes.Make(dtypes.Float32, len(y)/c.rows, c.rows), nil))
	out := []compute.Value{must(f.DotGeneral(first, []int{1}, nil, v, []int{1}, nil, plainDot)),
		must(f.DotGeneral(second, []int{1}, nil, v, []int{0}, nil, plainDot))}
	if err := f.Return(out, nil); err != nil {
		t.Fatal(err)
	}
	e, err := b.Compile()
	if err != nil {
		t.Fatal(err)
	}
	in := []compute.Buffer{w, floatBuffer(t, d, x, c.columns), floatBuffer(t, d, y, c.rows)}
	results := execute(t, e, in...)
	return results[0], results[1]
}

func floatBuffer(t *testing.T, d *Device, x []float32, columns int) compute.Buffer {
	t.Helper()
	b, err := d.BufferFromFlatData(0, x, shapes.Make(dtypes.Float32, len(x)/columns, columns))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// heldExpert returns an expert as a buffer of one of the kinds that hold matrices.
func heldExpert(t *testing.T, d *Device, r *rand.Rand, kind string, c chosen) compute.Buffer {
	t.Helper()
	shape := shapes.Make(c.dtype, c.rows, c.columns)
	random := func(dst []float32, _ int) {
		for i := range dst {
			dst[i] = float32(r.NormFloat64())
		}
	}
	var b compute.Buffer
	var err error
	switch kind {
	case "rows first":
		data := make([]float32, c.rows*c.columns)
		random(data, 0)
		b, err = d.BufferFromFlatData(0, data, shape)
	case "packed", "bfloat16":
		data := make([]float32, c.rows*c.columns)
		random(data, 0)
		b, err = d.Pack(shape, func(dst []float32, first int) { copy(dst, data[first*c.columns:]) })
	default:
		ty := map[string]ggml.Type{"Q4_K": ggml.Q4_K, "Q8_0": ggml.Q8_0, "MXFP4": ggml.MXFP4, "rounded": ggml.Q8_0}[kind]
		blocks := make([]byte, ty.Bytes(c.rows*c.columns))
		for i := range blocks {
			blocks[i] = byte(r.IntN(256)) & 0x3f // no exponent of NaN
		}
		row := ty.Bytes(c.columns)
		b, err = d.PackQuantized(ty, c.rows, c.columns, kind == "rounded", func(i int) []byte { return blocks[i*row:][:row] })
	}
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// choices are how tokens choose experts.
var choices = map[string]func(r *rand.Rand, experts int) int{
	"the same": func(*rand.Rand, int) int { return 1 },
	"any":      func(r *rand.Rand, experts int) int { return r.IntN(experts) },
	"two":      func(r *rand.Rand, experts int) int { return r.IntN(2) * (experts - 1) },
	"outside":  func(r *rand.Rand, experts int) int { return r.IntN(3*experts) - experts }, // as a gather: the nearest
}

// TestGrouped_SameBits: a row times the expert that it chose has the bits of a product of that expert with many rows,
// in both directions, however the expert is held, whatever the others choose, and however many workers there are. No
// expert is copied: that would be the most of what a run needs.
func TestGrouped_SameBits(t *testing.T) {
	const seed = 20
	r := rand.New(rand.NewPCG(seed, 0))
	counts := []int{1, 3, 30, 200}
	if testing.Short() { // without kernels of the processor it takes a minute
		counts = counts[:3]
	}
	for _, kind := range []string{"rows first", "packed", "bfloat16", "Q4_K", "Q8_0", "MXFP4", "rounded"} {
		for name, choose := range choices {
			for i, tokens := range counts {
				c := chosen{dtypes.Float32, tokens, 1 + i%3, 3 + r.IntN(20), 256 * (1 + i%2), 256 * (1 + r.IntN(2))}
				if kind == "bfloat16" {
					c.dtype = dtypes.BFloat16
				}
				if kind == "rows first" || kind == "packed" {
					c.rows, c.columns = 1+r.IntN(300), 1+r.IntN(600)
				}
				t.Run(fmt.Sprint(kind, name, tokens), func(t *testing.T) {
					c.check(t, newDevice(t, 1+i), r, kind, func() int { return choose(r, c.experts) })
				})
			}
		}
	}
}

// check compares the products with those of each expert alone.
func (c chosen) check(t *testing.T, d *Device, r *rand.Rand, kind string, choose func() int) {
	t.Helper()
	x := make([]float32, c.t*c.columns)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	ids := make([]int32, c.t*c.k)
	for i := range ids {
		ids[i] = int32(choose())
	}
	at, err := d.BufferFromFlatData(0, ids, shapes.Make(dtypes.Int32, c.t, c.k, 1))
	if err != nil {
		t.Fatal(err)
	}
	in := []compute.Buffer{floatBuffer(t, d, x, c.columns), at}
	for range c.experts {
		in = append(in, heldExpert(t, d, r, kind, c))
	}
	e := c.compile(t, d)
	got := execute(t, e, in...)
	for w := range c.experts {
		xw, yw := c.alone(t, d, in[2+w], x, got[0])
		for i, id := range ids {
			if min(max(int(id), 0), c.experts-1) == w {
				same(t, xw[i/c.k*c.rows:][:c.rows], got[0][i*c.rows:][:c.rows])
				same(t, yw[i*c.columns:][:c.columns], got[1][i*c.columns:][:c.columns])
			}
		}
	}
	if most, copied := e.(*executable).WorkBytes(), 4*c.experts*c.rows*c.columns; c.t == 1 && most > copied {
		t.Errorf("a run takes %d bytes, as many as a copy of all experts", most)
	}
}

// choose builds products of rows [t, k, columns] with matrices that are gathered out of w [experts, rows, columns], in
// both directions, and the gradient of w.
func choose(x, w, ids *graph.Node) []*graph.Node {
	d := x.Shape().Dimensions
	rows, columns, batch := w.Shape().Dim(1), w.Shape().Dim(2), []int{0, 1}
	each := graph.Gather(w, graph.ExpandAxes(ids, -1))
	y := graph.DotGeneral(x, []int{2}, batch, each, []int{3}, batch)
	z := graph.DotGeneral(y, []int{2}, batch, each, []int{2}, batch)
	outer := graph.DotGeneral(y, nil, batch, x, nil, batch)
	outer.AssertDims(d[0], d[1], rows, columns)
	dw := graph.Scatter(graph.ExpandAxes(ids, -1), outer, w.Shape(), false, false)
	return []*graph.Node{y, z, dw}
}

// TestGrouped_Unfused: matrices in one tensor, as views of it too, are multiplied with the bits of a gather of all of
// them and a matmul of each row; their gradient is that of a scatter, but for the rounding of sums.
func TestGrouped_Unfused(t *testing.T) {
	r := rand.New(rand.NewPCG(21, 0))
	for _, size := range [][5]int{{1, 1, 1, 1, 1}, {1, 3, 5, 8, 70}, {40, 2, 3, 17, 9}, {300, 4, 2, 5, 33}} {
		tokens, k, experts, rows, columns := size[0], size[1], size[2], size[3], size[4]
		ids := make([]int32, tokens*k)
		for i := range ids {
			ids[i] = int32(r.IntN(max(1, experts-1))) // the last one has no rows
		}
		in := []*tensors.Tensor{normal(r, tokens, k, columns), normal(r, experts, columns, rows),
			tensors.FromFlatDataAndDimensions(ids, tokens, k)}
		build := func(in []*graph.Node) []*graph.Node {
			return choose(in[0], graph.TransposeAllAxes(in[1], 0, 2, 1), in[2])
		}
		plain := newDevice(t, 1)
		plain.unfused = true
		want := evaluate(t, plain, build, in)
		for _, workers := range []int{1, 3} {
			got := evaluate(t, newDevice(t, workers), build, in)
			same(t, want[0], got[0])
			same(t, want[1], got[1])
			near(t, want[2], got[2], 1e-5*math.Sqrt(float64(tokens)))
		}
	}
}

// near fails where numbers differ by more than some part of the largest one.
func near(t *testing.T, want, got []float32, most float64) {
	t.Helper()
	largest := 0.0
	for _, x := range want {
		largest = max(largest, math.Abs(float64(x)))
	}
	for i, x := range want {
		if diff := math.Abs(float64(x) - float64(got[i])); !(diff <= most*largest) {
			t.Fatalf("number %d is %v, want %v", i, got[i], x)
		}
	}
}

// TestGrouped_GradientInChunks: the gradient of a matrix with more rows than are copied at once is a matmul over all of
// them, to the bit; that of one without rows is zero.
func TestGrouped_GradientInChunks(t *testing.T) {
	const tokens, columns, rows, experts = 1300, 8192, 2, 3
	r := rand.New(rand.NewPCG(22, 0))
	ids := make([]int32, tokens)
	for i := range ids {
		ids[i] = int32(r.IntN(20) / 19 * 2) // mostly 0, some 2
	}
	in := []*tensors.Tensor{normal(r, tokens, columns), normal(r, tokens, rows),
		tensors.FromFlatDataAndDimensions(ids, tokens)}
	got := evaluate(t, newDevice(t, 3), func(in []*graph.Node) []*graph.Node {
		outer := graph.DotGeneral(in[1], nil, []int{0}, in[0], nil, []int{0})
		all := shapes.Make(dtypes.Float32, experts, rows, columns)
		dw := graph.Scatter(graph.ExpandAxes(in[2], -1), outer, all, false, false)
		list := []*graph.Node{dw}
		for e := range experts {
			var mine []int32
			for i, id := range ids {
				if int(id) == e {
					mine = append(mine, int32(i))
				}
			}
			if len(mine) == 0 {
				list = append(list, graph.Zeros(in[0].Graph(), shapes.Make(dtypes.Float32, rows, columns)))
				continue
			}
			at := graph.ExpandAxes(graph.Const(in[0].Graph(), mine), -1)
			y, x := graph.Gather(in[1], at), graph.Gather(in[0], at)
			list = append(list, graph.Dot(y, x).General([]int{0}, nil, []int{0}, nil))
		}
		return list
	}, in)
	for e := range experts {
		same(t, got[1+e], got[0][e*rows*columns:][:rows*columns])
	}
}

// TestGrouped_Others: matmuls with gathered matrices that are something else are what they were.
func TestGrouped_Others(t *testing.T) {
	r := rand.New(rand.NewPCG(23, 0))
	ids := tensors.FromFlatDataAndDimensions([]int32{1, 0, 2}, 3)
	in := []*tensors.Tensor{normal(r, 3, 4), normal(r, 3, 5, 4), ids, normal(r, 3, 2, 4)}
	build := func(in []*graph.Node) []*graph.Node {
		x, w, several := in[0], in[1], in[3]
		at := graph.ExpandAxes(in[2], -1)
		each, one := graph.Gather(w, at), []int{0}
		outer := graph.DotGeneral(x, nil, one, x, nil, one)
		full := graph.OnesLike(graph.Zeros(x.Graph(), shapes.Make(dtypes.Float32, 3, 4, 4)))
		return []*graph.Node{
			graph.DotGeneral(several, []int{2}, one, each, []int{2}, one), // several rows for each matrix
			graph.DotGeneral(each, []int{2}, one, x, []int{1}, one),       // on the left
			graph.DotGeneral(x, []int{1}, nil, each, []int{2}, nil),       // all rows with all matrices
			graph.ScatterSum(full, at, outer, false, false),               // into what is not zero
			graph.DotGeneral(x, []int{1}, one, graph.GatherSlices(w, []int{0}, at, []int{1}, false), []int{3}, one),
		}
	}
	sameUnfused(t, build, in)
	if steps := groupedSteps(t, build, in); steps != 0 {
		t.Errorf("%d grouped steps, want none", steps)
	}
	steps := groupedSteps(t, func(in []*graph.Node) []*graph.Node { return choose(in[3], in[1], in[4]) },
		append(in, tensors.FromFlatDataAndDimensions([]int32{1, 0, 2, 2, 0, 1}, 3, 2)))
	if steps != 3 {
		t.Errorf("%d grouped steps, want 3", steps)
	}
}

// groupedSteps counts the grouped steps of a graph, and looks that there is no gather and no scatter beside them.
func groupedSteps(t *testing.T, build func(in []*graph.Node) []*graph.Node, in []*tensors.Tensor) (n int) {
	t.Helper()
	s := &spy{Device: newDevice(t, 2)}
	evaluate(t, s, build, in)
	last := s.plans[len(s.plans)-1]
	for _, step := range last.Steps {
		switch step.(type) {
		case *ir.Grouped, *ir.GroupedOuter:
			n++
		}
	}
	if text := last.String(); n > 0 && (strings.Contains(text, " gather ") || strings.Contains(text, " scatter ")) {
		t.Errorf("a gather or a scatter is left:\n%s", text)
	}
	return n
}

// TestGrouped_Packable: experts may be packed where they are chosen from, and not where they are read as they are too.
func TestGrouped_Packable(t *testing.T) {
	d := newDevice(t, 2)
	c := chosen{dtypes.Float32, 2, 2, 3, 40, 50}
	p := c.compile(t, d).(*executable).plan
	for _, in := range p.Inputs[2:] {
		if !in.Packable {
			t.Errorf("%s may not be packed", in.Name)
		}
	}
	if slices.ContainsFunc(p.Inputs[:2], func(in ir.Input) bool { return in.Packable && in.Name == "ids" }) {
		t.Error("ids may be packed")
	}
	if p.Inputs[0].Packable {
		t.Error("rows may be packed")
	}
}
