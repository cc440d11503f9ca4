package lora

import (
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/diff/fd"

	"github.com/goart-dev/art/internal/graphx"
	"github.com/goart-dev/art/internal/graphx/graphtest"
	"github.com/goart-dev/art/internal/safetensors"
)

const embedded = "model.embed_tokens"

// doraLayers are a linear layer with a bias, one without, and an embedding.
func doraLayers() []LayerShape {
	return []LayerShape{{Name: hooked, In: 5, Out: 3}, {Name: "model.layers.0.self_attn.o_proj", In: 3, Out: 4},
		{Name: embedded, In: 9, Out: 5, Embedding: true}}
}

// doraAdapter has random numbers in all tensors.
func doraAdapter(t testing.TB, layers []LayerShape) *Adapter {
	t.Helper()
	a, err := New(Config{Rank: 2, Alpha: 3, DoRA: true, Pattern: ".*"}, layers, 1)
	require.NoError(t, err)
	src := rand.New(rand.NewPCG(30, 1))
	for _, l := range a.layers {
		for _, list := range [][]float32{l.A, l.B, l.Magnitude} {
			copy(list, normal(src, len(list)))
		}
	}
	return a
}

// plainNorms computes norms in float64. w is as the layer stores it.
func plainNorms(a *Adapter, l Layer, w []float32) []float64 {
	squares, scale := make([]float64, l.Out), a.config.Scale(l.Name)
	for o := range l.Out {
		for i := range l.In {
			at := o*l.In + i
			if l.Embedding {
				at = i*l.Out + o
			}
			v := float64(w[at])
			for r := range l.rank() {
				v += scale * float64(l.B[o*l.rank()+r]) * float64(l.A[r*l.In+i])
			}
			squares[o] += v * v
		}
		squares[o] = math.Sqrt(squares[o])
	}
	return squares
}

// upload copies the tensors of an adapter.
func upload(a *Adapter) (list []*tensors.Tensor) {
	for _, p := range a.Params() {
		list = append(list, graphtest.Tensor(p.Data, p.Shape...))
	}
	return list
}

// normLayers are layers whose norms are computed in several parts, and one in a single part.
var normLayers = []LayerShape{{Name: "a.wide", In: 1100, Out: 1300}, {Name: "b.small", In: 6, Out: 1},
	{Name: embedded, In: 2500, Out: 700, Embedding: true}}

// TestNorms_MatchFloat64 for layers that are computed in several parts, as the device packs their weights: linear and
// embedding, float32 and bfloat16.
func TestNorms_MatchFloat64(t *testing.T) {
	device := graphtest.Device(t)
	a := doraAdapter(t, normLayers)
	n, err := NewNorms(device)
	require.NoError(t, err)
	defer n.Finalize()
	for _, kind := range []dtypes.DType{dtypes.Float32, dtypes.BFloat16} {
		src := rand.New(rand.NewPCG(31, 1))
		values, weights := map[string][]float32{}, map[string]*tensors.Tensor{}
		for _, l := range normLayers {
			w := normal(src, l.In*l.Out)
			for i, v := range w {
				if kind == dtypes.BFloat16 {
					w[i] = math.Float32frombits(math.Float32bits(v) &^ 0xffff)
				}
			}
			rows, columns := l.Out, l.In
			if l.Embedding {
				rows, columns = columns, rows
			}
			read := func(dst []float32, row int) { copy(dst, w[row*columns:]) }
			x, err := graphx.UploadMatrix(device, kind, rows, columns, read)
			require.NoError(t, err)
			values[l.Name], weights[l.Name] = w, x
		}
		norms, err := n.Of(a, upload(a), func(layer string) *tensors.Tensor { return weights[layer] })
		require.NoError(t, err)
		require.Len(t, norms, 3)
		for i, l := range a.Layers() {
			got := graphtest.Values[float32](t, norms[i])
			require.Len(t, got, l.Out)
			for o, want := range plainNorms(a, l, values[l.Name]) {
				require.InEpsilon(t, want, got[o], 1e-6, "%s %v %d", l.Name, kind, o)
			}
		}
	}
	_, err = n.Of(a, upload(a), func(string) *tensors.Tensor { return nil })
	require.ErrorContains(t, err, `norms of "a.wide": the base model does not have its weight`)
	quantized, _, err := graphx.UploadInt8(device, normLayers[0].Out, normLayers[0].In,
		func(dst []float32, _ int) { clear(dst) })
	require.NoError(t, err)
	_, err = n.Of(a, upload(a), func(string) *tensors.Tensor { return quantized })
	require.ErrorContains(t, err, `norms of "a.wide": its weight is int8`)
}

// TestNorms_WorkBytes: what is computed at once is kept in memory.
func TestNorms_WorkBytes(t *testing.T) {
	n, err := NewNorms(graphtest.CPU(t))
	require.NoError(t, err)
	defer n.Finalize()
	bytes, err := n.WorkBytes(doraAdapter(t, normLayers))
	require.NoError(t, err)
	require.Greater(t, bytes, int64(4*normElements/2))
}

// TestNorms_ZeroRow: a row of zeros, as of unused tokens, has a norm that can be divided by.
func TestNorms_ZeroRow(t *testing.T) {
	device := graphtest.Device(t)
	a, err := New(Config{Rank: 1, DoRA: true, Targets: []string{"q_proj"}}, doraLayers(), 1)
	require.NoError(t, err)
	w := slices.Concat(make([]float32, 5), []float32{3, 0, 4, 0, 0, 1, 1, 1, 1, 0})
	require.NoError(t, a.InitMagnitudes(device, func(string) *tensors.Tensor { return graphtest.Tensor(w, 3, 5) }))
	require.Equal(t, []float32{leastNorm, 5, 2}, a.layers[0].Magnitude)
	merged := slices.Clone(w)
	require.NoError(t, a.Merge(merged, hooked))
	require.Equal(t, w, merged)
}

// buildDoRA builds what the layers of doraLayers make of ids [2, 3, 1] and x [2, 3, In]: in holds the weights, the bias
// of the first layer, then trained and norms.
func buildDoRA(a *Adapter, in []*graph.Node) []*graph.Node {
	ids, xq, xo, wq, wo, we, bias, rest := in[0], in[1], in[2], in[3], in[4], in[5], in[6], in[7:]
	n := len(rest) - a.NumNorms()
	linears, embedding := a.Hooks(Nodes{Trained: rest[:n], Norms: rest[n:], Bias: func(layer string) *graph.Node {
		if layer == hooked {
			return bias
		}
		return nil
	}})
	biased := func(x *graph.Node) *graph.Node {
		return graph.Add(linear(wq)(x), graph.ExpandLeftToRank(bias, x.Rank()))
	}
	return []*graph.Node{
		linears(xq, hooked, biased), linears(xo, "model.layers.0.self_attn.o_proj", linear(wo)),
		embedding(ids, embedded, graph.Gather(we, ids)),
	}
}

// doraInputs are the inputs of buildDoRA before trained and norms, and the weights of the layers by name.
func doraInputs() ([]*tensors.Tensor, map[string][]float32) {
	src := rand.New(rand.NewPCG(32, 1))
	w := map[string][]float32{hooked: normal(src, 15), "model.layers.0.self_attn.o_proj": normal(src, 12),
		embedded: normal(src, 45)}
	return []*tensors.Tensor{
		graphtest.Tensor([]int32{0, 8, 3, 3, 1, 5}, 2, 3, 1), graphtest.Tensor(normal(src, 30), 2, 3, 5),
		graphtest.Tensor(normal(src, 18), 2, 3, 3), graphtest.Tensor(w[hooked], 3, 5),
		graphtest.Tensor(w["model.layers.0.self_attn.o_proj"], 4, 3), graphtest.Tensor(w[embedded], 9, 5),
		graphtest.Tensor(normal(src, 3), 3),
	}, w
}

// weightsOf makes tensors of the weights of doraLayers.
func weightsOf(w map[string][]float32) func(layer string) *tensors.Tensor {
	return func(layer string) *tensors.Tensor {
		for _, l := range doraLayers() {
			rows, columns := l.Out, l.In
			if l.Embedding {
				rows, columns = columns, rows
			}
			if l.Name == layer {
				return graphtest.Tensor(w[layer], rows, columns)
			}
		}
		return nil
	}
}

// TestHooks_NewDoRAIsBase bit for bit, and with other magnitudes it is not.
func TestHooks_NewDoRAIsBase(t *testing.T) {
	device := graphtest.Device(t)
	a, err := New(Config{Rank: 2, DoRA: true, Pattern: ".*"}, doraLayers(), 1)
	require.NoError(t, err)
	in, w := doraInputs()
	require.ErrorContains(t, a.Save(t.TempDir(), ""), "not finite", "magnitudes are not set")
	require.NoError(t, a.InitMagnitudes(device, weightsOf(w)))
	for _, l := range a.layers {
		for o, want := range plainNorms(a, l, w[l.Name]) {
			require.InEpsilon(t, want, l.Magnitude[o], 1e-6)
		}
	}
	n, err := NewNorms(device)
	require.NoError(t, err)
	run := func(a *Adapter) []*tensors.Tensor {
		norms, err := n.Of(a, upload(a), weightsOf(w))
		require.NoError(t, err)
		return graphtest.Run(t, device, func(in []*graph.Node) []*graph.Node { return buildDoRA(a, in) },
			slices.Concat(in, upload(a), norms)...)
	}
	plain := a.Clone()
	plain.config.DoRA = false
	for i := range plain.layers {
		plain.layers[i].Magnitude = nil
	}
	want, got := run(plain), run(a)
	for i := range want {
		require.Equal(t, graphtest.Values[float32](t, want[i]), graphtest.Values[float32](t, got[i]))
	}
	for _, l := range a.layers {
		l.Magnitude[0] *= 2
	}
	for i, x := range run(a) {
		require.NotEqual(t, graphtest.Values[float32](t, want[i]), graphtest.Values[float32](t, x))
	}
}

// TestHooks_DoRAGradientMatchesFiniteDifferences: of A, B and the magnitudes, with norms that are constants.
func TestHooks_DoRAGradientMatchesFiniteDifferences(t *testing.T) {
	device := graphtest.Device(t)
	a := doraAdapter(t, doraLayers())
	in, w := doraInputs()
	wide := func(list []*tensors.Tensor) (out []*tensors.Tensor) {
		for _, x := range list {
			if x.DType() == dtypes.Float32 {
				x = graphtest.Tensor(widen(tensors.MustCopyFlatData[float32](x)), x.Shape().Dimensions...)
			}
			out = append(out, x)
		}
		return out
	}
	var norms []*tensors.Tensor
	for _, l := range a.layers {
		norms = append(norms, graphtest.Tensor(plainNorms(a, l, w[l.Name]), l.Out))
	}
	base, trained := wide(in), wide(upload(a))
	exec, err := graph.NewExec(device, func(in []*graph.Node) []*graph.Node {
		var loss *graph.Node
		for i, y := range buildDoRA(a, in) {
			part := graph.ReduceAllSum(graph.MulScalar(graph.Tanh(y), float64(i+1)))
			if loss == nil {
				loss = part
			} else {
				loss = graph.Add(loss, part)
			}
		}
		return append([]*graph.Node{loss}, graph.Gradient(loss, in[7:16]...)...)
	})
	require.NoError(t, err)
	var all []float64
	for _, x := range trained {
		all = append(all, tensors.MustCopyFlatData[float64](x)...)
	}
	call := func(values []float64) []*tensors.Tensor {
		inputs := slices.Clone(base)
		for _, x := range trained {
			n := x.Shape().Size()
			inputs, values = append(inputs, graphtest.Tensor(values[:n], x.Shape().Dimensions...)), values[n:]
		}
		return graphtest.Call(t, exec, slices.Concat(inputs, norms)...)
	}
	want := fd.Gradient(nil, func(x []float64) float64 { return graphtest.Values[float64](t, call(x)[0])[0] }, all,
		&fd.Settings{Formula: fd.Central, Step: 1e-5})
	var got []float64
	for _, x := range call(all)[1:] {
		got = append(got, graphtest.Values[float64](t, x)...)
	}
	require.Len(t, got, a.NumParams())
	require.InDeltaSlice(t, want, got, 1e-7)
	require.Greater(t, math.Abs(want[len(want)-1]), 1e-3)
}

// TestMerge_EqualsDoRAHooks of linear layers and an embedding.
func TestMerge_EqualsDoRAHooks(t *testing.T) {
	device := graphtest.Device(t)
	a := doraAdapter(t, doraLayers())
	in, w := doraInputs()
	n, err := NewNorms(device)
	require.NoError(t, err)
	norms, err := n.Of(a, upload(a), weightsOf(w))
	require.NoError(t, err)
	got := graphtest.Run(t, device, func(in []*graph.Node) []*graph.Node { return buildDoRA(a, in) },
		slices.Concat(in, upload(a), norms)...)
	for i, l := range []string{hooked, "model.layers.0.self_attn.o_proj", embedded} {
		merged := slices.Clone(w[l])
		require.NoError(t, a.Merge(merged, l))
		in[3+i] = graphtest.Tensor(merged, in[3+i].Shape().Dimensions...)
	}
	want := graphtest.Run(t, device, func(in []*graph.Node) []*graph.Node {
		return []*graph.Node{
			graph.Add(linear(in[3])(in[1]), graph.ExpandLeftToRank(in[6], 3)), linear(in[4])(in[2]), graph.Gather(in[5], in[0]),
		}
	}, in...)
	for i := range want {
		require.InDeltaSlice(t, graphtest.Values[float32](t, want[i]), graphtest.Values[float32](t, got[i]), 1e-5)
	}
}

// TestDoRA_SavedAsPEFT: what PEFT has saved is read and written with the same tensors, but for the base model's own.
func TestDoRA_SavedAsPEFT(t *testing.T) {
	const theirs = "testdata/dora/adapter"
	a, err := Load(theirs)
	require.NoError(t, err)
	require.True(t, a.Config().DoRA)
	require.Len(t, a.Layers(), 16)
	dir := t.TempDir()
	require.NoError(t, a.Save(dir, "test/dora"))
	require.Contains(t, readAll(t, dir)[configFile], `"use_dora": true`)
	want, err := safetensors.Open(filepath.Join(theirs, weightsFile))
	require.NoError(t, err)
	defer want.Close()
	got, err := safetensors.Open(filepath.Join(dir, weightsFile))
	require.NoError(t, err)
	defer got.Close()
	require.Len(t, got.Names(), 3*16)
	for _, name := range got.Names() {
		x, ok := want.Tensor(name)
		require.True(t, ok, name)
		y, _ := got.Tensor(name)
		require.Equal(t, x, y)
	}
	again, err := Load(dir)
	require.NoError(t, err)
	require.Equal(t, a, again)
	require.Equal(t, a, a.Clone())

	blank, err := New(a.Config(), a.shapes(), 9)
	require.NoError(t, err)
	var data [][]float32
	for _, p := range a.Params() {
		data = append(data, p.Data)
	}
	require.NoError(t, blank.SetParams(data))
	require.Equal(t, a.layers, blank.layers)
	data[2] = data[2][1:]
	require.ErrorContains(t, blank.SetParams(data), "has 40 magnitudes, not 39")
	require.ErrorContains(t, blank.SetParams(data[:47]), "want 3 each")
}

func TestDoRA_Errors(t *testing.T) {
	write := func(dora bool, change func(list []safetensors.Tensor) []safetensors.Tensor) string {
		a := doraAdapter(t, doraLayers()[:1])
		dir := t.TempDir()
		list := change(a.tensors())
		a.config.DoRA = dora
		require.NoError(t, a.Save(dir, "base"))
		require.NoError(t, writeTensors(filepath.Join(dir, weightsFile), list))
		return dir
	}
	same := func(list []safetensors.Tensor) []safetensors.Tensor { return list }
	_, err := Load(write(true, same))
	require.NoError(t, err)
	_, err = Load(write(false, same))
	require.ErrorContains(t, err, "use_dora is false")
	_, err = Load(write(true, func(list []safetensors.Tensor) []safetensors.Tensor { return list[:2] }))
	require.ErrorContains(t, err, `lora_magnitude_vector" is missing`)
	_, err = Load(write(true, func(list []safetensors.Tensor) []safetensors.Tensor {
		list[2] = safetensors.NewFloat32(list[2].Name, []int{4}, make([]float32, 4))
		return list
	}))
	require.ErrorContains(t, err, "has shape [4], want [3]")

	a := doraAdapter(t, doraLayers()[:1])
	g := graph.NewGraph(graphtest.Device(t), "misuse")
	nodes := make([]*graph.Node, 3)
	for i, x := range upload(a) {
		nodes[i] = graph.Const(g, x)
	}
	require.ErrorContains(t, graphx.Try(func() { a.Hooks(Nodes{Trained: nodes}) }), "0 norms, want 1")
	require.ErrorContains(t, graphx.Try(func() { a.Hooks(Nodes{Trained: nodes[:2]}) }), "want 3 each")
}

// writeTensors replaces a file.
func writeTensors(path string, list []safetensors.Tensor) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return safetensors.Write(f, list, nil)
}
