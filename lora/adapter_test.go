package lora

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// testLayers are the linear layers of two blocks, and what is around them.
func testLayers() []LayerShape {
	layers := []LayerShape{{Name: "lm_head", In: 6, Out: 40}}
	for _, block := range []string{"model.layers.0.", "model.layers.1.", "model.layers.10."} {
		for _, l := range []LayerShape{
			{Name: "self_attn.q_proj", In: 6, Out: 8}, {Name: "self_attn.k_proj", In: 6, Out: 4},
			{Name: "self_attn.v_proj", In: 6, Out: 4}, {Name: "self_attn.o_proj", In: 8, Out: 6},
			{Name: "mlp.gate_proj", In: 6, Out: 10}, {Name: "mlp.up_proj", In: 6, Out: 10},
			{Name: "mlp.down_proj", In: 10, Out: 6},
		} {
			l.Name = block + l.Name
			layers = append(layers, l)
		}
	}
	return layers
}

// newAdapter returns an adapter of all test layers with random A and B.
func newAdapter(t testing.TB, cfg Config) *Adapter {
	t.Helper()
	a, err := New(cfg, testLayers(), 1)
	require.NoError(t, err)
	src := rand.New(rand.NewPCG(1, 2))
	for _, l := range a.layers {
		copy(l.A, normal(src, len(l.A)))
		copy(l.B, normal(src, len(l.B)))
	}
	return a
}

func TestNew_ChoosesTargets(t *testing.T) {
	a, err := New(Config{}, testLayers(), 1)
	require.NoError(t, err)
	require.Len(t, a.Layers(), 21)
	require.True(t, slices.IsSortedFunc(a.Layers(), func(x, y Layer) int {
		if x.Name < y.Name {
			return -1
		}
		return 1
	}))
	_, ok := a.Layer("lm_head")
	require.False(t, ok)
	l, ok := a.Layer("model.layers.10.mlp.down_proj")
	require.True(t, ok)
	require.Equal(t, LayerShape{Name: "model.layers.10.mlp.down_proj", In: 10, Out: 6}, l.LayerShape)
	require.Len(t, l.A, 8*10)
	require.Len(t, l.B, 6*8)
	require.Equal(t, 3*8*(14+10+10+14+16+16+16), a.NumParams())
	require.Equal(t, Config{Rank: 8, Alpha: 16, Targets: DefaultTargets()}, a.Config())

	a, err = New(Config{Rank: 2, Targets: []string{"v_proj"}}, testLayers(), 1)
	require.NoError(t, err)
	require.Len(t, a.Layers(), 3)

	a, err = New(Config{}, []LayerShape{{Name: "a.q_proj", In: 1, Out: 1}, {Name: "a.k_proj", In: 1, Out: 1}}, 1)
	require.NoError(t, err)
	require.Len(t, a.Layers(), 2)
	require.Equal(t, []string{"q_proj", "k_proj"}, a.Config().Targets, "of the default ones those that are there")
	_, err = New(Config{}, []LayerShape{{Name: "other", In: 1, Out: 1}}, 1)
	require.ErrorContains(t, err, `no layer is called "q_proj"; the model has other`)
}

func TestNew_Start(t *testing.T) {
	layers := []LayerShape{{Name: "a.q_proj", In: 100, Out: 50}, {Name: "b.q_proj", In: 100, Out: 50}}
	cfg := Config{Rank: 64, Targets: []string{"q_proj"}}
	a, err := New(cfg, layers, 7)
	require.NoError(t, err)
	for _, l := range a.Layers() {
		require.Equal(t, make([]float32, 50*64), l.B)
		bound, squares := 0.1, 0.0
		for _, v := range l.A {
			require.LessOrEqual(t, math.Abs(float64(v)), bound)
			squares += float64(v) * float64(v)
		}
		require.InEpsilon(t, bound*bound/3, squares/float64(len(l.A)), 0.05, "variance of a uniform distribution")
	}
	require.NotEqual(t, a.layers[0].A, a.layers[1].A, "layers must not start alike")

	slices.Reverse(layers)
	again, err := New(cfg, append(layers, LayerShape{Name: "c.q_proj", In: 3, Out: 3}), 7)
	require.NoError(t, err)
	require.Equal(t, a.layers, again.layers[:2], "depends on order or on other layers")
	other, err := New(cfg, layers, 8)
	require.NoError(t, err)
	require.NotEqual(t, a.layers[0].A, other.layers[0].A, "does not depend on the seed")
}

// TestNew_Stable pins the numbers of a seed: a run must be reproducible by later versions.
func TestNew_Stable(t *testing.T) {
	a, err := New(Config{Rank: 1, Targets: []string{"q_proj"}},
		[]LayerShape{{Name: "model.layers.0.self_attn.q_proj", In: 4, Out: 2}}, 42)
	require.NoError(t, err)
	require.Equal(t, []float32{-0.46322644, 0.344286, 0.4775044, -0.32489333}, a.layers[0].A)
}

func TestNew_Errors(t *testing.T) {
	_, err := New(Config{Targets: []string{"q_proj", "wq"}}, testLayers(), 1)
	require.ErrorContains(t, err, `no layer is called "wq"; the model has down_proj, gate_proj, k_proj, lm_head,`)
	_, err = New(Config{}, nil, 1)
	require.Error(t, err)
	_, err = New(Config{Targets: []string{"q_proj"}}, []LayerShape{
		{Name: "q_proj", In: 1, Out: 1}, {Name: "q_proj", In: 1, Out: 1}, {In: 1, Out: 1}, {Name: "x", Out: 1},
	}, 1)
	for _, want := range []string{`"q_proj" is listed twice`, `layer "" is 1 to 1`, `layer "x" is 0 to 1`} {
		require.ErrorContains(t, err, want)
	}
	_, err = New(Config{Targets: []string{"q_proj"}, Ranks: map[string]int{"q_proj": 2, "down_proj": 3},
		Alphas: map[string]float64{`layers\.9\..*q_proj`: 1}}, testLayers(), 1)
	require.ErrorContains(t, err,
		`pattern "down_proj" of ranks matches no layer of the adapter, whose names end in q_proj`)
	require.ErrorContains(t, err, `pattern "layers\\.9\\..*q_proj" of alphas matches no layer`)
	require.NotContains(t, err.Error(), `pattern "q_proj"`)
}

// TestNew_Rank: a rank that no product of A and B can have is refused before anything is allocated. 100 million ended
// the process, out of memory.
func TestNew_Rank(t *testing.T) {
	wide := []LayerShape{
		{Name: "a.q_proj", In: 100, Out: 3000}, {Name: "a.k_proj", In: 300, Out: 200}, {Name: "a.v_proj", In: 5000, Out: 5000},
	}
	cfg := Config{Rank: 200, Targets: []string{"q_proj", "k_proj"}}
	_, err := New(cfg, wide, 1)
	require.NoError(t, err)
	for _, rank := range []int{201, 100_000_000, math.MaxInt} {
		cfg.Rank = rank
		_, err = New(cfg, wide, 1)
		require.ErrorContains(t, err, "want 1 to 200")
	}
	_, err = New(Config{Rank: smallRank}, testLayers(), 1)
	require.NoError(t, err, "small layers")
}

func TestConfig(t *testing.T) {
	require.NoError(t, Config{}.Validate())
	require.Equal(t, 2.0, Config{}.Scale("x"))
	require.Equal(t, 0.5, Config{Rank: 32}.Scale("x"))
	require.Equal(t, 5.0/3, Config{Rank: 3, Alpha: 5}.Scale("x"))
	err := Config{Rank: -1, Alpha: math.NaN(), Targets: []string{"", "self_attn.q_proj", "v", "v"}}.Validate()
	for _, want := range []string{"rank is -1", "alpha is NaN", `target ""`, `"self_attn.q_proj"`, `"v" is listed twice`} {
		require.ErrorContains(t, err, want)
	}
	require.Error(t, Config{Alpha: -1}.Validate())
}

func TestAdapter_CheckAndClone(t *testing.T) {
	a := newAdapter(t, Config{Rank: 2})
	require.NoError(t, a.Check(testLayers()))
	layers := testLayers()[:21] // without the last down_proj
	layers[1].In++
	err := a.Check(layers)
	require.ErrorContains(t, err,
		`no layer "model.layers.10.mlp.down_proj" that an adapter may attach to; it has down_proj, gate_proj, k_proj`)
	require.ErrorContains(t, err, `"model.layers.0.self_attn.q_proj" is 6 to 8 in the adapter and 7 to 8 in the model`)

	c := a.Clone()
	require.Equal(t, a, c)
	c.layers[0].A[0]++
	c.layers[0].B[0]++
	require.NotEqual(t, a.layers[0].A[0], c.layers[0].A[0])
	require.NotEqual(t, a.layers[0].B[0], c.layers[0].B[0])
}

func TestParams_RoundTrip(t *testing.T) {
	a := newAdapter(t, Config{Rank: 2})
	params := a.Params()
	require.Len(t, params, 42)
	require.Equal(t, "model.layers.0.mlp.down_proj.lora_A", params[0].Name)
	require.Equal(t, []int{10, 2}, params[0].Shape)
	require.Equal(t, "model.layers.0.mlp.down_proj.lora_B", params[1].Name)
	require.Equal(t, []int{2, 6}, params[1].Shape)
	l, _ := a.Layer("model.layers.0.mlp.down_proj")
	require.Equal(t, l.A[1*10+3], params[0].Data[3*2+1], "A[rank 1, in 3]")
	require.Equal(t, l.B[4*2+1], params[1].Data[1*6+4], "B[out 4, rank 1]")

	blank, err := New(Config{Rank: 2}, testLayers(), 99)
	require.NoError(t, err)
	data := make([][]float32, len(params))
	for i, p := range params {
		data[i] = p.Data
	}
	require.NoError(t, blank.SetParams(data))
	require.Equal(t, a.layers, blank.layers)

	before := blank.Clone()
	data[41] = data[41][:3]
	require.ErrorContains(t, blank.SetParams(data),
		`layer "model.layers.10.self_attn.v_proj" has 12 and 8 numbers, not 12 and 3`)
	require.ErrorContains(t, blank.SetParams(data[:41]), "41 tensors")
	require.Equal(t, before, blank, "a refused call changed something")
	params[0].Data[0]++
	require.Equal(t, before.layers[0].A, a.layers[0].A, "Params shares memory")
}

// TestCheck_Bounded: an adapter of the experts of a mixture, whose adapters attach to attention, is refused in a line
// that can be read. There were 1,536.
func TestCheck_Bounded(t *testing.T) {
	var layers []LayerShape
	for i := range 1536 {
		layers = append(layers, LayerShape{Name: fmt.Sprintf("model.layers.0.mlp.experts.%d.up_proj", i), In: 1, Out: 1})
	}
	a, err := New(Config{Targets: []string{"up_proj"}, Rank: 1}, layers, 1)
	require.NoError(t, err)
	err = a.Check([]LayerShape{{Name: "model.layers.0.self_attn.q_proj", In: 1, Out: 1}})
	require.ErrorContains(t, err, `the model has no layer "model.layers.0.mlp.experts.0.up_proj", "model.layers.0.mlp.`)
	require.ErrorContains(t, err, "and 1516 more that an adapter may attach to; it has q_proj")
	for i := range layers {
		layers[i].In = 2
	}
	err = a.Check(layers)
	require.ErrorContains(t, err, "and 1516 more problems")
	require.Len(t, strings.Split(err.Error(), "\n"), 21)
}
