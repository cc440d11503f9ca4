package model

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/internal/graphx/graphtest"
)

const deltaEps = 1e-6

// deltaCase is a mixer with weights.
type deltaCase struct {
	net    deltaNet
	hidden int
	names  []string
	data   map[string][]float32
	dims   map[string][]int
}

// newDeltaCase draws weights of about the sizes that those of models have.
func newDeltaCase(r *rand.Rand, net deltaNet, hidden int) *deltaCase {
	c := &deltaCase{net: net, hidden: hidden, data: map[string][]float32{}, dims: map[string][]int{}}
	add := func(name string, mean, deviation float64, dims ...int) {
		n := 1
		for _, d := range dims {
			n *= d
		}
		x := make([]float32, n)
		for i := range x {
			x[i] = float32(mean + deviation*r.NormFloat64())
		}
		c.names, c.data[name], c.dims[name] = append(c.names, name), x, dims
	}
	keys, values := net.keyHeads*net.keyDim, net.valueHeads*net.valueDim
	if net.grouped {
		add("in_proj_qkvz.weight", 0, 0.3, 2*keys+2*values, hidden)
		add("in_proj_ba.weight", 0, 0.3, 2*net.valueHeads, hidden)
	} else {
		add("in_proj_qkv.weight", 0, 0.3, 2*keys+values, hidden)
		add("in_proj_z.weight", 0, 0.3, values, hidden)
		add("in_proj_b.weight", 0, 0.3, net.valueHeads, hidden)
		add("in_proj_a.weight", 0, 0.3, net.valueHeads, hidden)
	}
	add("conv1d.weight", 0, 0.5, net.channels(), 1, net.kernel)
	add("A_log", 0.3, 0.3, net.valueHeads)
	add("dt_bias", -1, 0.5, net.valueHeads)
	add("norm.weight", 1, 0.2, net.valueDim)
	add("out_proj.weight", 0, 0.3, hidden, values)
	return c
}

// deltaCases are small mixers: of odd sizes, with projections of both kinds, and with heads of several vectors.
func deltaCases(r *rand.Rand) []*deltaCase {
	return []*deltaCase{
		newDeltaCase(r, deltaNet{keyHeads: 2, valueHeads: 4, keyDim: 8, valueDim: 12, kernel: 4}, 10),
		newDeltaCase(r, deltaNet{keyHeads: 2, valueHeads: 6, keyDim: 5, valueDim: 7, kernel: 3, grouped: true}, 9),
		newDeltaCase(r, deltaNet{keyHeads: 1, valueHeads: 2, keyDim: 16, valueDim: 64, kernel: 4}, 16),
	}
}

func (c *deltaCase) inputs() (list []*tensors.Tensor) {
	for _, name := range c.names {
		list = append(list, graphtest.Tensor(c.data[name], c.dims[name]...))
	}
	return list
}

// forward is a Forward with the weights among the inputs of a graph; the others are returned.
func (c *deltaCase) forward(in []*graph.Node) (*Forward, []*graph.Node) {
	params := map[string]*graph.Node{}
	for i, name := range c.names {
		params[name] = in[i]
	}
	f := &Forward{Config: &Config{RMSNormEps: deltaEps}, Param: func(name string) *graph.Node { return params[name] }}
	return f, in[len(c.names):]
}

// deltaSlots is what sequences remember between calls, in slots.
type deltaSlots struct{ window, state *tensors.Tensor }

func (c *deltaCase) slots(n int) *deltaSlots {
	w, s := n*(c.net.kernel-1)*c.net.channels(), n*c.net.valueHeads*c.net.keyDim*c.net.valueDim
	return &deltaSlots{
		window: graphtest.Tensor(make([]float32, w), n, c.net.kernel-1, c.net.channels()),
		state:  graphtest.Tensor(make([]float32, s), n, c.net.valueHeads, c.net.keyDim, c.net.valueDim),
	}
}

// call runs rows of tokens that go on from slots, and stores what they remember.
func (c *deltaCase) call(t *testing.T, x []float32, counts, from, to []int32, s *deltaSlots) []float32 {
	t.Helper()
	n := len(counts)
	out := graphtest.Run(t, graphtest.Device(t), func(in []*graph.Node) []*graph.Node {
		f, in := c.forward(in)
		past := &deltaPast{Window: in[4], State: in[5]}
		y, next := c.net.build(f, "", deltaPass{count: in[1], from: in[2], to: in[3]}, in[0], past)
		return []*graph.Node{y, next.Window, next.State}
	}, append(c.inputs(), graphtest.Tensor(x, n, len(x)/n/c.hidden, c.hidden), graphtest.Tensor(counts, n),
		graphtest.Tensor(from, n), graphtest.Tensor(to, n), s.window, s.state)...)
	s.window, s.state = out[1], out[2]
	return graphtest.Values[float32](t, out[0])
}

// train runs whole rows, and returns the output, and the gradients of sum(output * weights) with respect to x and the
// weights of the mixer.
func (c *deltaCase) train(t *testing.T, x, weights []float32, counts []int32) (y []float32, gradients [][]float32) {
	t.Helper()
	n := len(counts)
	dims := []int{n, len(x) / n / c.hidden, c.hidden}
	out := graphtest.Run(t, graphtest.Device(t), func(in []*graph.Node) []*graph.Node {
		f, rest := c.forward(in)
		y, _ := c.net.build(f, "", deltaPass{count: rest[2]}, rest[0], nil)
		of := append([]*graph.Node{rest[0]}, in[:len(c.names)]...)
		return append([]*graph.Node{y}, graph.Gradient(graph.ReduceAllSum(graph.Mul(y, rest[1])), of...)...)
	}, append(c.inputs(), graphtest.Tensor(x, dims...), graphtest.Tensor(weights, dims...),
		graphtest.Tensor(counts, n))...)
	for _, g := range out[1:] {
		gradients = append(gradients, graphtest.Values[float32](t, g))
	}
	return graphtest.Values[float32](t, out[0]), gradients
}

func drawn(r *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	return x
}

// TestDeltaNet_SamplerIsTrainer: a sequence that is read in pieces from a slot, single tokens among them, together with
// others and padding, has the bits of one that is trained on at once, and leaves the same state behind.
func TestDeltaNet_SamplerIsTrainer(t *testing.T) {
	r := rand.New(rand.NewPCG(seed, 300))
	for i, c := range deltaCases(r) {
		const tokens, rows, width = 75, 3, 40
		x := drawn(r, tokens*c.hidden)
		want, _ := c.train(t, append(slices.Clone(x), drawn(r, tokens*c.hidden)...), drawn(r, 2*tokens*c.hidden),
			[]int32{tokens, 1})
		want = want[:tokens*c.hidden]
		s, whole := c.slots(6), c.slots(6)
		c.call(t, x, []int32{tokens}, []int32{0}, []int32{2}, whole)
		slot, done, gap := int32(0), 0, 0.0
		for call, n := range []int{1, 1, 40, 1, 0, 31, 1} {
			at, batch := call%rows, make([]float32, rows*width*c.hidden)
			counts, from, to := make([]int32, rows), make([]int32, rows), make([]int32, rows)
			for row := range rows {
				copy(batch[row*width*c.hidden:], drawn(r, width*c.hidden))
				counts[row], to[row] = int32(r.IntN(width)), int32(3+row) // others
			}
			copy(batch[at*width*c.hidden:], x[done*c.hidden:][:n*c.hidden])
			counts[at], from[at], to[at] = int32(n), slot, int32(1+call%2)
			y := c.call(t, batch, counts, from, to, s)
			expected, got := want[done*c.hidden:][:n*c.hidden], y[at*width*c.hidden:][:n*c.hidden]
			sameBits(t, expected, got, "case %d, %d tokens from %d on, seed %d", i, n, done, seed)
			for k, x := range expected {
				gap = max(gap, math.Abs(float64(x-got[k])))
			}
			slot, done = to[at], done+n
		}
		t.Logf("case %d: largest difference %.2g", i, gap)
		for _, pair := range [][2]*tensors.Tensor{{whole.window, s.window}, {whole.state, s.state}} {
			a, b := graphtest.Values[float32](t, pair[0]), graphtest.Values[float32](t, pair[1])
			each := len(a) / 6
			sameBits(t, a[2*each:][:each], b[int(slot)*each:][:each], "case %d, what is left behind", i)
			require.Equal(t, make([]float32, each), b[:each], "slot 0 is read only")
		}
	}
}

// TestDeltaNet_GoesOn: rows that go on from the states of others have the bits of whole rows, and the same gradients.
func TestDeltaNet_GoesOn(t *testing.T) {
	r := rand.New(rand.NewPCG(seed, 301))
	for i, c := range deltaCases(r) {
		const first, second = 70, 9
		x, weights := drawn(r, (first+second)*c.hidden), drawn(r, (first+second)*c.hidden)
		want, gradients := c.train(t, x, weights, []int32{first + second})
		out := graphtest.Run(t, graphtest.Device(t), func(in []*graph.Node) []*graph.Node {
			f, rest := c.forward(in)
			x, weights := rest[0], rest[1]
			part := func(x *graph.Node, from, to int) *graph.Node {
				return graph.Slice(x, graph.AxisRange(), graph.AxisRange(from, to))
			}
			count := func(n int32) deltaPass { return deltaPass{count: graph.Const(x.Graph(), []int32{n})} }
			y, past := c.net.build(f, "", count(first), part(x, 0, first+3), nil) // with padding
			z, _ := c.net.build(f, "", count(second), part(x, first, first+second), &past)
			y = graph.Concatenate([]*graph.Node{part(y, 0, first), z}, 1)
			of := append([]*graph.Node{x}, in[:len(c.names)]...)
			return append([]*graph.Node{y}, graph.Gradient(graph.ReduceAllSum(graph.Mul(y, weights)), of...)...)
		}, append(c.inputs(), graphtest.Tensor(x, 1, first+second, c.hidden),
			graphtest.Tensor(weights, 1, first+second, c.hidden))...)
		sameBits(t, want, graphtest.Values[float32](t, out[0]), "case %d, seed %d", i, seed)
		for k, g := range gradients {
			closeTo(t, widen(g), graphtest.Values[float32](t, out[1+k]), 2e-5, "case %d, gradient %d, seed %d", i, k, seed)
		}
	}
}

// near compares numbers relative to the largest one.
func closeTo(t testing.TB, want []float64, got []float32, tolerance float64, format string, args ...any) {
	t.Helper()
	require.Len(t, got, len(want))
	most := 1e-3
	for _, x := range want {
		most = max(most, math.Abs(x))
	}
	for i, x := range want {
		if !(math.Abs(float64(got[i])-x) <= tolerance*most) {
			t.Fatalf("%s: element %d is %v, want %v, of numbers up to %v", fmt.Sprintf(format, args...), i, got[i], x, most)
		}
	}
}

// reference computes the mixer of one row in float64, from the formulas.
func (c *deltaCase) reference(x []float64) []float64 {
	n := c.net
	keys, values, tokens := n.keyHeads*n.keyDim, n.valueHeads*n.valueDim, len(x)/c.hidden
	weight := func(name string) []float64 { return widen(c.data[name]) }
	multiply := func(name string, x []float64) (y []float64) {
		w := weight(name)
		for o := range len(w) / len(x) {
			sum := 0.0
			for i, v := range x {
				sum += w[o*len(x)+i] * v
			}
			y = append(y, sum)
		}
		return y
	}
	sigmoid := func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
	conv, rates, bias, norm := weight("conv1d.weight"), weight("A_log"), weight("dt_bias"), weight("norm.weight")
	state := make([]float64, n.valueHeads*n.keyDim*n.valueDim)
	var all [][]float64
	var out []float64
	for t := range tokens {
		row := x[t*c.hidden:][:c.hidden]
		u, z, b, a := c.projected(row, multiply)
		all = append(all, u)
		mixed := make([]float64, 2*keys+values)
		for i := range mixed {
			for j := range n.kernel {
				if from := t - n.kernel + 1 + j; from >= 0 {
					mixed[i] += conv[i*n.kernel+j] * all[from][i]
				}
			}
			mixed[i] *= sigmoid(mixed[i])
		}
		var y []float64
		for h := range n.valueHeads {
			unit := func(x []float64, dim int) (y []float64) {
				sum := 1e-6
				for _, v := range x {
					sum += v * v
				}
				for _, v := range x {
					y = append(y, v/math.Sqrt(sum*float64(dim)))
				}
				return y
			}
			group := h / (n.valueHeads / n.keyHeads)
			q, k := unit(mixed[group*n.keyDim:][:n.keyDim], n.keyDim), unit(mixed[keys+group*n.keyDim:][:n.keyDim], 1)
			decay, rate := math.Exp(-math.Exp(rates[h])*math.Log1p(math.Exp(a[h]+bias[h]))), sigmoid(b[h])
			o, squares := make([]float64, n.valueDim), 0.0
			for j := range n.valueDim {
				s := func(i int) *float64 { return &state[(h*n.keyDim+i)*n.valueDim+j] }
				read := 0.0
				for i := range k {
					*s(i) *= decay
					read += *s(i) * k[i]
				}
				d := rate * (mixed[2*keys+h*n.valueDim+j] - read)
				for i := range k {
					*s(i) += k[i] * d
					o[j] += *s(i) * q[i]
				}
				squares += o[j] * o[j] / float64(n.valueDim)
			}
			for j, v := range o {
				gate := z[h*n.valueDim+j]
				y = append(y, norm[j]*v/math.Sqrt(squares+deltaEps)*gate*sigmoid(gate))
			}
		}
		out = append(out, multiply("out_proj.weight", y)...)
	}
	return out
}

// projected are the projections of a token, of both kinds.
func (c *deltaCase) projected(x []float64, multiply func(name string, x []float64) []float64) (u, z, b, a []float64) {
	n := c.net
	if !n.grouped {
		return multiply("in_proj_qkv.weight", x), multiply("in_proj_z.weight", x), multiply("in_proj_b.weight", x),
			multiply("in_proj_a.weight", x)
	}
	qkvz, ba := multiply("in_proj_qkvz.weight", x), multiply("in_proj_ba.weight", x)
	each := n.valueHeads / n.keyHeads
	var q, k, v []float64
	for range n.keyHeads {
		take := func(size int) []float64 {
			part := qkvz[:size]
			qkvz = qkvz[size:]
			return part
		}
		q, k, v, z = append(q, take(n.keyDim)...), append(k, take(n.keyDim)...), append(v, take(each*n.valueDim)...),
			append(z, take(each*n.valueDim)...)
		b, a, ba = append(b, ba[:each]...), append(a, ba[each:2*each]...), ba[2*each:]
	}
	return slices.Concat(q, k, v), z, b, a
}

// TestDeltaNet_Reference: the mixer computes the formulas in float64 within rounding, for thousands of tokens too.
func TestDeltaNet_Reference(t *testing.T) {
	r := rand.New(rand.NewPCG(seed, 302))
	for i, c := range deltaCases(r) {
		for _, tokens := range []int{1, 5, 130, 3100} {
			if tokens > 130 && graphtest.Rounding() > 0 {
				continue // another device compiles its chunks one by one
			}
			x := drawn(r, tokens*c.hidden)
			got := c.call(t, x, []int32{int32(tokens)}, []int32{0}, []int32{1}, c.slots(2))
			closeTo(t, c.reference(widen(x)), got, 4e-6, "case %d, %d tokens, seed %d", i, tokens, seed)
		}
	}
}

// TestDeltaNet_Gradient: gradients of the inputs and of all weights are the slopes of the formulas in float64, and
// padding has none.
func TestDeltaNet_Gradient(t *testing.T) {
	r := rand.New(rand.NewPCG(seed, 303))
	for i, c := range deltaCases(r)[:2] {
		const tokens, padded = 68, 70
		x, weights := drawn(r, padded*c.hidden), drawn(r, padded*c.hidden)
		clear(weights[tokens*c.hidden:])
		_, gradients := c.train(t, x, weights, []int32{tokens})
		require.Equal(t, make([]float32, (padded-tokens)*c.hidden), gradients[0][tokens*c.hidden:])
		x = x[:tokens*c.hidden]
		loss := func() (sum float64) {
			for i, y := range c.reference(widen(x)) {
				sum += y * float64(weights[i])
			}
			return sum
		}
		for k, values := range append([][]float32{x}, c.values()...) {
			for range 8 {
				at := r.IntN(len(values))
				old := values[at]
				values[at] = old + 1.0/1024
				up, high := loss(), values[at]
				values[at] = old - 1.0/1024
				down, low := loss(), values[at]
				values[at] = old
				want := (up - down) / (float64(high) - float64(low))
				if got := float64(gradients[k][at]); math.Abs(got-want) > 1e-3*(1+math.Abs(want)) {
					t.Errorf("case %d, gradient %d at %d is %v, want %v, seed %d", i, k, at, got, want, seed)
				}
			}
		}
	}
}

func (c *deltaCase) values() (list [][]float32) {
	for _, name := range c.names {
		list = append(list, c.data[name])
	}
	return list
}
