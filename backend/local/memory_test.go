package local

import (
	"fmt"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/loop"
	"github.com/goart-dev/art/grpo/credit"
	"github.com/goart-dev/art/internal/graphx"
	"github.com/goart-dev/art/internal/plan"
	"github.com/goart-dev/art/internal/trainer"
	"github.com/goart-dev/art/model"
	"github.com/goart-dev/art/model/tiny"
)

// qwen is the shape of Qwen3-0.6B; smol that of SmolLM2-135M.
var (
	qwen = &model.Config{
		ModelType: "qwen3", HiddenAct: "silu", VocabSize: 151936, HiddenSize: 1024, IntermediateSize: 3072,
		NumLayers: 28, NumHeads: 16, NumKVHeads: 8, HeadDim: 128, MaxPositions: 40960, RMSNormEps: 1e-6, RopeTheta: 1e6,
		TieEmbeddings: true,
	}
	smol = &model.Config{
		ModelType: "llama", HiddenAct: "silu", VocabSize: 49152, HiddenSize: 576, IntermediateSize: 1536,
		NumLayers: 30, NumHeads: 9, NumKVHeads: 3, HeadDim: 64, MaxPositions: 8192, RMSNormEps: 1e-5, RopeTheta: 1e5,
		TieEmbeddings: true,
	}
)

func tinyConfig(t testing.TB) *model.Config {
	w, err := tiny.Load()
	require.NoError(t, err)
	return w.Config
}

// booked is the memory that is booked for base models.
func booked(t *testing.T, d *plan.Device) float64 {
	another, ok := d.Book(plan.Sampling{
		Config: tinyConfig(t), Slots: 1, Context: 64, Matrices: dtypes.Float32, CacheType: dtypes.Float32,
	}, plan.Sizes{})
	require.True(t, ok)
	d.GiveBack(another)
	return another.Others
}

// TestBook_Refuses: the error for a size that cannot fit names both options. It ended the process, out of memory.
func TestBook_Refuses(t *testing.T) {
	const gib = 1 << 30
	with := func(free float64, device string, opts Options) *Backend {
		b := &Backend{memory: plan.NewDevice(graphx.NamedProfile(device)), opts: opts}
		b.memory.Free = func() (int64, bool) { return int64(free), free > 0 }
		return b
	}
	for name, c := range map[string]struct {
		free float64
		want Options
		says string
	}{
		"both":            {24 * gib, Options{Slots: 32, Context: 40960, CacheTokens: 32 * 40960}, "32 slots, a context of 40960 and a cache of 1310720 tokens take"},
		"slots":           {24 * gib, Options{Slots: 16384}, "16384 slots, a context of 320 and a cache of 320 tokens"},
		"absurd slots":    {24 * gib, Options{Slots: math.MaxInt}, "take"},
		"absurd, unknown": {0, Options{Slots: math.MaxInt, Context: 40960}, "that is more than any machine has"},
		"weights":         {2 * gib, Options{}, "2.22 GiB for the weights"},
		"context":         {24 * gib, Options{Context: 40961}, "a context of 40961 tokens, where the model has 2 to 40960"},
		"cache":           {24 * gib, Options{Context: 2048, CacheTokens: 2000}, "a cache of 2000 tokens, for requests of up to 2048"},
		"one token":       {24 * gib, Options{Context: 1}, "a context of 1 tokens"},
	} {
		_, err := with(c.free, "cpu", c.want).book(qwen, dtypes.Float32, 0)
		require.ErrorIs(t, err, art.ErrInvalid, name)
		require.ErrorContains(t, err, c.says, name)
		if c.want.Context == 0 || c.want.Slots != 0 {
			require.ErrorContains(t, err, "lower Slots, Context and CacheTokens of local.Options", name)
		}
	}

	b := with(14*gib, "cpu", Options{})
	_, err := b.book(smol, dtypes.Float32, 0)
	require.NoError(t, err)
	b.opts = Options{Slots: 32, Context: 8192, CacheTokens: 32 * 8192}
	_, err = b.book(smol, dtypes.Float32, 0)
	require.ErrorIs(t, err, art.ErrInvalid)
	require.ErrorContains(t, err, "are planned for other base models")

	_, err = with(1*gib, "xla:cuda", Options{}).book(qwen, dtypes.Float32, 0)
	require.ErrorContains(t, err, "memory_fraction=0.95")
}

// register opens a backend with so much free memory and registers a model.
func register(t *testing.T, free int64, opts Options, m *art.ModelOptions) (*Backend, *art.Model, error) {
	opts.Dir, opts.Progress = t.TempDir(), io.Discard
	b, err := Open(t.Context(), &opts)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	b.memory.Free = func() (int64, bool) { return free, true }
	registered := art.NewModel("m", m)
	return b, registered, registered.Register(t.Context(), b)
}

// TestRegister_LongContext: the built-in model with a million positions, whose cache would take 64 GiB, is registered
// with what fits, and answers.
func TestRegister_LongContext(t *testing.T) {
	base := tinyFolder(t, func(c map[string]any) { c["max_position_embeddings"] = 1 << 20 })
	b, m, err := register(t, 2<<30, Options{}, &art.ModelOptions{Base: base})
	require.NoError(t, err)
	got, err := m.Complete(t.Context(), ask("2+2?"), &art.ChatOptions{MaxTokens: new(3)})
	require.NoError(t, err)
	require.NotZero(t, got.Usage.CompletionTokens)
	s := b.models[m].base
	require.GreaterOrEqual(t, s.engine.Context(), 2048)
	require.Equal(t, s.booking.Context, s.engine.Context())

	_, _, err = register(t, 2<<30, Options{Slots: 32, Context: 1 << 20}, &art.ModelOptions{Base: base})
	require.ErrorIs(t, err, art.ErrInvalid)
	require.ErrorContains(t, err, "lower Slots, Context and CacheTokens of local.Options")
}

// TestRegister_AbsurdConfig: sizes that no model has are errors, neither panics nor allocations.
func TestRegister_AbsurdConfig(t *testing.T) {
	for key, values := range map[string][]any{
		"max_position_embeddings": {int64(1) << 40, -5, 0, 1e300, 1.5},
		"vocab_size":              {int64(1) << 40, int64(1) << 23, -1},
		"num_hidden_layers":       {int64(1) << 40, 1000, -1},
		"head_dim":                {int64(1) << 40, 1 << 23, -2},
		"num_key_value_heads":     {int64(1) << 40, 1 << 23, -2},
		"hidden_size":             {int64(1) << 40, 1 << 23, -2},
		"intermediate_size":       {int64(1) << 40, 1 << 23, -2},
	} {
		for _, value := range values {
			base := tinyFolder(t, func(c map[string]any) { c[key] = value })
			_, _, err := register(t, 2<<30, Options{}, &art.ModelOptions{Base: base})
			require.ErrorIs(t, err, art.ErrBaseModel, "%s %v", key, value)
		}
	}
}

// TestRegister_Rank: an adapter that cannot be held is an error. A rank of 100 million ended the process, out of
// memory.
func TestRegister_Rank(t *testing.T) {
	for rank, says := range map[int]string{
		100_000_000: "free: lower the rank", math.MaxInt: "free: lower the rank", 10_000: "want 1 to 128",
	} {
		_, _, err := register(t, 8<<30, Options{Slots: 2, Context: 64},
			&art.ModelOptions{LoRA: art.LoRA{Rank: rank, Alpha: 1}})
		require.ErrorIs(t, err, art.ErrInvalid)
		require.ErrorContains(t, err, says)
	}
	for _, rank := range []int{1, 128} {
		_, _, err := register(t, 8<<30, Options{Slots: 2, Context: 64}, &art.ModelOptions{LoRA: art.LoRA{Rank: rank}})
		require.NoError(t, err)
	}
}

// TestRegister_DefaultsUnchanged: where memory is plenty the built-in model has the slots and the context that it
// always had.
func TestRegister_DefaultsUnchanged(t *testing.T) {
	b, m, err := register(t, 8<<30, Options{}, nil)
	require.NoError(t, err)
	s := b.models[m].base
	require.Equal(t, plan.DefaultSlots, s.booking.Slots)
	require.Equal(t, s.config.MaxPositions, s.engine.Context())
}

// TestTrain_SequenceDoesNotFit: a sequence that alone takes more than is free is refused before anything is computed,
// by every training; where the free memory is not known, it is tried.
func TestTrain_SequenceDoesNotFit(t *testing.T) {
	b := open(t, t.TempDir())
	m := art.NewModel("m", nil)
	require.NoError(t, m.Register(t.Context(), b))
	groups := play(t, m)
	data := []loop.Datum{{Input: []int32{1, 2}, Targets: []int32{2, 3}}}
	b.memory.Free = func() (int64, bool) { return 1 << 10, true }
	b.memory.Held = nil
	_, err := m.Train(t.Context(), groups, nil)
	require.ErrorIs(t, err, art.ErrInvalid)
	require.ErrorContains(t, err, "tokens takes about")
	_, err = m.TrainSFT(t.Context(), groups[0].Trajectories, nil)
	require.ErrorIs(t, err, art.ErrInvalid)
	_, err = loop.ForwardBackward(t.Context(), m, data, credit.CrossEntropy, nil)
	require.ErrorIs(t, err, art.ErrInvalid)
	require.Zero(t, m.Step())
	b.memory.Free = func() (int64, bool) { return 0, false }
	_, err = loop.ForwardBackward(t.Context(), m, data, credit.CrossEntropy, nil)
	require.NoError(t, err)
}

// TestTrain_Fits: where memory is short, layers are computed again, and micro-batches get smaller at last. The step is
// the same bit for bit as long as the latter is not needed, and replays either way.
func TestTrain_Fits(t *testing.T) {
	var plenty *trainer.State
	for _, c := range []struct {
		free      int64
		recompute bool
		lowered   bool
	}{{1 << 30, false, false}, {300 << 20, true, false}, {16 << 20, true, true}} {
		dir := t.TempDir()
		b := open(t, dir)
		m := art.NewModel("m", nil)
		require.NoError(t, m.Register(t.Context(), b))
		trajectories := longTrajectories()
		b.memory.Free, b.memory.Held = func() (int64, bool) { return c.free, true }, nil
		_, err := m.TrainSFT(t.Context(), trajectories, nil)
		require.NoError(t, err)
		e := b.models[m]
		sizes := e.trainer.Sizes()
		t.Logf("%d MiB: %+v", c.free>>20, sizes)
		require.Equal(t, c.recompute, sizes.Recompute)
		require.Equal(t, c.lowered, sizes.MicroTokens < 4096)
		require.Equal(t, c.lowered, sizes.Narrow)
		if plenty == nil {
			plenty = e.state
		}
		equal, difference := compareStates(plenty, e.state)
		require.Equal(t, !c.lowered, equal)
		require.Less(t, difference, 1e-5)
		replayed, err := b.Replay(t.Context(), e.run.Dir(), 0)
		require.NoError(t, err)
		require.True(t, replayed.Equal)
	}
}

// TestReplay_Narrow: a step whose long prompts were not shared replays without sharing them, also where there is room.
func TestReplay_Narrow(t *testing.T) {
	dir := t.TempDir()
	b := open(t, dir)
	b.opts.MicroTokens = 64
	m := art.NewModel("m", nil)
	require.NoError(t, m.Register(t.Context(), b))
	var list []*art.Trajectory
	for _, answer := range []string{"yes", "no", "maybe", "hello"} {
		list = append(list, art.NewTrajectory(art.User(strings.Repeat("hello ", 80)), art.Assistant(answer)))
	}
	_, err := m.TrainSFT(t.Context(), list, nil)
	require.NoError(t, err)
	b.opts.MicroTokens = 0
	run := b.models[m].run.Dir()
	replayed, err := b.Replay(t.Context(), run, 0)
	require.NoError(t, err)
	require.True(t, replayed.Equal)
	packed, err := b.Packed(t.Context(), run, 0)
	require.NoError(t, err)
	require.Len(t, packed, 1)
	require.Len(t, packed[0], len(list), "each alone")
}

// longTrajectories are 16 exchanges of different lengths.
func longTrajectories() (list []*art.Trajectory) {
	for i := range 16 {
		answer := art.Assistant(strings.Repeat("hello ", 20+i%20))
		list = append(list, art.NewTrajectory(art.User(fmt.Sprint("say ", i)), answer))
	}
	return list
}
