package sampling

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/floats"
)

// randomPenalties has each penalty off half the time.
func randomPenalties(rng *rand.Rand, vocab int) Penalties {
	p := Penalties{
		Repetition: []float64{0, 1, 1.3, 0.5}[rng.IntN(4)], Presence: []float64{0, 0, 1.5, -2}[rng.IntN(4)],
		Frequency: []float64{0, 0, 0.7, -0.3}[rng.IntN(4)],
	}
	if rng.IntN(2) == 0 {
		p.Bias = map[int32]float64{int32(rng.IntN(vocab)): 5, int32(rng.IntN(vocab)): -100, int32(rng.IntN(vocab)): 0.5}
	}
	return p
}

// penalized is the formula of [Penalties.Adjust], token by token.
func penalized(logits []float64, p Penalties, prompt, reply []int32) []float64 {
	out := slices.Clone(logits)
	for i := range out {
		id, n := int32(i), 0.0
		for _, other := range reply {
			if other == id {
				n++
			}
		}
		out[i] += p.Bias[id]
		if known := n > 0 || slices.Contains(prompt, id); known && p.Repetition != 0 && out[i] > 0 {
			out[i] /= p.Repetition
		} else if known && p.Repetition != 0 {
			out[i] *= p.Repetition
		}
		if n > 0 {
			out[i] -= p.Frequency*n + p.Presence
		}
	}
	return out
}

func randomIDs(rng *rand.Rand, n, vocab int) []int32 {
	ids := make([]int32, n)
	for i := range ids {
		ids[i] = int32(rng.IntN(vocab))
	}
	return ids
}

// TestPenalties_MatchFormula: the adjusted distribution is that of the adjusted logits, for logits of both signs.
func TestPenalties_MatchFormula(t *testing.T) {
	rng := rand.New(rand.NewPCG(seed, 70))
	for range 2000 {
		v := 2 + rng.IntN(30)
		logits, scores := make([]float64, v), make([]float32, v)
		for i := range logits {
			logits[i] = float64(float32(4 * rng.NormFloat64()))
		}
		for i, lp := range plainLogSoftmax(logits) {
			scores[i] = float32(lp)
		}
		p, prompt, reply := randomPenalties(rng, v), randomIDs(rng, rng.IntN(9), v), randomIDs(rng, rng.IntN(9), v)
		counts := NewCounts(prompt)
		for _, id := range reply {
			counts.Add(id)
		}
		p.Adjust(scores, floats.LogSumExp(logits), counts)
		got := make([]float64, v)
		for i, x := range scores {
			got[i] = float64(x)
		}
		want := plainSoftmax(penalized(logits, p, prompt, reply))
		require.InDeltaSlice(t, want, plainSoftmax(got), 1e-5, "%+v, prompt %v, reply %v, seed %d", p, prompt, reply, seed)
	}
}

// TestPenalties_OffChangesNothing, bit for bit, whatever was sampled.
func TestPenalties_OffChangesNothing(t *testing.T) {
	rng := rand.New(rand.NewPCG(seed, 71))
	for _, p := range []Penalties{{}, {Repetition: 1}} {
		require.False(t, p.Adjusts())
		before := randomLogprobs(rng, 50)
		scores, counts := slices.Clone(before), NewCounts(randomIDs(rng, 9, 50))
		counts.Add(7)
		p.Adjust(scores, 3, counts)
		require.Equal(t, before, scores)
	}
}

// TestPenalties_Frequencies: tokens are drawn as often as the penalized distribution says, by a chi-square test.
func TestPenalties_Frequencies(t *testing.T) {
	logits := []float64{1, 0.5, -0.5, 0, 2}
	p := Penalties{Repetition: 1.4, Presence: 0.3, Frequency: 0.4, Bias: map[int32]float64{2: 1.5}}
	scores := make([]float32, len(logits))
	for i, lp := range plainLogSoftmax(logits) {
		scores[i] = float32(lp)
	}
	counts, reply := NewCounts([]int32{1, 4}), []int32{4, 4, 3}
	for _, id := range reply {
		counts.Add(id)
	}
	p.Adjust(scores, floats.LogSumExp(logits), counts)
	for _, temperature := range []float64{1, 0.6} {
		scaled := penalized(logits, p, []int32{1, 4}, reply)
		floats.Scale(1/temperature, scaled)
		want, count := plainSoftmax(scaled), make([]int, len(logits))
		for i := range 20_000 {
			id, sampled := Sample(scores, Settings{Temperature: temperature, TopP: 1}, seed, i)
			count[id]++
			require.InDelta(t, math.Log(want[id]), sampled, 1e-5)
		}
		require.Less(t, chiSquare(count, want), 5.0, "temperature %v", temperature)
	}
}
