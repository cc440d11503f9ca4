package model

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/internal/graphx/graphtest"
)

// groupedCase is rows of n tokens with k choices of x matrices [out, in].
type groupedCase struct {
	n, k, x, out, in int
	ids              []int32
	rows, dy, w      []float32
}

// choosing are how rows choose matrices: any, all the same, or all but the last one in turns.
var choosing = map[string]func(rng *rand.Rand, i, x int) int{
	"any":   func(rng *rand.Rand, _, x int) int { return rng.IntN(x) },
	"same":  func(_ *rand.Rand, _, x int) int { return x / 2 },
	"turns": func(_ *rand.Rand, i, x int) int { return i % max(1, x-1) },
}

// newGroupedCase is random; size is n, k, x, out and in.
func newGroupedCase(rng *rand.Rand, choose func(rng *rand.Rand, i, x int) int, size [5]int) groupedCase {
	c := groupedCase{n: size[0], k: size[1], x: size[2], out: size[3], in: size[4]}
	for i := range c.n * c.k {
		c.ids = append(c.ids, int32(choose(rng, i, c.x)))
	}
	draw := func(n int) []float32 {
		list := make([]float32, n)
		for i := range list {
			list[i] = float32(rng.NormFloat64())
		}
		return list
	}
	c.rows, c.dy, c.w = draw(c.n*c.k*c.in), draw(c.n*c.k*c.out), draw(c.x*c.out*c.in)
	return c
}

// want is the products and the gradients of rows and matrices in float64.
func (c groupedCase) want() (y, dx, dw []float64) {
	y, dx, dw = make([]float64, len(c.dy)), make([]float64, len(c.rows)), make([]float64, len(c.w))
	for i, id := range c.ids {
		for o := range c.out {
			for j := range c.in {
				at := (int(id)*c.out+o)*c.in + j
				x, dy := float64(c.rows[i*c.in+j]), float64(c.dy[i*c.out+o])
				y[i*c.out+o] += float64(c.w[at]) * x
				dx[i*c.in+j] += float64(c.w[at]) * dy
				dw[at] += dy * x
			}
		}
	}
	return y, dx, dw
}

// run runs a product of the case, and its gradients.
func (c groupedCase) run(t *testing.T, product func(x, w, ids *Node) *Node) [][]float32 {
	t.Helper()
	out := graphtest.Run(t, graphtest.Device(t), func(in []*Node) []*Node {
		y := product(in[0], in[1], in[3])
		return append([]*Node{y}, Gradient(ReduceAllSum(Mul(y, in[2])), in[0], in[1])...)
	}, graphtest.Tensor(c.rows, c.n, c.k, c.in), graphtest.Tensor(c.w, c.x, c.out, c.in),
		graphtest.Tensor(c.dy, c.n, c.k, c.out), tensors.FromFlatDataAndDimensions(c.ids, c.n, c.k))
	var values [][]float32
	for _, x := range out {
		values = append(values, graphtest.Values[float32](t, x))
	}
	return values
}

// TestGrouped_Definition: products with the matrices of rows, and the gradients of both, are those of the formulas in
// float64, as devices gather matrices and in blocks, whatever the rows choose.
func TestGrouped_Definition(t *testing.T) {
	rng := rand.New(rand.NewPCG(seed, 90))
	forms := map[string]func(x, w, ids *Node) *Node{
		"device": func(x, w, ids *Node) *Node { return grouped(x, matrix{w: w}, ids) },
		"blocks": func(x, w, ids *Node) *Node { return groupedBy(newBlocks(matrix{w: w}, ids), x, matrix{w: w}) },
	}
	for name, choose := range choosing {
		for _, size := range [][5]int{
			{1, 1, 1, 1, 1}, {1, 8, 9, 5, 7}, {5, 2, 3, 16, 33}, {40, 4, 3, 6, 9}, {130, 8, 2, 3, 4},
		} {
			c := newGroupedCase(rng, choose, size)
			y, dx, dw := c.want()
			for form, build := range forms {
				got := c.run(t, build)
				for i, want := range [][]float64{y, dx, dw} {
					for j := range want {
						require.InDelta(t, want[j], got[i][j], 2e-5*math.Sqrt(float64(max(c.in, c.out, c.n))),
							"%s, %v, %s, output %d, number %d, seed %d", name, size, form, i, j, seed)
					}
				}
			}
		}
	}
}

// TestGrouped_RowsAlone: the product of a row has the same bits whatever the rows beside it, their order and what they
// choose.
func TestGrouped_RowsAlone(t *testing.T) {
	rng := rand.New(rand.NewPCG(seed, 91))
	c := newGroupedCase(rng, choosing["any"], [5]int{60, 3, 7, 40, 600})
	build := func(x, w, ids *Node) *Node { return grouped(x, matrix{w: w}, ids) }
	all := c.run(t, build)
	for range 5 {
		some := groupedCase{n: 1 + rng.IntN(20), k: 3, x: c.x, out: c.out, in: c.in, w: c.w}
		order := rng.Perm(c.n * c.k)[:some.n*some.k]
		for _, i := range order {
			some.ids = append(some.ids, c.ids[i])
			some.rows, some.dy = append(some.rows, c.rows[i*c.in:][:c.in]...), append(some.dy, c.dy[i*c.out:][:c.out]...)
		}
		got := some.run(t, build)
		for at, i := range order {
			sameBits(t, all[0][i*c.out:][:c.out], got[0][at*c.out:][:c.out], "row %d", i)
			sameBits(t, all[1][i*c.in:][:c.in], got[1][at*c.in:][:c.in], "gradient of row %d", i)
		}
	}
}

// TestGrouped_Types: matrices of bfloat16 and int8 are multiplied as those of a linear layer are, in both directions,
// and their gradient is none.
func TestGrouped_Types(t *testing.T) {
	rng := rand.New(rand.NewPCG(seed, 92))
	c := newGroupedCase(rng, choosing["any"], [5]int{33, 2, 3, 24, 40})
	for _, kind := range []dtypes.DType{dtypes.BFloat16, dtypes.Int8} {
		t.Run(fmt.Sprint(kind), func(t *testing.T) {
			got, want := make([][]float32, 2), make([][]float32, 2)
			out := graphtest.Run(t, graphtest.Complete(t), func(in []*Node) []*Node {
				x, w, dy, ids := in[0], ConvertDType(MulScalar(in[1], 30), kind), in[2], in[3]
				var scales *Node
				if kind == dtypes.Int8 {
					scales = AddScalar(MulScalar(ConvertDType(Iota(x.Graph(), shapeI32(c.x, c.out), 1), dtypes.Float32), 0.1), 1)
				}
				var list []matrix
				for e := range c.x {
					m := matrix{w: Reshape(Slice(w, AxisElem(e)), c.out, c.in)}
					if scales != nil {
						m.scale = Reshape(Slice(scales, AxisElem(e)), c.out)
					}
					list = append(list, m)
				}
				m := stacked(list)
				y := grouped(x, m, ids)
				each, dxs := Zeros(x.Graph(), y.Shape()), Zeros(x.Graph(), x.Shape())
				for e, m := range list {
					has := Equal(ExpandAxes(ids, -1), Scalar(x.Graph(), dtypes.Int32, e))
					product := Reshape(matMulTransposed(Reshape(x, -1, c.in), m), c.n, c.k, -1)
					dx := Reshape(matMul(Reshape(dy, -1, c.out), m), c.n, c.k, -1)
					each = Where(BroadcastToDims(has, each.Shape().Dimensions...), product, each)
					dxs = Where(BroadcastToDims(has, dxs.Shape().Dimensions...), dx, dxs)
				}
				return []*Node{y, Gradient(ReduceAllSum(Mul(y, dy)), x)[0], each, dxs}
			}, graphtest.Tensor(c.rows, c.n, c.k, c.in), graphtest.Tensor(c.w, c.x, c.out, c.in),
				graphtest.Tensor(c.dy, c.n, c.k, c.out), tensors.FromFlatDataAndDimensions(c.ids, c.n, c.k))
			for i := range got {
				got[i], want[i] = graphtest.Values[float32](t, out[i]), graphtest.Values[float32](t, out[2+i])
				largest := 0.0
				for _, x := range want[i] {
					largest = max(largest, math.Abs(float64(x)))
				}
				for j := range want[i] {
					require.InDelta(t, want[i][j], got[i][j], 1e-5*largest, "output %d, number %d, seed %d", i, j, seed)
				}
			}
		})
	}
}

// TestExperts_Choice: the experts of a token are those with the largest probabilities, the largest first, and of equal
// ones the first; their weights are these probabilities.
func TestExperts_Choice(t *testing.T) {
	p := []float32{0.1, 0.4, 0.1, 0.4, 0, 0.2, 0.2, 0.2, 0.2, 0.2, 0, 0, 0, 0, 1}
	out := graphtest.Run(t, graphtest.Device(t), func(in []*Node) []*Node {
		ids := largest(in[0], 4)
		return []*Node{ConvertDType(ids, dtypes.Float32), chosen(in[0], ids)}
	}, graphtest.Tensor(p, 3, 5))
	require.Equal(t, []float32{1, 3, 0, 2, 0, 1, 2, 3, 4, 0, 1, 2}, graphtest.Values[float32](t, out[0]))
	require.Equal(t, []float32{0.4, 0.4, 0.1, 0.1, 0.2, 0.2, 0.2, 0.2, 1, 0, 0, 0}, graphtest.Values[float32](t, out[1]))
}
