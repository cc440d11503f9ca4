package lora

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/internal/safetensors"
)

// TestPatterns_AsPEFT: the modules, the ranks and the alphas that PEFT's own functions find, see testdata/patterns.py.
func TestPatterns_AsPEFT(t *testing.T) {
	content, err := os.ReadFile("testdata/patterns.json")
	require.NoError(t, err)
	var golden struct {
		Modules []string
		Cases   []struct {
			Fields json.RawMessage
			Chosen map[string]struct {
				Rank  int
				Alpha float64
			}
		}
	}
	require.NoError(t, json.Unmarshal(content, &golden))
	for _, c := range golden.Cases {
		t.Run(compact(c.Fields), func(t *testing.T) {
			var fields map[string]json.RawMessage
			require.NoError(t, json.Unmarshal(c.Fields, &fields))
			for key, value := range map[string]string{"peft_type": `"LORA"`, "r": "4", "lora_alpha": "8"} {
				fields[key] = json.RawMessage(value)
			}
			if fields[keyTargets] == nil {
				fields[keyTargets] = json.RawMessage(`["q_proj"]`)
			}
			config, err := json.Marshal(fields)
			require.NoError(t, err)
			cfg, chosen, err := decodePEFT(config)
			require.NoError(t, err)
			for _, module := range golden.Modules {
				want, isChosen := c.Chosen[module]
				ok, err := chosen.selects(LayerShape{Name: module})
				require.NoError(t, err)
				require.Equal(t, isChosen, ok, module)
				if !ok {
					continue
				}
				require.Equal(t, want.Rank, cfg.LayerRank(module), module)
				scale := want.Alpha / float64(want.Rank)
				if cfg.RankStabilized {
					scale = want.Alpha / math.Sqrt(float64(want.Rank))
				}
				require.Equal(t, scale, cfg.Scale(module), module)
			}
		})
	}
}

// TestLoad_AlphaPatterns: adapters whose scale was another than PEFT's, or that were refused.
func TestLoad_AlphaPatterns(t *testing.T) {
	for dir, want := range map[string]map[string]float64{
		"overlapping_alpha_pattern": {"0.self_attn.q_proj": 8, "1.self_attn.q_proj": 8, "0.self_attn.v_proj": 2},
		"lookahead_alpha_pattern":   {"0.self_attn.q_proj": 16, "1.self_attn.q_proj": 16, "1.self_attn.v_proj": 2},
	} {
		a, err := Load(filepath.Join("testdata", dir))
		require.NoError(t, err, dir)
		again := t.TempDir()
		require.NoError(t, a.Clone().Save(again, "tiny"))
		b, err := Load(again)
		require.NoError(t, err, dir)
		require.Equal(t, a.LayoutKey(), b.LayoutKey())
		for name, scale := range want {
			name = "model.layers." + name
			l, ok := a.Layer(name)
			require.True(t, ok)
			require.Equal(t, 4, l.rank())
			require.Equal(t, 4, a.Config().LayerRank(name))
			require.Equal(t, scale, a.Config().Scale(name), "%s: %s", dir, name)
			require.Equal(t, scale, b.Config().Scale(name), "%s: %s, written and read", dir, name)

			merged, unscaled := make([]float32, l.Out*l.In), make([]float32, l.Out*l.In)
			require.NoError(t, b.Merge(merged, name))
			plain := &Adapter{config: Config{Rank: 4, Alpha: 4}, layers: []Layer{l}}
			require.NoError(t, plain.Merge(unscaled, name))
			for i, x := range unscaled {
				require.InDelta(t, scale*float64(x), merged[i], 1e-5)
			}
		}
	}
}

// TestLoad_RepeatedKeys: as in Python, a key that comes twice has its first place and its last value.
func TestLoad_RepeatedKeys(t *testing.T) {
	cfg, _, err := decodePEFT([]byte(`{"peft_type": "LORA", "r": 9, "target_modules": ["q_proj"], "r": 4,
		"alpha_pattern": {"q_proj": 1, ".*q_proj": 2, "q_proj": 3}}`))
	require.NoError(t, err)
	require.Equal(t, 3.0/4, cfg.Scale("a.q_proj"))
	require.Equal(t, []string{"q_proj", ".*q_proj"}, cfg.alphaOrder)
}

// TestConfig_ChangedPatterns: what is changed in a configuration that was read counts.
func TestConfig_ChangedPatterns(t *testing.T) {
	a, err := Load("testdata/overlapping_alpha_pattern")
	require.NoError(t, err)
	const layer = "model.layers.0.self_attn.q_proj"
	cfg := a.Config()
	cfg.Alphas[".*"] = 4
	require.Equal(t, 8.0, cfg.Scale(layer), "those of the file come first")
	delete(cfg.Alphas, "q_proj")
	require.Equal(t, 16.0, cfg.Scale(layer))
	require.Equal(t, 8.0, a.Config().Scale(layer))
}

// hostile are patterns that take exponential time with the name of a layer.
var hostile = []string{`(.*.*)*x`, `((\w+\.?)+)+!`, `(?=((\w+\.?)+)+!)q_proj`, `(.*[a-z.]*)*x`}

// TestLoad_HostilePatterns: an adapter's file may come from anyone, and no pattern in it takes longer than the limit.
// One second for each layer was hours for many.
func TestLoad_HostilePatterns(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for the limit")
	}
	const layer = "model.layers.0.self_attn.a_very_long_name_of_some_projection_aaaaaaaaaaaaaaaaaaaaaaaa.q_proj"
	var layers []LayerShape
	for i := range 500 {
		layers = append(layers, LayerShape{Name: strings.Replace(layer, "0", fmt.Sprint(i), 1), In: 1, Out: 1})
	}
	a, err := New(Config{Rank: 1, Targets: []string{"q_proj"}}, layers, 1)
	require.NoError(t, err)
	var weights bytes.Buffer
	require.NoError(t, safetensors.Write(&weights, a.tensors(), nil))
	for i, pattern := range hostile {
		text, err := json.Marshal(pattern)
		require.NoError(t, err)
		field := []string{`"target_modules": %s`, `"alpha_pattern": {%s: 1}`, `"rank_pattern": {%s: 1}`,
			`"target_modules": "all-linear", "exclude_modules": %s`}[i]
		config := fmt.Sprintf(`{"peft_type": "LORA", "r": 1, "lora_alpha": 1, `+field+`}`, text)
		file, err := safetensors.Parse(weights.Bytes())
		require.NoError(t, err)
		begin := time.Now()
		_, err = parse([]byte(config), file)
		require.ErrorContains(t, err, "simplify them", pattern)
		require.Less(t, time.Since(begin), time.Minute, pattern) // without the limit it would be hours
		require.Less(t, len(err.Error()), 1000)
	}
}

// TestCompile_Nesting: what compiles a pattern is recursive, and the depth of its stack ended the process.
func TestCompile_Nesting(t *testing.T) {
	for _, n := range []int{patternBytes / 2, 1 << 20} {
		_, err := compile(strings.Repeat("(", n) + strings.Repeat(")", n))
		require.Equal(t, n == 1<<20, err != nil, n)
	}
}

// TestDotNet_Rewrites: where Python and .NET write the same differently. What is the same stays.
func TestDotNet_Rewrites(t *testing.T) {
	for from, to := range map[string]string{
		`(?P<a>x)(?P=a)`: `(?<a>x)\k<a>`, `\(?P<a>`: `\(?P<a>`, `[(?P<a>]`: `[(?P<a>]`, `x\Z`: `x\z`, `\\Z`: `\\Z`,
		`a{,3}b{,}c{1,2}`: `a{0,3}b{0,}c{1,2}`, `a{,x}`: `a{,x}`, `[{,3}]`: `[{,3}]`, `[a-z-[q]]`: `[a-z-\[q]]`,
		`[]a][^]b]`: `[\]a][^\]b]`, `[\]a]`: `[\]a]`, `(?P=`: `(?P=`, `\`: `\`, `ä{,2}\ä`: `ä{0,2}\ä`,
	} {
		require.Equal(t, to, dotNet(from))
	}
}

// FuzzCompile: no pattern ends the process or takes longer than the limit.
func FuzzCompile(f *testing.F) {
	for _, p := range append(hostile, `(?P<a>x)(?P=a)`, `[]a-[b]]{,3}\Z`, `(?!.*layers\.0).*q_proj`) {
		f.Add(p)
	}
	f.Fuzz(func(t *testing.T, pattern string) {
		p, err := layerPattern(pattern)
		if err != nil {
			return
		}
		p.MatchTimeout = 100 * time.Millisecond
		begin := time.Now()
		_, _ = p.MatchString("model.layers.0.self_attn.q_proj") // its error is the limit of time or of the stack
		require.Less(t, time.Since(begin), 10*time.Second)
	})
}
