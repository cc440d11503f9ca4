package cpu

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/goart-dev/art/backend/device/cpu/internal/compile"
	"github.com/goart-dev/art/backend/device/cpu/internal/ir"
)

// masks of attention [rows, width], as functions of row and column.
var masks = map[string]func(i, j, width int) bool{
	"causal":  func(i, j, _ int) bool { return j <= i },
	"late":    func(i, j, width int) bool { return j <= i+width/2 },
	"early":   func(_, j, _ int) bool { return j < 5 },
	"all":     func(_, _, _ int) bool { return true },
	"nothing": func(i, j, width int) bool { return i%3 == 0 && j == width-1 }, // some rows see nothing
	"holes":   func(i, j, _ int) bool { return (i*7+j*5)%11 < 4 },
	"bands":   func(i, j, _ int) bool { return i/40 == j/40 },
}

// attend builds softmax(where(mask, q kᵀ)) v of q [B, H, T, E], k and v [B, H, S, E], mask [T, S].
func attend(q, k, v, mask *graph.Node) (y, p *graph.Node) {
	heads := []int{0, 1}
	scores := graph.DotGeneral(q, []int{3}, heads, k, []int{3}, heads)
	low := graph.Scalar(q.Graph(), dtypes.Float32, -1e30)
	mask = graph.Reshape(mask, 1, 1, q.Shape().Dim(2), k.Shape().Dim(2))
	p = graph.Softmax(graph.Where(graph.BroadcastToDims(mask, scores.Shape().Dimensions...), scores, low), -1)
	return graph.DotGeneral(p, []int{3}, heads, v, []int{2}, heads), p
}

// attendInputs draws the inputs of attend for sizes B, H, T, S, E.
func attendInputs(r *rand.Rand, size [5]int, mask func(i, j, width int) bool) []*tensors.Tensor {
	b, h, n, s, e := size[0], size[1], size[2], size[3], size[4]
	see := make([]bool, n*s)
	for i := range see {
		see[i] = mask(i/s, i%s, s)
	}
	return []*tensors.Tensor{
		normal(r, b, h, n, e), normal(r, b, h, s, e), normal(r, b, h, s, e), tensors.FromFlatDataAndDimensions(see, n, s),
	}
}

// TestAttention_SameBits: attention computed a tile at a time has the bits of its operations one by one, its gradients
// too, for all masks, whatever is returned of what lies between, and for any number of workers.
func TestAttention_SameBits(t *testing.T) {
	const seed = 5
	r := rand.New(rand.NewPCG(seed, 0))
	for name, mask := range masks {
		for _, size := range [][5]int{{1, 1, 1, 1, 1}, {2, 3, 1, 40, 7}, {1, 2, 61, 61, 33}, {2, 2, 70, 19, 8},
			{1, 1, 130, 200, 16}} {
			in := attendInputs(r, size, mask)
			for _, returned := range []string{"values", "probabilities too", "gradients"} {
				build := func(in []*graph.Node) []*graph.Node {
					y, p := attend(in[0], in[1], in[2], in[3])
					switch returned {
					case "values":
						return []*graph.Node{y}
					case "probabilities too":
						return []*graph.Node{y, p}
					}
					return append(graph.Gradient(graph.ReduceAllSum(graph.Mul(y, y)), in[0], in[1], in[2]), y)
				}
				t.Run(fmt.Sprint(name, size, returned), func(t *testing.T) { sameUnfused(t, build, in) })
			}
		}
	}
}

// sameUnfused runs a graph on devices with and without fusion, and with different numbers of workers.
func sameUnfused(t *testing.T, build func(in []*graph.Node) []*graph.Node, in []*tensors.Tensor) {
	t.Helper()
	plain := newDevice(t, 1)
	plain.unfused = true
	want := evaluate(t, plain, build, in)
	for _, workers := range []int{1, 3} {
		got := evaluate(t, newDevice(t, workers), build, in)
		for i := range want {
			same(t, want[i], got[i])
		}
	}
}

func evaluate(t *testing.T, d compute.Backend, build func(in []*graph.Node) []*graph.Node,
	in []*tensors.Tensor) (values [][]float32) {
	t.Helper()
	exec, err := graph.NewExec(d, build)
	if err != nil {
		t.Fatal(err)
	}
	defer exec.Finalize()
	var args []any
	for _, x := range in {
		own, err := x.LocalClone() // a tensor belongs to one device
		if err != nil {
			t.Fatal(err)
		}
		args = append(args, own)
	}
	out, err := exec.Call(args...)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range out {
		v, err := tensors.CopyFlatData[float32](x)
		if err != nil {
			t.Fatal(err)
		}
		values = append(values, v)
	}
	return values
}

func normal(r *rand.Rand, dims ...int) *tensors.Tensor {
	x := make([]float32, ir.Volume(dims))
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	return tensors.FromFlatDataAndDimensions(x, dims...)
}

// TestAttention_WideSameBits: a log-softmax of which one number a row is kept, and the matmul of its probabilities,
// over rows so long that workers share a tile.
func TestAttention_WideSameBits(t *testing.T) {
	if testing.Short() {
		t.Skip("two matmuls with a large matrix on one core without fusion")
	}
	r := rand.New(rand.NewPCG(6, 0))
	const n, d, v = 30, 24, compile.WideRow + 37
	build := func(in []*graph.Node) []*graph.Node {
		z := graph.DotGeneral(in[0], []int{1}, nil, in[1], []int{1}, nil)
		p := graph.Softmax(z, -1)
		return []*graph.Node{graph.ReduceSum(graph.Log(p), -1), graph.DotGeneral(p, []int{1}, nil, in[1], []int{0}, nil)}
	}
	sameUnfused(t, build, []*tensors.Tensor{normal(r, n, d), normal(r, v, d)})
}

// TestAttention_Gathered: keys and values that are gathered are read where they lie, wherever the positions point, and
// also when others read what was gathered.
func TestAttention_Gathered(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 0))
	const slots, rows, heads, queries, keys, size = 5, 4, 2, 3, 21, 8
	see := make([]bool, queries*keys)
	for i := range see {
		see[i] = i%keys < 9+i/keys
	}
	for name, at := range map[string][]int32{"each once": {3, 0, 4, 1}, "twice": {2, 2, 0, 2}, "outside": {-3, 99, 1, 5}} {
		for _, also := range []bool{false, true} {
			build := func(in []*graph.Node) []*graph.Node {
				k, v := graph.Gather(in[1], in[4]), graph.Gather(in[2], in[4])
				y, _ := attend(in[0], k, v, in[3])
				if also {
					return []*graph.Node{y, graph.Neg(v)}
				}
				return []*graph.Node{y}
			}
			in := []*tensors.Tensor{
				normal(r, rows, heads, queries, size), normal(r, slots, heads, keys, size), normal(r, slots, heads, keys, size),
				tensors.FromFlatDataAndDimensions(see, queries, keys), tensors.FromFlatDataAndDimensions(at, rows, 1),
			}
			t.Run(fmt.Sprint(name, also), func(t *testing.T) { sameUnfused(t, build, in) })
		}
	}
}

// paged builds [B, H, M*N, E] of pages [H, P, N, E], of which row b has those with the numbers table [B, M].
func paged(pages, table *graph.Node) *graph.Node {
	g, d := table.Graph(), pages.Shape().Dimensions
	b, m := table.Shape().Dim(0), table.Shape().Dim(1)
	shape := shapes.Make(dtypes.Int32, b, d[0], m)
	first := graph.MulScalar(graph.Iota(g, shape, 1), int32(d[1]))
	at := graph.Add(first, graph.BroadcastToDims(graph.Reshape(table, b, 1, m), shape.Dimensions...))
	x := graph.Gather(graph.Reshape(pages, d[0]*d[1], d[2], d[3]), graph.Reshape(at, b*d[0]*m, 1))
	return graph.Reshape(x, b, d[0], m*d[2], d[3])
}

// TestAttention_PagedSameBits: keys and values whose pages are anywhere have the bits of those in one place, also where
// sequences begin with the same pages, and where pages begin or end fixed blocks of sums.
func TestAttention_PagedSameBits(t *testing.T) {
	const heads, size = 2, 24
	for seed := range uint64(24) {
		r := rand.New(rand.NewPCG(seed, 8))
		b, queries, each := 1+r.IntN(7), []int{1, 1, 3, 40}[r.IntN(4)], []int{8, 32}[r.IntN(2)]
		m := []int{3, 9, 1200 / each, 1200 / each}[r.IntN(4)]
		pages, width := 1+b*m, m*each
		queries = min(queries, width)
		table, see := make([]int32, b*m), make([]bool, b*queries*width)
		order, shared := r.Perm(pages), r.IntN(m+1)
		if seed%3 == 0 { // most pages follow one another
			for i := range order {
				order[i] = i
			}
		}
		for i := range b {
			length := queries + r.IntN(width-queries+1)
			for j := range m {
				if table[i*m+j] = int32(order[i*m+j]); j < shared && i%3 > 0 {
					table[i*m+j] = int32(order[j])
				}
			}
			for q := range queries {
				for s := range length - queries + q + 1 {
					see[(i*queries+q)*width+s] = true
				}
			}
		}
		build := func(in []*graph.Node) []*graph.Node {
			two := []int{0, 1}
			k, v := paged(in[1], in[4]), paged(in[2], in[4])
			scores := graph.DotGeneral(in[0], []int{3}, two, k, []int{3}, two)
			mask := graph.BroadcastToDims(graph.Reshape(in[3], b, 1, queries, width), scores.Shape().Dimensions...)
			low := graph.BroadcastToDims(graph.Scalar(in[0].Graph(), dtypes.Float32, -1e30), scores.Shape().Dimensions...)
			p := graph.Softmax(graph.Where(mask, scores, low), -1)
			return []*graph.Node{graph.DotGeneral(p, []int{3}, two, v, []int{2}, two)}
		}
		in := []*tensors.Tensor{
			normal(r, b, heads, queries, size), normal(r, heads, pages, each, size), normal(r, heads, pages, each, size),
			tensors.FromFlatDataAndDimensions(see, b, queries, width), tensors.FromFlatDataAndDimensions(table, b, m),
		}
		t.Run(fmt.Sprintf("seed %d: %d rows of %d queries, %d pages of %d, %d shared", seed, b, queries, m, each, shared),
			func(t *testing.T) { sameUnfused(t, build, in) })
	}
}

// TestScatter_Replaces: minus infinity as the lower value, and then the greater one, replace what was there.
func TestScatter_Replaces(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 0))
	x, updates := normal(r, 7, 5), normal(r, 3, 5)
	build := func(in []*graph.Node) []*graph.Node {
		low := graph.BroadcastToDims(graph.Const(in[0].Graph(), float32(math.Inf(-1))), 3, 5)
		return []*graph.Node{graph.ScatterMax(graph.ScatterMin(in[0], in[1], low, false, true), in[1], in[2], false, true)}
	}
	got := evaluate(t, newDevice(t, 1), build,
		[]*tensors.Tensor{x, tensors.FromFlatDataAndDimensions([]int32{4, 0, 6}, 3, 1), updates})[0]
	want, from := tensors.MustCopyFlatData[float32](x), tensors.MustCopyFlatData[float32](updates)
	for i, row := range []int{4, 0, 6} {
		copy(want[row*5:], from[i*5:i*5+5])
	}
	same(t, want, got)
}
