package model

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/internal/graphx"
	"github.com/goart-dev/art/internal/graphx/graphtest"
)

// BenchmarkDeltaNet computes a layer of the shape of Qwen3.5-9B: its projections alone, in bfloat16, and all but them.
// Slots are updated in place.
func BenchmarkDeltaNet(b *testing.B) {
	net := deltaNet{keyHeads: 16, valueHeads: 32, keyDim: 128, valueDim: 128, kernel: 4}
	const hidden = 4096
	for _, c := range []struct {
		name         string
		rows, tokens int
		trains       bool
	}{{"decode", 1, 1, false}, {"decode", 16, 1, false}, {"prefill", 1, 512, false}, {"train", 2, 512, true}} {
		for _, what := range []string{"projections", "rule"} {
			b.Run(fmt.Sprintf("%s%d/%s", c.name, c.rows, what), func(b *testing.B) {
				benchmarkDeltaNet(b, net, [3]int{c.rows, c.tokens, hidden}, c.trains, what == "projections")
			})
		}
	}
}

func benchmarkDeltaNet(b *testing.B, net deltaNet, size [3]int, trains, projections bool) {
	rows, tokens, hidden := size[0], size[1], size[2]
	device, r := graphtest.Device(b), rand.New(rand.NewPCG(seed, 0))
	random := func(dims ...int) *tensors.Tensor {
		n := 1
		for _, d := range dims {
			n *= d
		}
		x := make([]float32, n)
		for i := range x {
			x[i] = r.Float32() - 0.5
		}
		return graphtest.Tensor(x, dims...)
	}
	values := net.valueHeads * net.valueDim
	layers := map[string][2]int{
		"in_proj_qkv": {net.channels(), hidden}, "in_proj_z": {values, hidden}, "out_proj": {hidden, values},
		"in_proj_b": {net.valueHeads, hidden}, "in_proj_a": {net.valueHeads, hidden},
	}
	inputs := []any{random(rows, tokens, hidden), random(rows, tokens, net.channels()),
		random(net.channels(), 1, net.kernel), random(net.valueHeads), random(net.valueDim)}
	names := map[string]int{}
	for name, d := range layers {
		if projections {
			w, err := graphx.UploadMatrix(device, dtypes.BFloat16, d[0], d[1], func(dst []float32, first int) {
				for i := range dst {
					dst[i] = float32((first+i)%7) / 100
				}
			})
			require.NoError(b, err)
			names[name+weightSuffix] = len(inputs)
			inputs = append(inputs, w)
		}
	}
	slots := 0
	if !projections && !trains {
		slots = len(inputs)
		inputs = append(inputs, random(rows+1, net.kernel-1, net.channels()),
			random(rows+1, net.valueHeads, net.keyDim, net.valueDim))
	}
	build := func(in []*graph.Node) []*graph.Node {
		x, mixed := in[0], in[1]
		params := map[string]*graph.Node{"conv1d.weight": in[2], "A_log": in[3], "dt_bias": in[3], "norm.weight": in[4]}
		for name, i := range names {
			params[name] = in[i]
		}
		f := &Forward{Config: &Config{RMSNormEps: deltaEps}, Param: func(name string) *graph.Node { return params[name] }}
		var y *graph.Node
		var more []*graph.Node
		if projections {
			y = columns(linear{name: "in_proj_qkv"}.build(f, x, ""), 0, values)
			y = graph.Add(y, linear{name: "in_proj_z"}.build(f, x, ""))
			y = linear{name: "out_proj"}.build(f, y, "")
		} else {
			f.Linear = func(x *graph.Node, name string, _ func(*graph.Node) *graph.Node) *graph.Node {
				d := layers[name]
				if name == "out_proj" {
					return graph.Slice(x, graph.AxisRange(), graph.AxisRange(0, d[0]))
				}
				return graph.Slice(graph.Reshape(mixed, rows*tokens, -1), graph.AxisRange(), graph.AxisRange(0, d[0]))
			}
			count := make([]int32, rows)
			to := make([]int32, rows)
			for i := range count {
				count[i], to[i] = int32(tokens), int32(i+1)
			}
			pass := deltaPass{count: graph.Const(x.Graph(), count)}
			var past *deltaPast
			if slots > 0 {
				pass.from, pass.to = graph.Const(x.Graph(), to), graph.Const(x.Graph(), to)
				past = &deltaPast{Window: in[slots], State: in[slots+1]}
			}
			var next deltaPast
			y, next = net.build(f, "", pass, x, past)
			if past != nil {
				more = []*graph.Node{next.Window, next.State}
			}
		}
		if trains {
			of := mixed
			if projections {
				of = x
			}
			return []*graph.Node{graph.Gradient(graph.ReduceAllSum(graph.Mul(y, y)), of)[0]}
		}
		return append([]*graph.Node{y}, more...)
	}
	programs := graphx.NewPrograms(device, 1<<30)
	call := func() {
		if slots > 0 {
			donated, err := graphx.Donate(device, []*tensors.Tensor{inputs[slots].(*tensors.Tensor),
				inputs[slots+1].(*tensors.Tensor)})
			require.NoError(b, err)
			inputs[slots], inputs[slots+1] = donated[0], donated[1]
		}
		out, err := programs.Call(0, build, inputs)
		require.NoError(b, err)
		if slots > 0 {
			inputs[slots], inputs[slots+1] = out[1], out[2]
		}
	}
	call()
	for b.Loop() {
		call()
	}
	b.ReportMetric(float64(b.N*rows*tokens)/b.Elapsed().Seconds(), "tokens/s")
}
