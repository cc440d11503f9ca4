package local

import (
	"encoding/json"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/model"
)

// longFolder writes the built-in model with LongRoPE whose border is at 256 tokens.
func longFolder(t *testing.T) string {
	pairs := tinyConfig(t).HeadDim / 2
	return tinyFolder(t, func(c map[string]any) {
		c["original_max_position_embeddings"] = 256
		c["rope_scaling"] = map[string]any{
			"rope_type": "longrope", "short_factor": slices.Repeat([]float64{1.1}, pairs),
			"long_factor": slices.Repeat([]float64{2.5}, pairs), "original_max_position_embeddings": 256,
		}
	})
}

// ropeRun registers a model with a Context, and returns its backend and its entry.
func ropeRun(t *testing.T, dir, base string, context int) (*Backend, *art.Model, *entry, error) {
	t.Helper()
	b, err := Open(t.Context(), &Options{Dir: dir, Slots: 8, Context: context, CacheTokens: max(2048, context),
		Progress: io.Discard})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	m := art.NewModel("m", &art.ModelOptions{Base: base})
	if err := m.Register(t.Context(), b); err != nil {
		return b, m, nil, err
	}
	e, err := b.entry("test", m)
	require.NoError(t, err)
	return b, m, e, nil
}

// exact trains a step, of which sampler and trainer compute the same logprobs.
func exact(t *testing.T, m *art.Model) {
	t.Helper()
	groups, err := art.GatherGroups(t.Context(), []string{"7+5="}, twoTurns(m), &art.GatherOptions{GroupSize: 4})
	require.NoError(t, err)
	result, err := m.Train(t.Context(), groups, &art.TrainConfig{LearningRate: 1e-2})
	require.NoError(t, err)
	require.Contains(t, result.Metrics, "train/logprob_gap_max")
	require.Zero(t, result.Metrics["train/logprob_gap_max"])
}

// TestRopeContext: the context chooses the frequencies of LongRoPE for sampler and trainer, the run records and keeps
// the choice, and an exported model has it.
func TestRopeContext(t *testing.T) {
	base, most := longFolder(t), tinyConfig(t).MaxPositions
	ids := []int32{72, 101, 108, 108, 111, 10, 65}
	logprobs := map[int][]float32{}
	for context, recorded := range map[int]int{256: 256, 512: most} {
		dir := t.TempDir()
		b, m, e, err := ropeRun(t, dir, base, context)
		require.NoError(t, err)
		require.Equal(t, recorded, e.base.config.MaxPositions)
		exact(t, m)
		logprobs[context], _, err = b.Logprobs(t.Context(), m, ids)
		require.NoError(t, err)
		var d description
		_, err = e.run.ReadModel(&d)
		require.NoError(t, err)
		require.Equal(t, recorded, d.RopeContext)
		said, exported := says(t, m), filepath.Join(t.TempDir(), "merged")
		require.NoError(t, b.Export(t.Context(), m, exported, nil))
		c, err := model.LoadConfig(exported)
		require.NoError(t, err)
		require.Equal(t, e.base.config.RopeScaling, c.RopeScaling)
		require.Equal(t, recorded, c.MaxPositions)
		merged := art.NewModel("merged", &art.ModelOptions{Base: exported, Frozen: true})
		require.NoError(t, merged.Register(t.Context(), b))
		require.Equal(t, said, says(t, merged))
		require.NoError(t, b.Close())

		_, _, _, err = ropeRun(t, dir, base, 768-context)
		require.ErrorIs(t, err, art.ErrInvalid)
		require.ErrorContains(t, err, "leave Context of local.Options empty to continue the run")
		_, m, e, err = ropeRun(t, dir, base, 0)
		require.NoError(t, err)
		require.Equal(t, recorded, e.base.config.MaxPositions)
		require.LessOrEqual(t, e.base.engine.Context(), recorded)
		exact(t, m)
	}
	require.NotEqual(t, logprobs[256], logprobs[512])
}

// TestRopeContext_Lowered: where memory bounds the context, it chooses.
func TestRopeContext_Lowered(t *testing.T) {
	const most, border = 1 << 20, 1 << 19
	folder := longFolder(t)
	base := tinyFolder(t, func(c map[string]any) {
		text, err := os.ReadFile(filepath.Join(folder, model.ConfigFile))
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(text, &c))
		c["max_position_embeddings"], c["original_max_position_embeddings"] = most, border
		c["rope_scaling"].(map[string]any)["original_max_position_embeddings"] = border
	})
	b, m, err := register(t, 2<<30, Options{}, &art.ModelOptions{Base: base})
	require.NoError(t, err)
	s := b.models[m].base
	require.Less(t, s.engine.Context(), border)
	require.Equal(t, []int{border, border}, []int{s.config.MaxPositions, s.ropeContext})
	require.InDelta(t, math.Sqrt(1+math.Log(2)/math.Log(border)), s.config.RopeScaling.AttentionFactor, 1e-12)
}

// TestRopeContext_Dynamic: within the context of a model its dynamic scaling is none, and Context may raise it up to
// the factor.
func TestRopeContext_Dynamic(t *testing.T) {
	base := tinyFolder(t, func(c map[string]any) {
		c["max_position_embeddings"] = 128
		c["rope_scaling"] = map[string]any{"rope_type": "dynamic", "factor": 4.0}
	})
	theta := tinyConfig(t).RopeTheta
	_, _, e, err := ropeRun(t, t.TempDir(), base, 0)
	require.NoError(t, err)
	require.Equal(t, []any{128, theta, 128}, []any{e.base.engine.Context(), e.base.config.RopeTheta, e.base.ropeContext})

	dir := t.TempDir()
	_, m, e, err := ropeRun(t, dir, base, 300)
	require.NoError(t, err)
	require.Equal(t, []int{300, 300, 300}, []int{e.base.engine.Context(), e.base.config.MaxPositions, e.base.ropeContext})
	require.Greater(t, e.base.config.RopeTheta, theta)
	exact(t, m)
	text, err := os.ReadFile(filepath.Join(e.run.Dir(), "model.json"))
	require.NoError(t, err)
	require.True(t, json.Valid(text))
	require.Contains(t, string(text), `"rope_context": 300`)
	for context, want := range map[int]string{513: "the model has 2 to 512", 299: "Context 299 has another"} {
		at := dir
		if context > 512 {
			at = t.TempDir()
		}
		_, _, _, err = ropeRun(t, at, base, context)
		require.ErrorContains(t, err, want)
	}
}
