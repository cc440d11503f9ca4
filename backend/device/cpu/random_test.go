package cpu

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/gobackend"
	"github.com/gomlx/compute/shapes"

	"github.com/goart-dev/art/backend/device/cpu/internal/cpuid"
	"github.com/goart-dev/art/backend/device/cpu/internal/gemm"
	"github.com/goart-dev/art/backend/device/cpu/internal/ir"
	"github.com/goart-dev/art/internal/dev/race"
)

// seeded returns a random source and prints its seed. ART_SEED replays one.
func seeded(t testing.TB) *rand.Rand {
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("ART_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("replay with ART_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// recipe builds a random graph: the same one each time, on any device.
type recipe struct {
	seed  uint64
	kind  dtypes.DType
	input []shapes.Shape
	log   []string
}

func newRecipe(rng *rand.Rand, kind dtypes.DType) *recipe {
	r := &recipe{seed: rng.Uint64(), kind: kind}
	for range 3 {
		r.input = append(r.input, shapes.Make(kind, randomDims(rng)...))
	}
	return r
}

func randomDims(rng *rand.Rand) []int {
	dims := make([]int, 1+rng.IntN(3))
	for i := range dims {
		dims[i] = []int{1, 2, 3, 4, 7, 16, 33, 50}[rng.IntN(8)]
	}
	return dims
}

// grower grows the graph of a recipe.
type grower struct {
	*recipe
	rng    *rand.Rand
	b      compute.Builder
	f      compute.Function
	values []compute.Value
}

// build returns all values of the graph that have the recipe's type, and the function without outputs.
func (r *recipe) build(t testing.TB, device compute.Backend, operations int) *grower {
	b := device.Builder("random")
	g := &grower{recipe: r, rng: rand.New(rand.NewPCG(r.seed, 1)), b: b, f: b.Main()}
	g.log = nil
	for i, s := range r.input {
		v, err := g.f.Parameter(fmt.Sprint("x", i), s, nil)
		if err != nil {
			t.Fatal(err)
		}
		g.values = append(g.values, v)
	}
	for range operations {
		v, err := g.grow()
		if err != nil {
			t.Fatalf("%v\n%v", err, g.log)
		}
		if v != nil {
			g.values = append(g.values, v)
		}
	}
	return g
}

func (g *grower) pick() compute.Value {
	n := len(g.values)
	return g.values[max(g.rng.IntN(n), g.rng.IntN(n))] // late ones more often
}

func (g *grower) dims(v compute.Value) []int {
	s, err := g.f.Shape(v)
	if err != nil {
		panic(err)
	}
	return s.Dimensions
}

// grow adds an operation, or nothing when it would not fit.
func (g *grower) grow() (compute.Value, error) {
	x := g.pick()
	dims := g.dims(x)
	k := g.rng.IntN(13)
	g.log = append(g.log, fmt.Sprintf("%d: kind %d of %v", len(g.values), k, dims))
	switch k {
	case 0, 1:
		return g.unary(x)
	case 2, 3, 4:
		return g.binary(x, dims)
	case 5:
		return g.reduceAndSpread(x, dims)
	case 6:
		return g.f.Transpose(x, g.rng.Perm(len(dims))...)
	case 7:
		return g.reshape(x, dims)
	case 8:
		return g.slice(x, dims)
	case 9:
		return g.where(x, dims)
	case 10:
		return g.dot(x, dims)
	case 11:
		return g.reverse(x, dims)
	}
	return g.join(x, dims)
}

func (g *grower) unary(x compute.Value) (compute.Value, error) {
	switch g.rng.IntN(5) {
	case 0:
		return g.f.Neg(x)
	case 1:
		return g.f.Tanh(x)
	case 2:
		return g.f.Logistic(x)
	case 3:
		return g.f.Abs(x)
	}
	return g.f.Sin(x)
}

// like returns a value that can be broadcast to dims.
func (g *grower) like(dims []int) (compute.Value, error) {
	for range 20 {
		y := g.pick()
		if slices.Equal(g.dims(y), dims) {
			return y, nil
		}
		if s := g.dims(y); len(s) == 1 && len(dims) > 0 {
			for ax, d := range dims {
				if d == s[0] {
					return g.f.BroadcastInDim(y, shapes.Make(g.kind, dims...), []int{ax})
				}
			}
		}
	}
	c, err := g.constant(0.5)
	if err != nil {
		return nil, err
	}
	return g.f.BroadcastInDim(c, shapes.Make(g.kind, dims...), nil)
}

func (g *grower) constant(x float64) (compute.Value, error) {
	if g.kind == dtypes.Float32 {
		return g.f.Constant([]float32{float32(x)})
	}
	return g.f.Constant([]float64{x})
}

func (g *grower) binary(x compute.Value, dims []int) (compute.Value, error) {
	y, err := g.like(dims)
	if err != nil {
		return nil, err
	}
	switch g.rng.IntN(5) {
	case 0:
		return g.f.Add(x, y)
	case 1:
		return g.f.Sub(y, x)
	case 2:
		return g.f.Max(x, y)
	case 3:
		return g.f.Min(x, y)
	}
	v, err := g.f.Mul(x, y)
	if err != nil || g.kind == dtypes.Float32 {
		return v, err
	}
	return g.f.Tanh(v) // products of products grow, and what is left of their differences has too few digits to compare
}

// reduceAndSpread reduces some axes, most often the last, and sometimes repeats the result along them.
func (g *grower) reduceAndSpread(x compute.Value, dims []int) (compute.Value, error) {
	if len(dims) == 0 {
		return nil, nil
	}
	axes := []int{len(dims) - 1}
	if g.rng.IntN(3) == 0 {
		axes = g.rng.Perm(len(dims))[:1+g.rng.IntN(len(dims))]
	}
	op := g.f.ReduceSum
	if g.rng.IntN(2) == 0 {
		op = g.f.ReduceMax
	}
	v, err := op(x, axes...)
	if err != nil || g.rng.IntN(3) == 0 {
		return v, err
	}
	var kept []int
	for i := range dims {
		if !slices.Contains(axes, i) {
			kept = append(kept, i)
		}
	}
	return g.f.BroadcastInDim(v, shapes.Make(g.kind, dims...), kept)
}

func (g *grower) reshape(x compute.Value, dims []int) (compute.Value, error) {
	shape := randomShapes(g.rng, ir.Volume(dims))[0]
	return g.f.Reshape(x, shape...)
}

// reverse reverses an axis, and sometimes adds that to what it is made of.
func (g *grower) reverse(x compute.Value, dims []int) (compute.Value, error) {
	if len(dims) == 0 {
		return nil, nil
	}
	v, err := g.f.Reverse(x, g.rng.IntN(len(dims)))
	if err != nil || g.rng.IntN(3) == 0 {
		return v, err
	}
	return g.f.Sub(x, v)
}

func (g *grower) slice(x compute.Value, dims []int) (compute.Value, error) {
	starts, limits, strides := make([]int, len(dims)), make([]int, len(dims)), make([]int, len(dims))
	for i, d := range dims {
		starts[i] = g.rng.IntN(d)
		limits[i] = starts[i] + 1 + g.rng.IntN(d-starts[i])
		strides[i] = 1 + g.rng.IntN(2)
	}
	return g.f.Slice(x, starts, limits, strides)
}

func (g *grower) where(x compute.Value, dims []int) (compute.Value, error) {
	y, err := g.like(dims)
	if err != nil {
		return nil, err
	}
	limit := y
	if g.kind == dtypes.Float64 { // numbers that differ by their rounding only are on the same side for everyone
		if limit, err = g.above(y, dims); err != nil {
			return nil, err
		}
	}
	less, err := g.f.LessThan(x, limit)
	if err != nil {
		return nil, err
	}
	z, err := g.like(dims)
	if err != nil {
		return nil, err
	}
	return g.f.Where(less, z, x)
}

// above is a little more than a value.
func (g *grower) above(x compute.Value, dims []int) (compute.Value, error) {
	c, err := g.constant(1.0 / 4096)
	if err != nil {
		return nil, err
	}
	if c, err = g.f.BroadcastInDim(c, shapes.Make(g.kind, dims...), nil); err != nil {
		return nil, err
	}
	return g.f.Add(x, c)
}

// dot multiplies with a value that has an axis of the same size.
func (g *grower) dot(x compute.Value, dims []int) (compute.Value, error) {
	for range 10 {
		y := g.pick()
		other := g.dims(y)
		for i, d := range dims {
			if j := slices.Index(other, d); j >= 0 && len(dims)+len(other) <= 5 &&
				ir.Volume(dims)*ir.Volume(other)/d/d < 20_000 {
				v, err := g.f.DotGeneral(x, []int{i}, nil, y, []int{j}, nil, compute.DotGeneralConfig{})
				if err != nil {
					return nil, err
				}
				return g.f.Tanh(v) // so that numbers stay small
			}
		}
	}
	return nil, nil
}

// join pads, or concatenates with itself.
func (g *grower) join(x compute.Value, dims []int) (compute.Value, error) {
	if len(dims) == 0 || ir.Volume(dims) > 5000 {
		return nil, nil
	}
	ax := g.rng.IntN(len(dims))
	if g.rng.IntN(2) == 0 {
		return g.f.Concatenate(ax, x, x)
	}
	c, err := g.constant(-1)
	if err != nil {
		return nil, err
	}
	pads := make([]compute.PadAxis, len(dims))
	pads[ax] = compute.PadAxis{Start: g.rng.IntN(3), End: g.rng.IntN(3), Interior: g.rng.IntN(2)}
	return g.f.Pad(x, c, pads...)
}

// run returns the values of outputs, chosen by a seed, on a device, which may get the inputs for its own.
func (r *recipe) run(t testing.TB, device compute.Backend, operations, outputs int, donate bool) [][]float64 {
	t.Helper()
	g := r.build(t, device, operations)
	rng := rand.New(rand.NewPCG(r.seed, 2))
	out := []compute.Value{g.values[len(g.values)-1]}
	for range outputs - 1 {
		out = append(out, g.values[rng.IntN(len(g.values))])
	}
	if err := g.f.Return(out, nil); err != nil {
		t.Fatal(err)
	}
	e, err := g.b.Compile()
	if err != nil {
		t.Fatalf("%v\n%v", err, g.log)
	}
	var in []compute.Buffer
	for _, s := range r.input {
		in = append(in, r.data(t, device, rng, s))
	}
	results, err := e.Execute(in, slices.Repeat([]bool{donate}, len(in)), 0)
	if err != nil {
		t.Fatalf("%v\n%v", err, g.log)
	}
	var list [][]float64
	for _, b := range results {
		list = append(list, numbers(t, b))
	}
	return list
}

func (r *recipe) data(t testing.TB, device compute.Backend, rng *rand.Rand, s shapes.Shape) compute.Buffer {
	t.Helper()
	single, double := make([]float32, s.Size()), make([]float64, s.Size())
	for i := range single {
		single[i] = float32(rng.NormFloat64())
		double[i] = float64(single[i])
	}
	flat := any(single)
	if r.kind == dtypes.Float64 {
		flat = double
	}
	b, err := device.BufferFromFlatData(0, flat, s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// numbers reads a buffer.
func numbers(t testing.TB, b compute.Buffer) []float64 {
	t.Helper()
	s, err := b.Shape()
	if err != nil {
		t.Fatal(err)
	}
	if s.DType == dtypes.Float64 {
		out := make([]float64, s.Size())
		if err := b.ToFlatData(out); err != nil {
			t.Fatal(err)
		}
		return out
	}
	single := make([]float32, s.Size())
	if err := b.ToFlatData(single); err != nil {
		t.Fatal(err)
	}
	out := make([]float64, len(single))
	for i, x := range single {
		out[i] = float64(x)
	}
	return out
}

// TestRandom_Reference: random graphs in double precision give what GoMLX's own device gives.
func TestRandom_Reference(t *testing.T) {
	if race.Enabled {
		t.Skip("GoMLX's own device does not run under the race detector")
	}
	rng := seeded(t)
	device := newDevice(t, 2)
	reference, err := gobackend.New("ops_sequential")
	if err != nil {
		t.Fatal(err)
	}
	for i := range repeats(400) {
		r := newRecipe(rng, dtypes.Float64)
		n := 1 + rng.IntN(40)
		want, got := r.run(t, reference, n, 3, false), r.run(t, device, n, 3, false)
		for k := range want {
			for j := range want[k] {
				if d := math.Abs(want[k][j] - got[k][j]); d > 1e-9*(1+math.Abs(want[k][j])) {
					t.Fatalf("graph %d, output %d, element %d: %v, want %v\n%v", i, k, j, got[k][j], want[k][j], r.log)
				}
			}
		}
	}
}

// TestRandom_SameBits: float32 has the same bits at every level, with and without fusion, with one worker or five, and
// in memory of its own or of inputs.
func TestRandom_SameBits(t *testing.T) {
	rng := seeded(t)
	plain := newDevice(t, 1)
	plain.unfused, plain.env.Level, plain.env.Kernels = true, cpuid.Portable, gemm.New(cpuid.Portable)
	fused, wide := newDevice(t, 1), newDevice(t, 5)
	for i := range repeats(400) {
		r := newRecipe(rng, dtypes.Float32)
		n := 1 + rng.IntN(60)
		want := r.run(t, plain, n, 3, false)
		for k, got := range map[string][][]float64{"fused": r.run(t, fused, n, 3, false),
			"five workers, inputs donated": r.run(t, wide, n, 3, true)} {
			for o := range want {
				for j := range want[o] {
					if math.Float64bits(want[o][j]) != math.Float64bits(got[o][j]) && want[o][j] == want[o][j] {
						t.Fatalf("graph %d, %s, output %d, element %d: %v, want %v\n%v", i, k, o, j, got[o][j], want[o][j], r.log)
					}
				}
			}
		}
	}
}

// repeats is n, or a tenth with -short.
func repeats(n int) int {
	if testing.Short() {
		return n / 10
	}
	return n
}

// randomShapes returns some shapes of n elements.
func randomShapes(rng *rand.Rand, n int) (list [][]int) {
	for range 3 {
		var dims []int
		left := n
		for d := 2; left > 1; {
			if left%d == 0 {
				dims = append(dims, d)
				left /= d
			} else {
				d++
			}
			if rng.IntN(4) == 0 {
				dims = append(dims, 1)
			}
		}
		rng.Shuffle(len(dims), func(i, j int) { dims[i], dims[j] = dims[j], dims[i] })
		list = append(list, dims)
	}
	return list
}
