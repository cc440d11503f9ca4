package cpu

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/goart-dev/art/backend/device/cpu/internal/ir"
	"github.com/goart-dev/art/internal/graphx"
)

// deltaInputs draws the operands of the gated delta rule: B, T, G, H, K, V, and a number of slots, 0 for none.
func deltaInputs(r *rand.Rand, size [6]int, slots int) []*tensors.Tensor {
	b, t, groups, h, k, v := size[0], size[1], size[2], size[3], size[4], size[5]
	count, from, to := make([]int32, b), make([]int32, b), make([]int32, b)
	for i := range b {
		count[i], from[i], to[i] = int32(r.IntN(t+1)), int32(r.IntN(max(1, slots-b))), int32(max(0, slots-b)+i)
	}
	integers := func(x []int32) *tensors.Tensor { return tensors.FromFlatDataAndDimensions(x, b) }
	list := []*tensors.Tensor{
		normal(r, b, t, groups, k), normal(r, b, t, groups, k), normal(r, b, t, h, v), normal(r, b, t, h), normal(r, b, t, h),
		integers(count),
	}
	if slots == 0 {
		return append(list, normal(r, b, h, k, v))
	}
	return append(list, normal(r, slots, h, k, v), integers(from), integers(to))
}

// deltaRule builds the rule of operands that were drawn: keys become short, and decays and rates less than 1.
func deltaRule(in []*graph.Node) []*graph.Node {
	in = append([]*graph.Node{}, in...)
	in[1], in[3], in[4] = graph.MulScalar(in[1], 0.3), graph.Sigmoid(in[3]), graph.Sigmoid(in[4])
	return graphx.Operation(ir.DeltaRuleName, []shapes.Shape{in[2].Shape(), in[6].Shape()}, in...)
}

// TestDeltaRule_SameBits: the rule and its gradient have the same bits for any number of workers, and for operands that
// are views: slices, transposed, broadcast.
func TestDeltaRule_SameBits(t *testing.T) {
	const seed = 11
	r := rand.New(rand.NewPCG(seed, 0))
	for _, size := range [][6]int{{1, 1, 1, 1, 1, 1}, {3, 5, 2, 4, 3, 7}, {2, 70, 1, 3, 16, 40}} {
		for _, slots := range []int{0, 7} {
			sameUnfused(t, deltaRule, deltaInputs(r, size, slots))
		}
		in := deltaInputs(r, size, 0)
		plain := evaluate(t, newDevice(t, 2), deltaRule, in)
		viewed := evaluate(t, newDevice(t, 2), func(in []*graph.Node) []*graph.Node {
			list := append([]*graph.Node{}, in...)
			for i, x := range in[:3] { // the elements of a head do not lie together
				list[i] = graph.TransposeAllAxes(graph.Identity(graph.Mul(graph.TransposeAllAxes(x, 3, 1, 0, 2),
					graph.OnesLike(graph.TransposeAllAxes(x, 3, 1, 0, 2)))), 2, 1, 3, 0)
			}
			list[6] = graph.TransposeAllAxes(graph.Mul(graph.TransposeAllAxes(in[6], 0, 1, 3, 2),
				graph.OnesLike(graph.TransposeAllAxes(in[6], 0, 1, 3, 2))), 0, 1, 3, 2)
			return deltaRule(list)
		}, in)
		for i := range plain {
			same(t, plain[i], viewed[i])
		}
		gradient := func(in []*graph.Node) []*graph.Node {
			y := deltaRule(in)
			d := in[2].Shape().Dimensions
			keys := shapes.Make(dtypes.Float32, d[0], d[1], d[2], in[1].Shape().Dim(3))
			results := []shapes.Shape{keys, keys, in[2].Shape(), in[3].Shape(), in[3].Shape(), in[6].Shape()}
			return graphx.Operation(ir.DeltaRuleGradientName, results, append(append([]*graph.Node{}, in...), y...)...)
		}
		sameUnfused(t, gradient, in)
	}
}

// TestDeltaRule_InPlace: slots that are donated are written where they are, and others stay as they were.
func TestDeltaRule_InPlace(t *testing.T) {
	r := rand.New(rand.NewPCG(12, 0))
	d := newDevice(t, 2)
	in := deltaInputs(r, [6]int{2, 4, 1, 2, 3, 5}, 6)
	want := evaluate(t, d, deltaRule, in)
	inputs, list, donate := make([]any, len(in)), make([]compute.Buffer, len(in)), make([]bool, len(in))
	sizes := make([]shapes.Shape, len(in))
	for i, x := range in {
		inputs[i], sizes[i] = x, x.Shape()
	}
	run, err := graphx.Compile(d, deltaRule, sizes)
	if err != nil {
		t.Fatal(err)
	}
	before, err := tensors.CopyFlatData[float32](in[6])
	if err != nil {
		t.Fatal(err)
	}
	for i, x := range in {
		if list[i], err = x.Buffer(d, 0); err != nil {
			t.Fatal(err)
		}
	}
	donate[6] = true
	old, err := list[6].Data()
	if err != nil {
		t.Fatal(err)
	}
	out, err := run.Execute(list, donate, 0)
	if err != nil {
		t.Fatal(err)
	}
	now, err := out[1].Data()
	if err != nil {
		t.Fatal(err)
	}
	if &old.([]float32)[0] != &now.([]float32)[0] {
		t.Error("the slots were copied")
	}
	same(t, want[1], now.([]float32))
	for slot := range 4 { // those that no row writes
		same(t, before[slot*30:][:30], now.([]float32)[slot*30:][:30])
	}
}

// TestDeltaRule_Errors: what does not fit is refused when the graph is built, and a slot that is missing when it runs.
func TestDeltaRule_Errors(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 0))
	d := newDevice(t, 1)
	in := deltaInputs(r, [6]int{2, 4, 1, 2, 3, 5}, 6)
	for i := range in {
		err := graphx.Try(func() {
			graph.NewGraph(d, "wrong").Finalize()
			g := graph.NewGraph(d, "wrong")
			list := make([]*graph.Node, len(in))
			for k, x := range in {
				dims := append([]int{}, x.Shape().Dimensions...)
				if k == i {
					dims[len(dims)-1] += 2
				}
				list[k] = graph.Parameter(g, string(rune('a'+k)), shapes.Make(x.DType(), dims...))
			}
			graphx.Operation(ir.DeltaRuleName, []shapes.Shape{in[2].Shape(), in[6].Shape()}, list...)
		})
		if err == nil {
			t.Errorf("operand %d of another size is no error", i)
		}
	}
	if d.HasOperation("softmax") || !d.HasOperation(ir.DeltaRuleName) {
		t.Error("HasOperation does not say what there is")
	}
	bad := append([]*tensors.Tensor{}, in...)
	bad[8] = tensors.FromFlatDataAndDimensions([]int32{5, 6}, 2)
	exec := graph.MustNewExec(d, deltaRule)
	args := make([]any, len(bad))
	for i, x := range bad {
		args[i] = x
	}
	if _, err := exec.Call(args...); err == nil {
		t.Error("slot 6 of 6 is no error")
	}
}

// TestDeltaRule_WorkBytes: what a run takes is known.
func TestDeltaRule_WorkBytes(t *testing.T) {
	var sizes []shapes.Shape
	for _, x := range deltaInputs(rand.New(rand.NewPCG(14, 0)), [6]int{1, 100, 1, 2, 64, 64}, 0) {
		sizes = append(sizes, x.Shape())
	}
	work := func(workers int) int64 {
		n, err := graphx.WorkOfGraph(newDevice(t, workers), deltaRule, sizes)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if got := float64(work(3) - work(1)); math.Abs(got-2*4*64*32) > 2*4096 {
		t.Errorf("two more workers take %v bytes, want about the blocks of two states", got)
	}
}
