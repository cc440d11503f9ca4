package trainer

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/grpo"
	"github.com/goart-dev/art/grpo/credit"
	"github.com/goart-dev/art/internal/graphx/graphtest"
	"github.com/goart-dev/art/internal/pack"
	"github.com/goart-dev/art/internal/plan"
	"github.com/goart-dev/art/model"
)

// smallTarget is a model so small that its micro-batches have the most tokens.
var smallTarget = Target{plan: plan.Training{Config: &model.Config{
	NumLayers: 1, HiddenSize: 1, NumHeads: 1, HeadDim: 1, IntermediateSize: 1,
}}}

// tokensOf lists the trained tokens of a batch, each with its sequence and all that it is learned from, in a sorted
// order.
func tokensOf(batch []grpo.Sequence) []string {
	var out []string
	for k, s := range batch {
		for i, trained := range s.Trained {
			if trained {
				old, behavior := or(s.Old, i, s.Logprobs[i]), or(s.Behavior, i, s.Logprobs[i])
				advantage, weight := float32(s.Advantage+or(s.Shaping, i, 0)), float32(s.Weight*or(s.Weights, i, 1))
				out = append(out, fmt.Sprint(k, or(s.Targets, i, s.IDs[i]), s.Logprobs[i], old, behavior,
					or(s.Reference, i, 0), or(s.Staleness, i, 0), advantage, weight, s.IDs[:i]))
			}
		}
	}
	slices.Sort(out)
	return out
}

// or returns list[i], or missing when there is no list.
func or[T any](list []T, i int, missing T) T {
	if list == nil {
		return missing
	}
	return list[i]
}

// unpack lists the same of micro-batches.
func unpack(micro []piece) []string {
	var out []string
	for _, m := range micro {
		for n := range m.Tokens.NumReal {
			x := &m.Tokens
			before := contextOf(m.MicroBatch, int(x.Position[n]))
			out = append(out, fmt.Sprint(m.sequences[x.Sequence[n]], x.Target[n], x.Logprob[n], x.Old[n], x.Behavior[n],
				x.Reference[n], x.Staleness[n], x.Advantage[n], x.Weight[n], before))
		}
	}
	slices.Sort(out)
	return out
}

// contextOf returns the ids that a token of a micro-batch attends to.
func contextOf(m *pack.MicroBatch, at int) []int32 {
	if from := m.Rows * m.Length; at >= from {
		starts, keys := m.Starts, m.Keys
		for _, b := range m.Branches {
			if row := (at - from) / b.Length; b.Rows > 0 && row < b.Rows {
				var out []int32
				for _, key := range keys[row*b.Keys:][:int(starts[row])+(at-from)%b.Length+1] {
					out = append(out, m.IDs[key])
				}
				return out
			}
			from, starts, keys = from+b.Rows*b.Length, starts[b.Rows:], keys[b.Rows*b.Keys:]
		}
	}
	return m.IDs[at/m.Length*m.Length : at+1]
}

// TestMicroBatches_EveryTrainedTokenOnce over batches, bounds and numbers of workers of all sizes.
func TestMicroBatches_EveryTrainedTokenOnce(t *testing.T) {
	for i := range uint64(150) {
		rng := rand.New(rand.NewPCG(seed, i))
		batch := randomBatch(rng, 1+rng.IntN(30), 1000, 3+rng.IntN(90))
		before := tokensOf(batch)
		tr := New(smallTarget, Options{
			Device: graphtest.CPU(t), Workers: 1 + rng.IntN(5), MicroTokens: 1 + rng.IntN(2000), FewShapes: i%2 == 0,
		})
		most := rng.IntN(10)
		micro, err := tr.microBatches(batch, most)
		require.NoError(t, err)
		require.Equal(t, before, unpack(micro), "seed %d %d", seed, i)
		require.Equal(t, before, tokensOf(batch), "microBatches changes what it is given")
		for _, m := range micro {
			require.LessOrEqual(t, m.Rows*m.Length, max(tr.sizes.MicroTokens, m.Length),
				"one sequence may exceed the bound, two may not")
			if most > 0 {
				require.LessOrEqual(t, m.Rows, most)
			}
			require.Zero(t, m.Length%16)
			require.GreaterOrEqual(t, m.Length, 16)
		}
	}
}

// TestMicroBatches_DependsOnTheBatchAlone: what a trainer did before changes nothing.
func TestMicroBatches_DependsOnTheBatchAlone(t *testing.T) {
	batch := randomBatch(rand.New(rand.NewPCG(seed, 2)), 30, 100, 100)
	tr := New(smallTarget, Options{Device: graphtest.CPU(t), Workers: 2})
	first, err := tr.microBatches(batch, 0)
	require.NoError(t, err)
	again, err := tr.microBatches(batch, 0)
	require.NoError(t, err)
	require.Equal(t, first, again)
}

// TestMicroBatches_KeepsWorkersBusy: a batch that suffices is cut for two workers.
func TestMicroBatches_KeepsWorkersBusy(t *testing.T) {
	for n := 1; n < 40; n++ {
		batch := randomBatch(rand.New(rand.NewPCG(seed, uint64(n))), n, 100, 40)
		micro, err := New(smallTarget, Options{Device: graphtest.CPU(t), Workers: 2}).microBatches(batch, 0)
		require.NoError(t, err)
		if n >= 2*plan.RowStep {
			require.GreaterOrEqual(t, len(micro), 2, "%d sequences", n)
		}
	}
}

// TestMicroBatches_FewShapes counts the graphs that a long run compiles, one for each layout, and what their padding
// costs. Batches are of 8 to 64 sequences of up to 1,000 tokens.
func TestMicroBatches_FewShapes(t *testing.T) {
	for _, c := range []struct {
		few     bool
		shapes  int
		padding float64
	}{{false, 500, 1.6}, {true, 40, 2}} {
		seen := map[pack.Layout]int{}
		rng := rand.New(rand.NewPCG(seed, 3))
		tr := New(smallTarget, Options{Device: graphtest.CPU(t), Workers: 2, FewShapes: c.few})
		var middle, needed, computed int
		for step := range 400 {
			batch := randomBatch(rng, 8+rng.IntN(57), 100, 20+rng.IntN(980))
			for i := range batch {
				needed += batch[i].NumInputs()
			}
			micro, err := tr.microBatches(batch, 0)
			require.NoError(t, err)
			for _, m := range micro {
				computed += m.Rows * m.Length
				seen[m.Layout]++
			}
			if step == 199 {
				middle = len(seen)
			}
		}
		lengths, rows := map[int]bool{}, map[int]bool{}
		for s := range seen {
			lengths[s.Length], rows[s.Rows] = true, true
		}
		t.Logf("few %v: %d shapes after 200 batches, %d after 400; %d lengths, %d numbers of rows", c.few, middle, len(seen),
			len(lengths), len(rows))
		t.Logf("%.2f tokens computed for each that is needed", float64(computed)/float64(needed))
		require.Less(t, float64(computed), c.padding*float64(needed))
		require.LessOrEqual(t, len(lengths), 16+8+8)
		require.LessOrEqual(t, len(seen), c.shapes)
	}
}

// TestSplit_Partition: every sequence is in one part, parts differ in size by at most one, and the order is that of the
// random numbers.
func TestSplit_Partition(t *testing.T) {
	for i := range uint64(100) {
		rng := rand.New(rand.NewPCG(seed, i))
		batch := randomBatch(rng, 1+rng.IntN(30), 100, 10)
		n := 1 + rng.IntN(12)
		parts := credit.Split(inseparable(batch, nil), n, rand.New(rand.NewPCG(i, 1)))
		require.Len(t, parts, min(n, len(batch)))
		var all []int
		smallest, largest := len(batch), 0
		for _, p := range parts {
			smallest, largest = min(smallest, len(p)), max(largest, len(p))
			for _, s := range p {
				require.Equal(t, batch[s.Trajectory], s)
				all = append(all, s.Trajectory)
			}
		}
		require.LessOrEqual(t, largest-smallest, 1, "seed %d", i)
		require.Equal(t, parts, credit.Split(inseparable(batch, nil), n, rand.New(rand.NewPCG(i, 1))))
		slices.Sort(all)
		for at, trajectory := range all {
			require.Equal(t, at, trajectory, "each once")
		}
	}
}

// TestSplit_Shuffles: another seed makes other parts.
func TestSplit_Shuffles(t *testing.T) {
	batch := randomBatch(rand.New(rand.NewPCG(seed, 4)), 20, 100, 10)
	first := credit.Split(inseparable(batch, nil), 2, rand.New(rand.NewPCG(1, 0)))
	require.NotEqual(t, first, credit.Split(inseparable(batch, nil), 2, rand.New(rand.NewPCG(2, 0))))
	require.NotEqual(t, first, credit.Split(inseparable(batch, nil), 2, rand.New(rand.NewPCG(1, 1))))
}
