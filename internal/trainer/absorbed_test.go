package trainer

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/grpo"
	"github.com/goart-dev/art/grpo/credit"
	"github.com/goart-dev/art/internal/graphx/graphtest"
	"github.com/goart-dev/art/internal/pack"
)

// absorbing makes a random tree, and as many sequences again that lie in the rows of others: copies, beginnings, those
// with the same inputs and another last token, and those with other targets. Each has advantages, weights and logprobs
// of its own.
func absorbing(rng *rand.Rand, n, vocabulary, most int) []grpo.Sequence {
	batch := randomTree(rng, n, vocabulary, most)
	for range n {
		from := batch[rng.IntN(len(batch))]
		end := len(from.IDs)
		kind := rng.IntN(4)
		if kind == 1 {
			end = 2 + rng.IntN(end-1)
		}
		s := grpo.Sequence{
			IDs: slices.Clone(from.IDs[:end]), Trained: slices.Clone(from.Trained[:end]), Trajectory: len(batch),
			Advantage: rng.NormFloat64(), Weight: 0.5 + rng.Float64(), Logprobs: logprobs(rng, end),
		}
		switch kind {
		case 1:
			s.Trained[end-1] = true
		case 2:
			s.IDs[s.NumInputs()] = int32(rng.IntN(vocabulary))
		case 3:
			s.Targets = make([]int32, end)
			for i := range s.Targets {
				s.Targets[i] = int32(rng.IntN(vocabulary))
			}
		}
		batch = append(batch, s)
	}
	for i := range batch {
		addLists(rng, &batch[i])
	}
	rng.Shuffle(len(batch), func(i, j int) { batch[i], batch[j] = batch[j], batch[i] })
	return batch
}

// addLists adds some of the lists that a sequence may have.
func addLists(rng *rand.Rand, s *grpo.Sequence) {
	n := len(s.IDs)
	s.Reference = logprobs(rng, n)
	if rng.IntN(2) == 0 {
		s.Old, s.Behavior = logprobs(rng, n), logprobs(rng, n)
	}
	if rng.IntN(2) == 0 {
		s.Staleness, s.Shaping, s.Weights = make([]int, n), make([]float64, n), make([]float64, n)
		for i := range n {
			s.Staleness[i], s.Shaping[i], s.Weights[i] = rng.IntN(3), rng.NormFloat64(), rng.Float64()
		}
	}
}

// logprobs are n random ones.
func logprobs(rng *rand.Rand, n int) (out []float32) {
	for range n {
		out = append(out, -float32(rng.ExpFloat64()))
	}
	return out
}

// absorbed counts the sequences of a micro-batch that have no token of their own.
func absorbed(m piece) int {
	n := len(m.sequences)
	for i := range m.sequences {
		if slices.ContainsFunc(m.Placed, func(r pack.Row) bool { return r.Sequence == i }) {
			n--
		}
	}
	return n
}

// TestAbsorbed_EveryTrainedTokenOnce: whatever lies in the rows of others, each trained token is listed once, as one of
// its own sequence, with all that this has.
func TestAbsorbed_EveryTrainedTokenOnce(t *testing.T) {
	within := 0
	for i := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 300+i))
		batch := absorbing(rng, 1+rng.IntN(10), 1000, 20+rng.IntN(80))
		tr := New(smallTarget, Options{
			Device: graphtest.CPU(t), MicroTokens: 1 + rng.IntN(1000), FewShapes: i%2 == 0, Narrow: i%3 == 0,
		})
		most := rng.IntN(6)
		micro, err := tr.microBatches(batch, most)
		require.NoError(t, err)
		require.Equal(t, tokensOf(batch), unpack(micro), "seed %d %d", seed, i)
		for _, m := range micro {
			within += absorbed(m)
			if most > 0 {
				require.LessOrEqual(t, len(m.sequences), most)
			}
		}
	}
	require.Greater(t, within, 300)
}

// TestAbsorbed_OneRow: copies, those with another last token, and beginnings of two sequences add no tokens to them.
func TestAbsorbed_OneRow(t *testing.T) {
	rng := rand.New(rand.NewPCG(seed, 301))
	two := group(rng, 2, 256, 128, 1000)
	other, beginning := two[0], two[0]
	other.IDs = slices.Clone(other.IDs)
	other.IDs[len(other.IDs)-1]++
	beginning.IDs, beginning.Logprobs = beginning.IDs[:101], beginning.Logprobs[:101]
	beginning.Trained = make([]bool, 101)
	beginning.Trained[100] = true
	tr := New(smallTarget, Options{Device: graphtest.CPU(t)})
	micro, err := tr.microBatches(append(two, two[1], other, two[0], beginning), 0)
	require.NoError(t, err)
	require.Len(t, micro, 1)
	require.Equal(t, 256+2*128, micro[0].Layout.Tokens())
	require.Equal(t, 4, absorbed(micro[0]))

	tr.opts.Alone = true
	micro, err = tr.microBatches([]grpo.Sequence{two[0], two[0]}, 0)
	require.NoError(t, err)
	require.Zero(t, absorbed(micro[0]))
}

// TestAbsorbed_Gradients: of losses of tokens, of sequences, of targets and of pairs, the gradient is that of sequences
// which are computed one by one.
func TestAbsorbed_Gradients(t *testing.T) {
	ppo := grpo.PolicyLoss{Loss: credit.PPO, DualClip: 3}
	losses := map[string]grpo.Loss{
		"supervised": grpo.SupervisedLoss{}, "cispo": grpo.PolicyLoss{},
		"gspo":       grpo.PolicyLoss{Loss: credit.GSPO, Epsilon: ptr(0.2), EpsilonHigh: ptr(0.3)},
		"geometric":  grpo.PolicyLoss{Loss: credit.ImportanceSampling, Level: credit.LevelGeometric},
		"corrected":  grpo.Corrected{Loss: ppo, Correction: credit.Correction{Sequence: true}, FromOld: true},
		"penalized":  grpo.Penalized{Loss: ppo, KL: 0.1, Entropy: 0.05},
		"preference": grpo.PreferenceLoss{Preference: credit.Preference{Beta: 0.3, Mean: true}},
	}
	for _, s := range both(t) {
		for name, loss := range losses {
			t.Run(s.name+"/"+name, func(t *testing.T) {
				rng := rand.New(rand.NewPCG(seed, 302))
				batch := absorbing(rng, 6, 64, 60)
				if linear, ok := loss.(grpo.BatchLoss); ok {
					logprobs, err := s.trainer(t, Options{}).Logprobs(t.Context(), s.state, batch, 0)
					require.NoError(t, err)
					batch, _ = linear.Linearize(batch, logprobs)
				}
				want, plain := gradientOf(t, &s, Options{Alone: true}, batch, Run{Loss: loss, MicroBatch: 1})
				for _, c := range []struct {
					opts Options
					most int
				}{{}, {opts: Options{FewShapes: true}}, {opts: Options{MicroTokens: 100, Narrow: true}}, {most: 3}} {
					got, metrics := gradientOf(t, &s, c.opts, batch, Run{Loss: loss, MicroBatch: c.most})
					difference, length := distance(want, got)
					require.Greater(t, length, 1e-4)
					require.Less(t, difference, 1e-5*length, "seed %d, %+v", seed, c)
					for metric, x := range plain {
						require.InDelta(t, x, metrics[metric], 1e-4*max(1, math.Abs(x)), "%s, %+v", metric, c)
					}
				}
			})
		}
	}
}

// TestAbsorbed_Memory: a micro-batch has no more trained tokens than tokens are planned for where the head is trained,
// whose logits are kept; and a list of them is padded to a power of two, so that few layouts occur.
func TestAbsorbed_Memory(t *testing.T) {
	batch := slices.Repeat(group(rand.New(rand.NewPCG(seed, 303)), 1, 50, 150, 1000), 40)
	for _, head := range []bool{false, true} {
		target := smallTarget
		target.plan.Head = head
		tr := New(target, Options{Device: graphtest.CPU(t), MicroTokens: 256})
		micro, err := tr.microBatches(batch, 0)
		require.NoError(t, err)
		for _, m := range micro {
			require.Equal(t, tr.plan.Padding().Length(200), m.Layout.Tokens())
			require.Zero(t, m.Trained&(m.Trained-1), "%d is a power of two", m.Trained)
			if head {
				require.LessOrEqual(t, m.Trained, tr.sizes.Shared(m.Length))
			}
		}
		require.Equal(t, head, len(micro) > 1)
	}
}
