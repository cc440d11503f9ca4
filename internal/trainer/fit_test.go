package trainer

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/grpo"
	"github.com/goart-dev/art/internal/dev/fixtures"
	"github.com/goart-dev/art/internal/graphx"
	"github.com/goart-dev/art/internal/graphx/graphtest"
	"github.com/goart-dev/art/internal/plan"
	"github.com/goart-dev/art/lora"
	"github.com/goart-dev/art/model"
)

// TestFit_Order: with less and less memory, fewer micro-batches are computed at once, then layers again, and
// micro-batches get smaller at last. What is chosen takes what the compiled graphs take, or less of it.
func TestFit_Order(t *testing.T) {
	c := smallQwen()
	layout, err := lora.New(lora.Config{}, linears(c), 0)
	require.NoError(t, err)
	opts := Options{Device: graphtest.CPU(t), Workers: 4}
	tr := New(AdapterTarget(c, params(c), layout), opts)
	want := tr.Sizes()
	takes, ok := tr.Fit(512, 1e12)
	require.True(t, ok)
	require.Equal(t, want, tr.Sizes())
	require.False(t, tr.Lowered())
	stage := 0
	var seen []plan.Sizes
	for {
		less, ok := tr.Fit(512, takes-1)
		if !ok {
			break
		}
		require.Less(t, less, takes)
		takes = less
		s := tr.Sizes()
		seen = append(seen, s)
		now := 0
		switch {
		case s.MicroTokens < want.MicroTokens:
			now = 2
		case s.Recompute:
			now = 1
		}
		require.GreaterOrEqual(t, now, stage, "%+v", seen)
		stage = now
		planned, err := Plan(c, layout, 512, Options{Device: opts.Device, Workers: s.Workers, MicroTokens: s.MicroTokens,
			Recompute: s.Recompute, Narrow: s.Narrow})
		require.NoError(t, err)
		require.GreaterOrEqual(t, takes, planned.Adapter+planned.Work, "%+v", s)
	}
	t.Logf("%+v", seen)
	require.Equal(t, 2, stage)
	require.LessOrEqual(t, 3*tr.Sizes().MicroTokens, 512, "one sequence in a micro-batch")

	opts.MicroTokens = 1024
	tr = New(AdapterTarget(c, params(c), layout), opts)
	_, ok = tr.Fit(512, 1)
	require.False(t, ok)
	require.Equal(t, plan.Sizes{Workers: 1, MicroTokens: 1024, Recompute: true}, tr.Sizes(), "what the options have stays")
}

// TestFit_Narrow: where sequences are longer than micro-batches usually are, long prompts are no longer shared before
// micro-batches get smaller.
func TestFit_Narrow(t *testing.T) {
	c := smallQwen()
	layout, err := lora.New(lora.Config{}, linears(c), 0)
	require.NoError(t, err)
	tr := New(AdapterTarget(c, params(c), layout), Options{Device: graphtest.CPU(t), Workers: 1, Recompute: true})
	wide, ok := tr.Fit(8192, 1e12)
	require.True(t, ok)
	want := tr.Sizes()
	require.False(t, want.Narrow)
	takes := wide
	for !tr.Sizes().Narrow {
		takes, ok = tr.Fit(8192, takes-1)
		require.True(t, ok)
	}
	want.Narrow = true
	require.Equal(t, want, tr.Sizes())
	require.Less(t, takes, 0.7*wide)
}

// TestEstimate_BoundsRecomputed: the estimate is what the compiled graph takes, or more, with layers computed again
// too.
func TestEstimate_BoundsRecomputed(t *testing.T) {
	configs := map[string]*model.Config{"small Qwen": smallQwen()}
	for _, m := range fixtures.Models(t) {
		c, err := model.LoadConfig(m.Dir)
		require.NoError(t, err)
		configs[m.Name] = c
	}
	for name, c := range configs {
		layout, err := lora.New(lora.Config{}, linears(c), 0)
		require.NoError(t, err)
		for _, length := range []int{64, 512} {
			length = min(length, c.MaxPositions)
			opts := Options{Device: graphtest.CPU(t), Workers: 2, Recompute: true}
			planned, err := Plan(c, layout, length, opts)
			require.NoError(t, err)
			work := estimate(c, layout, opts, length).Work
			require.GreaterOrEqual(t, work, planned.Work, "%s %d", name, length)
			t.Logf("%s %d: estimated %.2f of the plan's %.1f MB", name, length, work/planned.Work, planned.Work/1e6)
		}
	}
}

// TestFit_LongSequence: 8,192 tokens of the shape of Qwen3-0.6B fit into 12 GiB beside bfloat16 weights.
func TestFit_LongSequence(t *testing.T) {
	c := smallQwen()
	c.NumLayers, c.VocabSize = 28, 151936
	layout, err := lora.New(lora.Config{}, linears(c), 0)
	require.NoError(t, err)
	const weights, process = 1.12 * (1 << 30), 134e6
	tr := New(AdapterTarget(c, params(c), layout), Options{Device: graphtest.CPU(t), Workers: 2})
	takes, ok := tr.Fit(8192, 12*(1<<30)-weights-process)
	require.True(t, ok, "%.1f GiB", takes/(1<<30))
	require.True(t, tr.Sizes().Recompute)
	t.Logf("%.1f GiB %+v", takes/(1<<30), tr.Sizes())
	_, ok = tr.Fit(40960, 12*(1<<30))
	require.False(t, ok)
}

// TestFit_KeepsWhatFits: where the largest micro-batches that there may be fit only with layers computed again, smaller
// ones keep theirs. The gradient is the same bit for bit.
func TestFit_KeepsWhatFits(t *testing.T) {
	s := both(t)[0]
	rng := rand.New(rand.NewPCG(seed, 310))
	batch := s.scored(t, randomTree(rng, 4, 64, 40), func() float32 { return float32(rng.NormFloat64()) * 0.1 })
	gradient := func(length int, short bool, room float64) ([][]float32, *Pass) {
		tr := s.trainer(t, Options{})
		takes, ok := tr.Fit(length, 1e12)
		for ok && short && !tr.Sizes().Recompute {
			takes, ok = tr.Fit(length, takes-1)
		}
		require.True(t, ok)
		require.Equal(t, short, tr.room > 0)
		if room > 0 {
			tr.room = room
		}
		on, err := tr.Start(s.state)
		require.NoError(t, err)
		defer on.Free()
		weighted, n := averaged(batch)
		p, err := on.accumulate(t.Context(), weighted, lossCall{grpo.PolicyLoss{}, n, 0})
		require.NoError(t, err)
		return onHost(t, on.grads), p
	}
	want, plain := gradient(64, false, 0)
	require.Zero(t, plain.Recomputed)
	kept, p := gradient(4096, true, 0)
	require.Zero(t, p.Recomputed)
	sameBits(t, want, kept, "kept")
	again, p := gradient(4096, true, 1)
	require.Positive(t, p.Recomputed)
	require.LessOrEqual(t, p.Recomputed, p.Computed)
	sameBits(t, want, again, "computed again")
}

// TestFit_OwnMemory: of the copies a GPU holds those on the device alone, and each replica has memory of its own.
func TestFit_OwnMemory(t *testing.T) {
	c := smallQwen()
	layout, err := lora.New(lora.Config{}, linears(c), 0)
	require.NoError(t, err)
	opts := Options{Device: graphtest.NamedOn(graphtest.CPU(t), "xla:cuda")}
	target := AdapterTarget(c, params(c), layout)
	one, ok := New(target, opts).Fit(512, 1e12)
	require.True(t, ok)
	programs := graphx.NewPrograms(opts.Device, plan.TrainingPrograms(c))
	opts.Replicas = []Replica{{Device: opts.Device, Params: params(c), Programs: programs}}
	two, ok := New(target, opts).Fit(512, 1e12)
	require.True(t, ok)
	require.Equal(t, one, two)

	m := estimate(c, layout, opts, 512)
	require.InDelta(t, one, m.Adapter+m.Work+float64(plan.TrainingPrograms(c)), 1)
}
