package trainer

import (
	"fmt"
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

// randomTree makes sequences that grow out of one another: each shares a beginning of random length with one before it,
// and some are whole beginnings of others.
func randomTree(rng *rand.Rand, n, vocabulary, most int) []grpo.Sequence {
	batch := []grpo.Sequence{randomSequence(rng, vocabulary, most)}
	for len(batch) < n {
		from, s := batch[rng.IntN(len(batch))], randomSequence(rng, vocabulary, most)
		keep := rng.IntN(len(from.IDs) + 1)
		copy(s.IDs, from.IDs[:min(keep, len(s.IDs))])
		s.Trajectory = len(batch)
		batch = append(batch, s)
	}
	rng.Shuffle(n, func(i, j int) { batch[i], batch[j] = batch[j], batch[i] })
	return batch
}

// TestShared_EveryTrainedTokenOnce: of random trees, every trained token is listed once with all that it is learned
// from, and trees with long common beginnings are computed with fewer tokens than alone.
func TestShared_EveryTrainedTokenOnce(t *testing.T) {
	saved := 0
	for i := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, i))
		batch := slices.Concat(randomTree(rng, 1+rng.IntN(12), 1000, 3+rng.IntN(100)),
			randomTree(rng, 1+rng.IntN(12), 1000, 3+rng.IntN(100)))
		tr := New(smallTarget, Options{Device: graphtest.CPU(t), MicroTokens: 1 + rng.IntN(2000), FewShapes: i%2 == 0})
		most := rng.IntN(10)
		micro, err := tr.microBatches(batch, most)
		require.NoError(t, err)
		require.Equal(t, tokensOf(batch), unpack(micro), "seed %d %d", seed, i)
		var order []int
		for _, m := range micro {
			order = append(order, m.sequences...)
			if most > 0 {
				require.LessOrEqual(t, len(m.sequences), most)
			}
			if len(m.sequences) > 1 {
				length := tr.plan.Padding().Length(longest(batch, m.sequences))
				require.LessOrEqual(t, m.Layout.Tokens(), max(tr.sizes.Shared(length), m.Length))
			}
			if m.Branches[0].Rows > 0 {
				saved++
			}
		}
		slices.Sort(order)
		require.Equal(t, indices(len(batch)), order)
	}
	require.Greater(t, saved, 80, "micro-batches with branches")
}

// TestShared_Group: eight branches of 128 tokens on a prompt of 384 are 1408 tokens, without padding, and 1536 in
// powers of two.
func TestShared_Group(t *testing.T) {
	batch := group(rand.New(rand.NewPCG(seed, 1)), 8, 384, 128, 1000)
	for few, tokens := range map[bool]int{false: 384 + 8*128, true: 512 + 8*128} {
		micro, err := New(smallTarget, Options{Device: graphtest.CPU(t), FewShapes: few}).microBatches(batch, 0)
		require.NoError(t, err)
		require.Len(t, micro, 1)
		require.Equal(t, tokens, micro[0].Layout.Tokens())
	}
}

// TestShared_FewShapes counts the graphs of a long run with groups of 8, with prompts of 200 to 400 tokens and replies
// of 20 to 500, and the tokens that are computed, padding included, for each that sequences alone take.
func TestShared_FewShapes(t *testing.T) {
	rng := rand.New(rand.NewPCG(seed, 3))
	seen, computed := map[pack.Layout]bool{}, map[bool]int{}
	for range 200 {
		batch := group(rng, 8, 200+rng.IntN(201), 500, 1000)
		for i := range batch {
			s := &batch[i]
			end := len(s.IDs) - rng.IntN(481)
			s.IDs, s.Logprobs, s.Trained = s.IDs[:end], s.Logprobs[:end], s.Trained[:end]
		}
		for _, alone := range []bool{false, true} {
			tr := New(smallTarget, Options{Device: graphtest.CPU(t), FewShapes: true, Alone: alone})
			micro, err := tr.microBatches(batch, 0)
			require.NoError(t, err)
			for _, m := range micro {
				computed[alone] += m.Layout.Tokens()
				if !alone {
					seen[m.Layout] = true
				}
			}
		}
	}
	part := float64(computed[false]) / float64(computed[true])
	t.Logf("%d layouts, %.2f of the tokens", len(seen), part)
	require.LessOrEqual(t, len(seen), 20)
	require.Less(t, part, 0.6)
}

// TestShared_FewShapesOfGroups counts the graphs of 20 steps of 8 groups of 8, whose prompts and replies vary as much
// as those of agents do, and the tokens that are computed for each that has to be.
func TestShared_FewShapesOfGroups(t *testing.T) {
	for _, c := range []struct {
		micro, layouts int
		tokens         float64
	}{{4096, 40, 2.2}, {16384, 40, 2.6}} {
		rng := rand.New(rand.NewPCG(seed, 4))
		around := func(n, spread float64) int { return 1 + int(n*math.Exp(spread*rng.NormFloat64())) }
		tr := New(smallTarget, Options{Device: graphtest.CPU(t), FewShapes: true, MicroTokens: c.micro})
		seen, computed, needed := map[pack.Layout]bool{}, 0, 0
		for range 20 {
			var batch []grpo.Sequence
			for range 8 {
				prompt := around(300, 0.4)
				answers := group(rng, 8, prompt, 1000, 1000)
				needed += prompt
				for _, s := range answers {
					own := min(around(100, 0.6), 1000)
					needed += own
					s.IDs, s.Logprobs, s.Trained = s.IDs[:prompt+own], s.Logprobs[:prompt+own], s.Trained[:prompt+own]
					batch = append(batch, s)
				}
			}
			micro, err := tr.microBatches(batch, 0)
			require.NoError(t, err)
			for _, m := range micro {
				seen[m.Layout] = true
				computed += m.Layout.Tokens()
			}
		}
		part := float64(computed) / float64(needed)
		t.Logf("%d tokens a micro-batch: %d layouts, %.2f tokens computed for each", c.micro, len(seen), part)
		require.LessOrEqual(t, len(seen), c.layouts)
		require.Less(t, part, c.tokens)
	}
}

// TestShared_LongPrompt: a prompt that is longer than micro-batches usually are is shared as long as the whole has at
// most twice the tokens of its longest sequence.
func TestShared_LongPrompt(t *testing.T) {
	tr := New(smallTarget, Options{Device: graphtest.CPU(t), MicroTokens: 256})
	tokens := func(batch []grpo.Sequence) (n int) {
		micro, err := tr.microBatches(batch, 0)
		require.NoError(t, err)
		for _, m := range micro {
			n += m.Layout.Tokens()
		}
		return n
	}
	chats := group(rand.New(rand.NewPCG(seed, 1)), 8, 1024, 128, 1000)
	answers := group(rand.New(rand.NewPCG(seed, 2)), 2, 1024, 1024, 1000)
	require.Equal(t, 1024+8*128, tokens(chats))
	require.Equal(t, 1024+2*1024, tokens(answers))
	tr.sizes.Narrow = true
	require.Equal(t, 8*(1024+128), tokens(chats))
	require.Equal(t, 2*(1024+1024), tokens(answers))
}

// TestShared_Turns: a conversation that is stored turn by turn, each with all before it, is computed as one path.
func TestShared_Turns(t *testing.T) {
	rng := rand.New(rand.NewPCG(seed, 2))
	whole := group(rng, 1, 0, 800, 1000)[0]
	var batch []grpo.Sequence
	for end := 80; end <= 800; end += 80 {
		s := whole
		s.IDs, s.Logprobs, s.Trained = whole.IDs[:end], whole.Logprobs[:end], make([]bool, end)
		for i := end - 20; i < end; i++ {
			s.Trained[i] = true
		}
		batch = append(batch, s)
	}
	tr := New(smallTarget, Options{Device: graphtest.CPU(t)})
	micro, err := tr.microBatches(batch, 0)
	require.NoError(t, err)
	require.Len(t, micro, 1)
	require.Equal(t, tr.plan.Padding().Length(799), micro[0].Layout.Tokens())
	require.Zero(t, micro[0].Branches, "it attends as one sequence does")
	require.Equal(t, tokensOf(batch), unpack(micro))
}

// group makes n sequences with a prompt in common.
func group(rng *rand.Rand, n, prompt, answer, vocabulary int) []grpo.Sequence {
	batch := make([]grpo.Sequence, n)
	first := make([]int32, prompt)
	for i := range first {
		first[i] = int32(rng.IntN(vocabulary))
	}
	for i := range batch {
		s := &batch[i]
		s.Advantage, s.Weight, s.Trajectory = rng.NormFloat64(), 1, i
		s.IDs = slices.Clone(first)
		for range answer + 1 {
			s.IDs = append(s.IDs, int32(rng.IntN(vocabulary)))
		}
		s.Logprobs, s.Trained = make([]float32, len(s.IDs)), make([]bool, len(s.IDs))
		for j := max(1, prompt); j < len(s.IDs); j++ {
			s.Trained[j], s.Logprobs[j] = true, -float32(rng.ExpFloat64())
		}
	}
	return batch
}

// TestShared_LogprobsAreTheSamplers: what is computed with shared beginnings has the bits of a pass over each sequence
// alone, as the sampler computes it.
func TestShared_LogprobsAreTheSamplers(t *testing.T) {
	for _, s := range both(t) {
		for i := range uint64(8) {
			rng := rand.New(rand.NewPCG(seed, 100+i))
			batch := randomTree(rng, 2+rng.IntN(8), 64, 20+rng.IntN(100))
			tr := s.trainer(t, Options{FewShapes: i%2 == 1})
			got, err := tr.Logprobs(t.Context(), s.state, batch, 0)
			require.NoError(t, err)
			for k, want := range s.scoreAll(t, s.state.Params, batch) {
				for j, trained := range batch[k].Trained {
					if trained {
						require.InDelta(t, want[j], got[k][j], graphtest.Rounding(), "%s, seed %d %d: logprob %d of sequence %d", s.name,
							seed, i, j, k)
					}
				}
			}
		}
	}
}

// TestShared_GradientsAreThoseOfSequencesAlone up to rounding, over random trees.
func TestShared_GradientsAreThoseOfSequencesAlone(t *testing.T) {
	for _, s := range both(t) {
		for name, loss := range map[string]grpo.Loss{"cispo": grpo.PolicyLoss{}, "gspo": grpo.PolicyLoss{Loss: credit.GSPO}} {
			for i := range uint64(4) {
				t.Run(fmt.Sprintf("%s/%s/%d", s.name, name, i), func(t *testing.T) {
					rng := rand.New(rand.NewPCG(seed, 200+i))
					batch := s.scored(t, randomTree(rng, 2+rng.IntN(8), 64, 20+rng.IntN(100)),
						func() float32 { return float32(rng.NormFloat64()) * 0.01 })
					got, metrics := gradientOf(t, &s, Options{FewShapes: i%2 == 1}, batch, Run{Loss: loss})
					want, plain := gradientOf(t, &s, Options{Alone: true}, batch, Run{Loss: loss})
					difference, length := distance(want, got)
					require.Greater(t, length, 1e-4)
					require.Less(t, difference, 1e-5*length, "seed %d", seed)
					require.InDelta(t, plain["loss/log_ratio_max"], metrics["loss/log_ratio_max"], graphtest.Rounding())
				})
			}
		}
	}
}
