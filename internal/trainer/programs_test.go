package trainer

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/grpo"
	"github.com/goart-dev/art/internal/graphx"
	"github.com/goart-dev/art/internal/graphx/graphtest"
	"github.com/goart-dev/art/internal/pack"
	"github.com/goart-dev/art/internal/plan"
	"github.com/goart-dev/art/lora"
)

// liveBytes is the memory that is in use after garbage is collected.
func liveBytes() int64 {
	runtime.GC()
	runtime.GC() // what the first one finalized
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// varied is a group whose sequences share a prefix and go on with up to more tokens.
func varied(rng *rand.Rand, prefix, more int) []grpo.Sequence {
	batch := randomBatch(rng, 6, 64, more)
	shared := make([]int32, prefix)
	for i := range shared {
		shared[i] = int32(rng.IntN(64))
	}
	for i := range batch {
		s := &batch[i]
		s.IDs = slices.Concat(shared, s.IDs)
		s.Trained = slices.Concat(make([]bool, prefix), s.Trained)
		s.Logprobs = slices.Concat(make([]float32, prefix), s.Logprobs)
	}
	return batch
}

// TestTrain_ManyLayouts: a training with ever new layouts keeps no more programs than it has room for, really gives
// back the others, and computes the same bits as one that keeps them all.
func TestTrain_ManyLayouts(t *testing.T) {
	const bound, layouts = 3 << 20, 8
	c := testConfig()
	c.NumLayers, c.MaxPositions = 2, 1024
	s := adapted(t, c, testAdapter(t, lora.Config{Rank: 4}, c, false))
	run := Run{
		Loss: grpo.PolicyLoss{}, Optimizer: grpo.DefaultAdamW(), Rate: constant(1e-3), Epochs: 1, MiniBatches: 1,
	}
	batch := func(i int) []grpo.Sequence { // the longest first, so that arenas do not grow
		return varied(rand.New(rand.NewPCG(seed, uint64(i))), 700-64*i, 60)
	}
	train := func(tr *Trainer, state *State, i int) *State {
		next, _, err := tr.Train(t.Context(), state, batch(i), run)
		require.NoError(t, err)
		return next
	}
	few, got := s.trainer(t, Options{ProgramBytes: bound}), []*State{s.state}
	var before int64
	for i := range layouts {
		got = append(got, train(few, got[i], i))
		require.LessOrEqual(t, few.programs.Bytes(), int64(bound))
		if i == 1 {
			before = liveBytes()
		}
	}
	grown := liveBytes() - before
	t.Logf("%.1f MB more in use after %d layouts more, with programs of %.1f MB", float64(grown)/1e6, layouts-2,
		float64(few.programs.Bytes())/1e6)
	require.Less(t, grown, int64(bound)*3/2)

	all, want := s.trainer(t, Options{}), s.state
	for i := range layouts {
		want = train(all, want, i)
		require.Equal(t, want.Params, got[i+1].Params, "update %d", i)
	}
	require.Greater(t, all.programs.Bytes(), 2*int64(bound), "most were dropped")
	require.Equal(t, got[1].Params, train(few, s.state, 0).Params, "the first layout again")
}

// TestProgramBytes: what programs say that they take is what they take.
func TestProgramBytes(t *testing.T) {
	c := smallQwen()
	layout, err := lora.New(lora.Config{}, linears(c), 0)
	require.NoError(t, err)
	_, in := c.Outline()
	for _, p := range layout.Params() {
		in = append(in, shapes.Make(dtypes.Float32, p.Shape...))
	}
	device := graphtest.CPU(t)
	loss := New(AdapterTarget(c, params(c), layout), Options{Device: device}).lossGraph(grpo.PolicyLoss{}, true, false)
	plain := pack.Layout{Rows: 8, Length: 256, Trained: 512}
	shared := pack.Layout{Rows: 2, Length: 352, Trained: 512}
	shared.Branches[0] = pack.Branches{Rows: 16, Length: 96, Keys: 512}
	shared.Branches[1] = pack.Branches{Rows: 8, Length: 224, Keys: 640}
	for _, l := range []pack.Layout{plain, shared} {
		var kept []compute.Executable
		says, before := int64(0), liveBytes()
		for range 3 {
			run, err := graphx.Compile(device, loss.build, slices.Concat(in, inputShapes(l)))
			require.NoError(t, err)
			kept, says = append(kept, run), says+graphx.ProgramBytes(run)
		}
		takes := liveBytes() - before
		t.Logf("%+v: %.2f MB each, said to be %.2f", l, float64(takes)/3e6, float64(says)/3e6)
		require.InEpsilon(t, takes, says, 0.35)
		require.Less(t, says/3, plan.TrainingPrograms(c)/32*3/2)
		runtime.KeepAlive(kept)
	}
}

// TestTrain_SharedPrograms: trainers of a base model compile a graph once for all adapters of a layout, and again for
// those of another one. No bit depends on it.
func TestTrain_SharedPrograms(t *testing.T) {
	c := testConfig()
	shared := graphx.NewPrograms(graphtest.Device(t), plan.TrainingPrograms(c))
	run := Run{
		Loss: grpo.PolicyLoss{}, Optimizer: grpo.DefaultAdamW(), Rate: constant(1e-3), Epochs: 1, MiniBatches: 1,
	}
	batch := varied(rand.New(rand.NewPCG(seed, 0)), 40, 20)
	counts := []int{}
	for _, of := range []struct {
		config lora.Config
		fresh  bool
	}{
		{lora.Config{Rank: 4}, false}, {lora.Config{Rank: 4}, true}, {lora.Config{Rank: 2}, false},
		{lora.Config{Rank: 4, Alpha: 3}, false},
	} {
		s := adapted(t, c, testAdapter(t, of.config, c, of.fresh))
		var states []*State
		for _, programs := range []*graphx.Programs{shared, nil} {
			next, _, err := s.trainer(t, Options{Programs: programs}).Train(t.Context(), s.state, batch, run)
			require.NoError(t, err)
			states = append(states, next)
		}
		require.Equal(t, states[1].Params, states[0].Params)
		counts = append(counts, shared.Len())
	}
	require.Positive(t, counts[0])
	require.Equal(t, []int{counts[0], counts[0], 2 * counts[0], 3 * counts[0]}, counts)
}
