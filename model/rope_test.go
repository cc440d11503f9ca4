package model

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"math/cmplx"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/internal/graphx/graphtest"
	"github.com/goart-dev/art/internal/safetensors"
)

// The references of this file were made with transformers 5.24.0 and torch 2.15.0: python3 make.py in this folder.
const ropeFolder = "../internal/dev/testdata/rope"

func readRopeFile(t testing.TB, name string, to any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(ropeFolder, name))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, to))
}

// near is the largest difference, relative to the largest wanted number.
func near(t *testing.T, want, got []float64, most float64, what string) {
	t.Helper()
	require.Len(t, got, len(want), what)
	for i := range want {
		require.InDelta(t, want[i], got[i], most*math.Abs(want[i])+1e-12, "%s: %d", what, i)
	}
}

// TestRope_FrequenciesMatchTransformers: all types, with all settings, for whole and partly rotated heads.
func TestRope_FrequenciesMatchTransformers(t *testing.T) {
	var cases []struct {
		HeadDim      int     `json:"head_dim"`
		Theta        float64 `json:"rope_theta"`
		MaxPositions int     `json:"max_position_embeddings"`
		Context      int
		Settings     map[string]any
		Frequencies  []float64
		Attention    float64
	}
	readRopeFile(t, "frequencies.json", &cases)
	types := map[any]int{}
	for i, want := range cases {
		name := fmt.Sprint(i, want.Settings)
		types[want.Settings["rope_type"]]++
		c := &Config{HeadDim: want.HeadDim, RopeTheta: want.Theta, MaxPositions: want.MaxPositions}
		r := rope{theta: want.Theta, size: want.HeadDim}
		if part, _ := want.Settings["partial_rotary_factor"].(float64); want.Settings["rope_type"] == "proportional" {
			r.turning = int(part * float64(want.HeadDim) / 2)
			r.scaling = &RopeScaling{Type: ropeLinear, Factor: want.Settings["factor"].(float64)}
		} else {
			raw, err := json.Marshal(want.Settings)
			require.NoError(t, err)
			_, alpha := want.Settings["alpha"]
			form := ropeForm{partial: 1, alpha: alpha}
			require.NoError(t, c.readRope(map[string]json.RawMessage{"rope_parameters": raw}, form), name)
			c.RopeScaling.check(c, form, func(ok bool, format string, args ...any) {
				require.True(t, ok, name+": "+format, args)
			})
			at, depends := c.WithContext(want.Context)
			require.Equal(t, slices.Contains([]any{"dynamic", "longrope"}, want.Settings["rope_type"]) && !alpha, depends)
			r = at.rope()
		}
		var got []float64
		for i := range r.size / 2 {
			got = append(got, r.frequency(i))
		}
		near(t, want.Frequencies, got, 3e-6, name)
		require.InDelta(t, want.Attention, r.attention(), 1e-7, name)
	}
	require.Len(t, types, 6, "all types")
}

// TestRope_RotatedMatchesTransformers: adjacent pairs, and parts of heads.
func TestRope_RotatedMatchesTransformers(t *testing.T) {
	var cases []struct {
		Family           string
		HeadDim          int     `json:"head_dim"`
		Theta            float64 `json:"rope_theta"`
		Partial          float64 `json:"partial_rotary_factor"`
		Interleaved      bool
		Queries, Rotated []float32
	}
	readRopeFile(t, "rotated.json", &cases)
	for _, want := range cases {
		r := rope{theta: want.Theta, size: int(float64(want.HeadDim) * want.Partial), interleaved: want.Interleaved}
		const heads = 2
		n := len(want.Queries) / heads / want.HeadDim
		cos, sin := r.tables(n)
		out := graphtest.Run(t, graphtest.Device(t), func(in []*graph.Node) []*graph.Node {
			return []*graph.Node{rotation{in[1], in[2], r.interleaved}.rotate(in[0])}
		}, graphtest.Tensor(want.Queries, 1, n, heads, want.HeadDim), graphtest.Tensor(cos, 1, n, 1, r.size),
			graphtest.Tensor(sin, 1, n, 1, r.size))
		require.InDeltaSlice(t, want.Rotated, graphtest.Values[float32](t, out[0]), 1e-5, want.Family)
	}
}

// ropeCase is a tiny model with a kind of RoPE.
type ropeCase struct {
	Weights     string
	Context     int
	IDs, Greedy []int32
	Loss        float64
	Config      map[string]any
}

type ropeCases struct {
	Positions []int
	Cases     map[string]*ropeCase
}

// load reads the model, for the context of the case.
func (c *ropeCase) load(t testing.TB) *Weights {
	t.Helper()
	dir := t.TempDir()
	text, err := json.Marshal(c.Config)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, ConfigFile), text, 0o600))
	data, err := os.ReadFile(filepath.Join(ropeFolder, c.Weights+".safetensors"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, WeightsFile), data, 0o600))
	w, err := Load(dir)
	require.NoError(t, err)
	w.Config, _ = w.Config.WithContext(c.Context)
	return w
}

func eachRope(t *testing.T, test func(t *testing.T, name string, c *ropeCase, reference func(name string) []float32)) {
	var all ropeCases
	readRopeFile(t, "cases.json", &all)
	f, err := safetensors.Open(filepath.Join(ropeFolder, "reference.safetensors"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.Close()) })
	for _, name := range slices.Sorted(maps.Keys(all.Cases)) {
		t.Run(name, func(t *testing.T) {
			test(t, name, all.Cases[name], func(what string) []float32 {
				x, ok := f.Tensor(what + "." + name)
				require.True(t, ok)
				values, err := x.Float32s()
				require.NoError(t, err)
				return values
			})
		})
	}
}

// TestRope_ModelsMatchTransformers: logits, gradient and greedy tokens of whole models, with and without a cache.
func TestRope_ModelsMatchTransformers(t *testing.T) {
	eachRope(t, func(t *testing.T, _ string, c *ropeCase, reference func(string) []float32) {
		w := c.load(t)
		agree(t, reference("logits"), withLogits(t, w, nil).logprobs(t, c.IDs, 1))
		loss, grads := newLossOf(t, w.Config, c.IDs, 1).gradient(t, w)
		require.InDelta(t, c.Loss, loss, 1e-5)
		i := slices.IndexFunc(w.Tensors, func(x Tensor) bool {
			return x.Name == fmt.Sprintf("model.layers.%d.self_attn.q_proj.weight", w.Config.NumLayers-1)
		})
		require.InDeltaSlice(t, reference("gradient"), grads[i], 1e-4)

		f, v := newForward(t, w, nil, nil), w.Config.VocabSize
		ids := slices.Clone(c.IDs)
		for range c.Greedy {
			got := f.logprobs(t, ids, 1)
			last := got[len(got)-v:]
			ids = append(ids, int32(slices.Index(last, slices.Max(last))))
		}
		require.Equal(t, c.Greedy, append([]int32{}, ids[len(c.IDs):]...))
		want, cached, start := f.logprobs(t, c.IDs, 1), newCached(t, f, 1, 64), 0
		for _, width := range []int{5, 1, 2, len(c.IDs) - 8} {
			if width > 0 {
				got := cached.logprobs(t, c.IDs[start:start+width], []int32{int32(start)}, []int{width})
				sameBits(t, want[start*v:(start+width)*v], got[:width*v], "%d tokens after %d", width, start)
			}
			start += width
		}
	})
}

// TestRope_LongPositions: angles of thousands of radians are exact in the tables, which powers of a complex number
// show; transformers multiplies positions by frequencies in float32, and differs from them.
func TestRope_LongPositions(t *testing.T) {
	var all ropeCases
	readRopeFile(t, "cases.json", &all)
	eachRope(t, func(t *testing.T, name string, c *ropeCase, reference func(string) []float32) {
		if c.Weights != "llama" || len(c.Greedy) == 0 {
			return
		}
		r := c.load(t).Config.rope()
		cos, sin := r.tables(8192)
		theirs := [2][]float32{reference("cos"), reference("sin")}
		worst := 0.0
		for row, p := range all.Positions {
			for i := range r.size / 2 {
				want := cmplx.Rect(1, r.frequency(i))
				rotated, square := complex(r.attention(), 0), want
				for n := p; n > 0; n >>= 1 {
					if n&1 == 1 {
						rotated *= square
					}
					square *= square
				}
				require.InDelta(t, real(rotated), cos[p*r.size+i], 1e-7*r.attention())
				require.InDelta(t, -imag(rotated), sin[p*r.size+i], 1e-7*r.attention())
				worst = max(worst, math.Abs(real(rotated)-float64(theirs[0][row*r.size+i])),
					math.Abs(imag(rotated)-float64(theirs[1][row*r.size+i])))
			}
		}
		t.Logf("%s: transformers differs by up to %.2g up to position %d", name, worst, slices.Max(all.Positions))
		require.Less(t, worst, 2e-3)
	})
}

// TestRope_LongInput: the last logits of 3,100 tokens are those of a float64 forward pass of its own.
func TestRope_LongInput(t *testing.T) {
	const n = 3100
	c := &Config{ModelType: "llama", HiddenAct: "silu", VocabSize: 64, HiddenSize: 32, IntermediateSize: 48, NumLayers: 1,
		NumHeads: 2, NumKVHeads: 2, HeadDim: 16, MaxPositions: 4096, RMSNormEps: 1e-6, RopeTheta: 1e4}
	ids := testTokens(rand.New(rand.NewPCG(seed, 60)), c, n)
	factors := []float64{1, 1.5, 2, 3, 4, 6, 8, 9}
	for _, s := range []*RopeScaling{
		{Type: ropeYarn, Factor: 8, OriginalPositions: 512}, {Type: ropeDynamic, Factor: 4},
		{Type: ropeLong, ShortFactors: factors, LongFactors: factors, OriginalPositions: 512},
	} {
		at := *c
		at.RopeScaling = s
		if s.Type == ropeDynamic {
			at.MaxPositions = 1024
		}
		require.NoError(t, at.Validate())
		resolved, _ := at.WithContext(4096)
		w, err := Random(resolved, seed)
		require.NoError(t, err)
		got := withLogits(t, w, nil).logprobs(t, ids, 1)
		want := float64Logits(t, w, ids)
		for i, x := range want {
			require.InDelta(t, x, got[(n-1)*c.VocabSize+i], 1e-4, "%s: %d", s.Type, i)
		}
	}
}

// float64Logits computes the logits after the last token of a Llama of one layer with as many heads of keys as of
// queries.
func float64Logits(t *testing.T, w *Weights, ids []int32) []float64 {
	c := w.Config
	times := func(name string, x []float64) (y []float64) {
		m := find(t, w, name)
		for row := range m.Shape[0] {
			sum := 0.0
			for i, v := range x {
				sum += float64(m.Data[row*m.Shape[1]+i]) * v
			}
			y = append(y, sum)
		}
		return y
	}
	normed := func(name string, x []float64) []float64 {
		sum, y := 0.0, slices.Clone(x)
		for _, v := range x {
			sum += v * v
		}
		for i := range y {
			y[i] *= float64(find(t, w, name).Data[i]) / math.Sqrt(sum/float64(len(x))+c.RMSNormEps)
		}
		return y
	}
	r := c.rope()
	rotated := func(x []float64, p int) []float64 {
		for h := 0; h < len(x); h += r.size {
			for i := range r.size / 2 {
				z := complex(x[h+i], x[h+i+r.size/2]) * cmplx.Rect(r.attention(), math.Mod(float64(p)*r.frequency(i), 2*math.Pi))
				x[h+i], x[h+i+r.size/2] = real(z), imag(z)
			}
		}
		return x
	}
	const layer = "model.layers.0."
	var keys, values [][]float64
	var x, h []float64
	for p, id := range ids {
		x = nil
		for _, v := range find(t, w, "model.embed_tokens.weight").Data[int(id)*c.HiddenSize:][:c.HiddenSize] {
			x = append(x, float64(v))
		}
		h = normed(layer+"input_layernorm.weight", x)
		keys = append(keys, rotated(times(layer+"self_attn.k_proj.weight", h), p))
		values = append(values, times(layer+"self_attn.v_proj.weight", h))
	}
	q := rotated(times(layer+"self_attn.q_proj.weight", h), len(ids)-1)
	attended := make([]float64, len(q))
	for from := 0; from < len(q); from += c.HeadDim {
		sum := 0.0
		for p := range keys {
			score := 0.0
			for i := from; i < from+c.HeadDim; i++ {
				score += q[i] * keys[p][i]
			}
			weight := math.Exp(score / math.Sqrt(float64(c.HeadDim)))
			sum += weight
			for i := from; i < from+c.HeadDim; i++ {
				attended[i] += weight * values[p][i]
			}
		}
		for i := from; i < from+c.HeadDim; i++ {
			attended[i] /= sum
		}
	}
	for i, v := range times(layer+"self_attn.o_proj.weight", attended) {
		x[i] += v
	}
	h = normed(layer+"post_attention_layernorm.weight", x)
	gate, up := times(layer+"mlp.gate_proj.weight", h), times(layer+"mlp.up_proj.weight", h)
	for i, g := range gate {
		up[i] *= g / (1 + math.Exp(-g))
	}
	for i, v := range times(layer+"mlp.down_proj.weight", up) {
		x[i] += v
	}
	return times("lm_head.weight", normed("model.norm.weight", x))
}

// TestWithContext: the choice depends on the side of the border that a context is on, the result says it in keys of its
// own, and a model without such a RoPE stays as it is.
func TestWithContext(t *testing.T) {
	c := testConfig()
	same, depends := c.WithContext(3)
	require.Same(t, c, same)
	require.False(t, depends)

	short, long := slices.Repeat([]float64{1.25}, 16), slices.Repeat([]float64{7}, 16)
	c.RopeScaling = &RopeScaling{Type: ropeLong, ShortFactors: short, LongFactors: long, OriginalPositions: 40}
	require.NoError(t, c.Validate())
	attention := math.Sqrt(1 + math.Log(4)/math.Log(40))
	for tokens, want := range map[int]struct {
		positions int
		factor    float64
	}{2: {40, 1.25}, 40: {40, 1.25}, 41: {160, 7}, 160: {160, 7}, 1000: {160, 7}} {
		at, depends := c.WithContext(tokens)
		require.True(t, depends)
		require.NoError(t, at.Validate())
		require.Equal(t, want.positions, at.MaxPositions, tokens)
		require.InDelta(t, 1/want.factor, at.rope().frequency(0), 1e-12)
		require.InDelta(t, attention, at.rope().attention(), 1e-12, "that of the model, whatever is chosen")
		data, err := json.Marshal(at)
		require.NoError(t, err)
		read, err := ParseConfig(data)
		require.NoError(t, err)
		require.Equal(t, at, read, "a model that is saved is read with the choice")
	}
	require.Equal(t, 160, c.MaxPositions)
	require.Equal(t, short, c.RopeScaling.ShortFactors)

	c.RopeScaling = &RopeScaling{Type: ropeDynamic, Factor: 3}
	require.NoError(t, c.Validate())
	for tokens, want := range map[int]int{2: 160, 160: 160, 161: 161, 480: 480, 481: 480, 9999: 480} {
		at, depends := c.WithContext(tokens)
		require.True(t, depends)
		require.NoError(t, at.Validate())
		require.Equal(t, want, at.MaxPositions, tokens)
		if tokens <= 160 {
			require.Equal(t, c, at)
			continue
		}
		require.Nil(t, at.RopeScaling)
		require.InDelta(t, 1e4*math.Pow(3*float64(want)/160-2, 32./30), at.RopeTheta, 1e-6)
	}
}

// ropeConfig returns the JSON of a model with such a rope_scaling, or rope_parameters, of a head of 128.
func ropeConfig(t *testing.T, key string, settings, changes map[string]any) []byte {
	t.Helper()
	all := maps.Clone(changes)
	if all == nil {
		all = map[string]any{}
	}
	all[key] = settings
	if key == "rope_parameters" {
		all["rope_scaling"] = "-"
	}
	return withKeys(t, all)
}

// TestParseConfig_RopeTypes: each setting of each type is read from either spelling, is written, and is read again.
func TestParseConfig_RopeTypes(t *testing.T) {
	pairs := func(x float64) []float64 { return slices.Repeat([]float64{x}, 64) }
	for name, settings := range map[string]map[string]any{
		"linear":  {"factor": 2.5},
		"dynamic": {"factor": 2},
		"llama3":  {"factor": 8, "low_freq_factor": 1, "high_freq_factor": 4, "original_max_position_embeddings": 8192},
		"yarn":    {"factor": 4},
		"yarn all": {"factor": 4, "original_max_position_embeddings": 10240, "attention_factor": 0.9, "beta_fast": 16,
			"beta_slow": 2, "mscale": 0.7, "mscale_all_dim": 0.5, "truncate": false},
		"longrope": {"short_factor": pairs(1), "long_factor": pairs(4)},
		"longrope all": {"short_factor": pairs(1), "long_factor": pairs(4), "original_max_position_embeddings": 4096,
			"attention_factor": 1.2, "factor": 8},
	} {
		settings["rope_type"], _, _ = strings.Cut(name, " ")
		var outside map[string]any
		if x := settings["original_max_position_embeddings"]; x != nil && settings["rope_type"] == "longrope" {
			outside = map[string]any{"original_max_position_embeddings": x}
		}
		var read [2]*Config
		for i, key := range []string{"rope_scaling", "rope_parameters"} {
			c, err := ParseConfig(ropeConfig(t, key, settings, outside))
			require.NoError(t, err, name)
			data, err := json.Marshal(c)
			require.NoError(t, err)
			read[i], err = ParseConfig(data)
			require.NoError(t, err, name)
			require.Equal(t, c, read[i], name)
			var written struct {
				Scaling map[string]any `json:"rope_scaling"`
			}
			require.NoError(t, json.Unmarshal(data, &written))
			for key, want := range settings {
				require.EqualValues(t, fmt.Sprint(want), fmt.Sprint(written.Scaling[key]), "%s: %s", name, key)
			}
		}
		require.Equal(t, read[0], read[1], name)
	}
}

// TestParseConfig_RefusesRope: what transformers would compute otherwise, or fails at, is refused by its name.
func TestParseConfig_RefusesRope(t *testing.T) {
	type object = map[string]any
	with := func(base object, changes object) object {
		out := maps.Clone(base)
		maps.Copy(out, changes)
		return out
	}
	pairs := func(n int, x any) (list []any) { return slices.Repeat([]any{x}, n) }
	yarn := object{"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 10240}
	long := object{"rope_type": "longrope", "short_factor": pairs(64, 1), "long_factor": pairs(64, 4)}
	dynamic, linear := object{"rope_type": "dynamic", "factor": 2.0}, object{"rope_type": "linear", "factor": 2.0}
	for i, c := range []struct {
		settings, changes object
		want              string
	}{
		{with(yarn, object{"factor": 0}), nil, "factor is 0, want a positive number"},
		{with(yarn, object{"factor": -4}), nil, "factor is -4"},
		{with(yarn, object{"factor": 1e30}), nil, "factor is 1e+30"},
		{with(yarn, object{"factor": "4"}), nil, "cannot unmarshal string"},
		{with(yarn, object{"attention_factor": 0.0}), nil, "attention_factor is 0"},
		{with(yarn, object{"attention_factor": -1.0}), nil, "attention_factor is -1"},
		{with(yarn, object{"beta_fast": -1.0}), nil, "beta_fast is -1"},
		{with(yarn, object{"beta_fast": 0.5}), nil, "beta_fast is 0.5 and beta_slow 1"},
		{with(yarn, object{"mscale": -0.5}), nil, "mscale is -0.5"},
		{with(yarn, object{"truncate": "no"}), nil, "cannot unmarshal string"},
		{with(yarn, object{"original_max_position_embeddings": -1}), nil, "original_max_position_embeddings is -1"},
		{with(yarn, object{"original_max_position_embeddings": 0}), nil, "original_max_position_embeddings is 0"},
		{with(yarn, object{"original_max_position_embeddings": 1.5}), nil, "original_max_position_embeddings"},
		{with(yarn, object{"long_factor": pairs(64, 1)}), nil, `long_factor is not supported with rope_type "yarn"`},
		{with(yarn, object{"llama_4_scaling_beta": 0.1}), nil, "llama_4_scaling_beta is not supported"},
		{with(yarn, object{"partial_rotary_factor": 0.5}), nil, "partial_rotary_factor is not supported"},
		{with(yarn, object{"type": "su"}), nil, `type is "su" and rope_type "yarn": keep one`},
		{yarn, object{"rope_theta": 1}, "rope_theta is 1, want more than 1"},
		{yarn, object{"original_max_position_embeddings": 8192}, "is 8192, and 10240 among the settings"},
		{with(yarn, object{"original_max_position_embeddings": nil}), object{"original_max_position_embeddings": 8192},
			"transformers 4 takes original_max_position_embeddings of rope_type \"yarn\" for 40960, and 5 for 8192"},
		{with(long, object{"original_max_position_embeddings": 4096}), nil,
			"transformers 4 takes original_max_position_embeddings of rope_type \"longrope\" for 40960, and 5 for 4096"},
		{with(long, object{"factor": 8}), object{"original_max_position_embeddings": 4096},
			"transformers 4 takes factor of rope_type \"longrope\""},
		{with(long, object{"short_factor": pairs(63, 1)}), nil, "short_factor has 63 numbers, want one for each of the 64 pairs"},
		{with(long, object{"long_factor": pairs(65, 1)}), nil, "long_factor has 65 numbers"},
		{with(long, object{"long_factor": []any{}}), nil, "long_factor has 0 numbers"},
		{with(long, object{"long_factor": nil}), nil, "long_factor has 0 numbers"},
		{with(long, object{"long_factor": 4}), nil, "cannot unmarshal number"},
		{with(long, object{"long_factor": pairs(64, -1)}), nil, "long_factor is -1"},
		{with(long, object{"short_factor": pairs(64, 0)}), nil, "short_factor is 0"},
		{with(long, object{"short_factor": pairs(64, 1e12)}), nil, "short_factor is 1e+12"},
		{with(long, object{"short_factor": pairs(64, "x")}), nil, "cannot unmarshal string"},
		{with(long, object{"factor": 0}), nil, "factor is 0"},
		{with(long, object{"truncate": false}), nil, "truncate is not supported"},
		{long, object{"original_max_position_embeddings": 1}, "set attention_factor"},
		{with(long, object{"rope_type": "su"}), nil, `rope_type "su" is not supported`},
		{with(dynamic, object{"alpha": 1000.0}), nil, `alpha is not supported with rope_type "dynamic"`},
		{with(dynamic, object{"original_max_position_embeddings": 4096}), nil, "is not supported with rope_type"},
		{with(dynamic, object{"factor": nil}), nil, "factor is 0"},
		{dynamic, object{"head_dim": 2}, "needs more than the 2 numbers"},
		{with(linear, object{"factor": 1e9}), nil, "factor is 1e+09"},
		{object{"rope_type": "proportional"}, nil, `rope_type "proportional" is not supported`},
		{object{"rope_type": "llama3", "factor": 8, "low_freq_factor": 4, "high_freq_factor": 4,
			"original_max_position_embeddings": 8192}, nil, "want the second greater"},
	} {
		_, err := ParseConfig(ropeConfig(t, "rope_scaling", c.settings, c.changes))
		require.ErrorContains(t, err, c.want, i)
	}
	_, err := ParseConfig([]byte(`{"model_type": "llama", "rope_scaling": {"rope_type": "linear", "factor": NaN}}`))
	require.Error(t, err)
	_, err = ParseConfig(ropeConfig(t, "rope_parameters",
		object{"full_attention": with(yarn, object{"truncate": false})},
		object{"model_type": "gemma3_text", "architectures": "-", "sliding_window": 512, "use_sliding_window": "-"}))
	require.ErrorContains(t, err, "truncate is false, which transformers 5 does not read")
}

// TestParseConfig_RopeMutations: whatever a file says of RoPE is computed as transformers computes it, or refused.
func TestParseConfig_RopeMutations(t *testing.T) {
	var all struct {
		Common map[string]json.RawMessage
		Cases  []struct {
			Config      map[string]json.RawMessage
			Frequencies []float64
			Attention   float64
			Fails       bool
		}
	}
	readRopeFile(t, "mutations.json", &all)
	read := 0
	for _, want := range all.Cases {
		maps.Copy(want.Config, all.Common)
		data, err := json.Marshal(want.Config)
		require.NoError(t, err)
		text := string(data)
		c, err := ParseConfig(data)
		if err != nil {
			continue
		}
		read++
		r := c.rope()
		if want.Fails { // at a null, and at a YaRN without a factor; here they are what an absent key and a null are
			require.True(t, strings.Contains(text, "null") || strings.Contains(text, `"yarn"`) &&
				!strings.Contains(text, `"factor"`), text)
			continue
		}
		var got []float64
		for i := range r.size / 2 {
			got = append(got, r.frequency(i))
		}
		near(t, want.Frequencies, got, 3e-6, text)
		require.InEpsilon(t, want.Attention, r.attention(), 1e-6, text)
	}
	t.Logf("%d of %d are read", read, len(all.Cases))
	require.Greater(t, read, 200)
}

// TestRopeForm: what later families read, from within the object and beside it.
func TestRopeForm(t *testing.T) {
	read := func(form ropeForm, c Config, keys string) (*Config, error) {
		var raw map[string]json.RawMessage
		require.NoError(t, json.Unmarshal([]byte(keys), &raw))
		c.MaxPositions, c.HeadDim = 4096, 64
		return &c, c.readRope(raw, form)
	}
	partial := ropeForm{partial: 0.5}
	for keys, want := range map[string]float64{
		`{}`: 0.5, `{"rope_parameters": {"partial_rotary_factor": 0.25}}`: 0.25, `{"rope_parameters": {}}`: 0.5,
	} {
		c, err := read(partial, Config{}, keys)
		require.NoError(t, err)
		require.Equal(t, want, c.PartialRotaryFactor)
		require.Equal(t, int(64*want), c.rope().size)
	}
	_, err := read(partial, Config{PartialRotaryFactor: 0.75}, `{"rope_parameters": {"partial_rotary_factor": 0.25}}`)
	require.ErrorContains(t, err, "partial_rotary_factor is 0.25, and 0.75 outside: keep one")
	_, err = read(partial, Config{}, `{"rope_scaling": {"partial_rotary_factor": 0.25}}`)
	require.ErrorContains(t, err, "transformers 4 does not read")
	long := ropeForm{long: true}
	for _, name := range []string{"su", "yarn", "longrope"} {
		c, err := read(long, Config{}, `{"original_max_position_embeddings": 64, "rope_scaling": {"type": "`+name+`"}}`)
		require.NoError(t, err)
		require.Equal(t, &RopeScaling{Type: ropeLong, OriginalPositions: 64}, c.RopeScaling)
	}
	_, err = read(long, Config{}, `{"rope_scaling": {"type": "linear", "factor": 2}}`)
	require.ErrorContains(t, err, `rope_type "linear" is not supported`)
}

// TestWriteGGUF_Rope: YaRN, and LongRoPE of architectures whose factors llama.cpp reads, are read back; others are
// refused.
func TestWriteGGUF_Rope(t *testing.T) {
	eachRope(t, func(t *testing.T, name string, c *ropeCase, _ func(string) []float32) {
		w := c.load(t)
		var problem string
		switch s := w.Config.RopeScaling; {
		case c.Weights == "gemma3":
			problem = "llama.cpp does not build gemma3"
		case s != nil && s.Truncate != nil:
			problem = "with YaRN whose truncate is false, or whose beta_fast and beta_slow are not 32 and 1"
		}
		if problem != "" {
			require.ErrorContains(t, saved(t, w).WriteGGUF(io.Discard, &GGUFOptions{Type: "Q8_0"}), problem)
			return
		}
		got := quantized(t, saved(t, w), &GGUFOptions{Type: "Q8_0"}).Config
		require.Equal(t, w.Config.MaxPositions, got.MaxPositions)
		want, read := w.Config.rope(), got.rope()
		require.InEpsilon(t, want.attention(), read.attention(), 1e-6)
		for i := range want.size / 2 {
			require.InEpsilon(t, want.frequency(i), read.frequency(i), 1e-6)
		}
	})
	c := testConfig()
	factors := slices.Repeat([]float64{2}, 16)
	c.RopeScaling = &RopeScaling{Type: ropeLong, ShortFactors: factors, LongFactors: factors, OriginalPositions: 16}
	err := saved(t, testWeights(t, c)).WriteGGUF(io.Discard, nil)
	require.ErrorContains(t, err, "llama.cpp does not build qwen3: with LongRoPE")
	c.RopeScaling = &RopeScaling{Type: ropeYarn, Factor: 4, OriginalPositions: 16, MScale: 1, MScaleAllDim: 1}
	got := quantized(t, saved(t, testWeights(t, c)), nil).Config.rope()
	require.InDelta(t, 1, got.attention(), 1e-6)
	require.InEpsilon(t, c.rope().frequency(15), got.frequency(15), 1e-6)
	c.RopeScaling.BetaFast = 16
	err = saved(t, testWeights(t, c)).WriteGGUF(io.Discard, nil)
	require.ErrorContains(t, err, "beta_fast and beta_slow are not 32 and 1")
}

// TestWriteGGUF_RopeInLlamaCpp: llama.cpp computes the logits of the same numbers, with YaRN and on both sides of the
// border of LongRoPE; see internal/dev/conformance/llamacpp/rope.py.
func TestWriteGGUF_RopeInLlamaCpp(t *testing.T) {
	python := os.Getenv("ART_LLAMACPP_PYTHON")
	if python == "" {
		t.Skip("ART_LLAMACPP_PYTHON is not set")
	}
	eachRope(t, func(t *testing.T, name string, c *ropeCase, _ func(string) []float32) {
		if c.Weights != "llama" || name == "yarn-all" {
			return
		}
		context := 512 // llama.cpp has no shorter one than 256
		if name == "longrope-short" {
			c.Config["max_position_embeddings"], c.Context = 2048, 1024
			c.Config["rope_parameters"].(map[string]any)[originalKey] = 1024
		}
		folder := saved(t, c.load(t))
		path := filepath.Join(t.TempDir(), "model.gguf")
		var b bytes.Buffer
		tokenizer := map[string]any{"tokenizer.ggml.model": "no_vocab"}
		require.NoError(t, folder.WriteGGUF(&b, &GGUFOptions{Type: "Q8_0", Tokenizer: tokenizer}))
		require.NoError(t, os.WriteFile(path, b.Bytes(), 0o600))
		file, err := Open(path)
		require.NoError(t, err)
		defer func() { require.NoError(t, file.Close()) }()
		request, err := json.Marshal(map[string]any{"model": path, "context": context, "ids": c.IDs})
		require.NoError(t, err)
		cmd := exec.CommandContext(t.Context(), python, "../internal/dev/conformance/llamacpp/rope.py")
		var stderr strings.Builder
		cmd.Stdin, cmd.Stderr = bytes.NewReader(request), &stderr
		answer, err := cmd.Output()
		require.NoError(t, err, stderr.String())
		var theirs [][]float32
		require.NoError(t, json.Unmarshal(answer, &theirs))
		agree(t, slices.Concat(theirs...), withLogits(t, file.Weights(), nil).logprobs(t, c.IDs, 1))
	})
}
