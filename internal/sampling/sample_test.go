package sampling

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/floats"
)

var inf = float32(math.Inf(-1))

// reshaped is the distribution that the comment of Sample describes, by brute force: a token is beaten by those that
// are likelier, or as likely and of a smaller id. margin is how close a decision of top-k or top-p is: between two
// tokens that temperature has made almost equal, or about a token that is just kept or just left out.
func reshaped(logprobs []float32, s Settings) (p []float64, margin float64) {
	scaled := make([]float64, len(logprobs))
	for i, lp := range logprobs {
		scaled[i] = (float64(lp) - float64(slices.Max(logprobs))) / s.Temperature
	}
	p, margin = plainSoftmax(scaled), 1
	rank, before := make([]int, len(p)), make([]float64, len(p)) // tokens that beat this one, and their mass
	beaten := func() {
		for i := range p {
			rank[i], before[i] = 0, 0
			for j := range p {
				if d := scaled[j] - scaled[i]; d > 0 {
					margin = min(margin, d)
				}
				if scaled[j] > scaled[i] || scaled[j] == scaled[i] && j < i {
					rank[i]++
					before[i] += p[j]
				}
			}
		}
	}
	keep := func(kept func(i int) bool) {
		for i := range p {
			if !kept(i) {
				p[i] = 0
			}
		}
		floats.Scale(1/floats.Sum(p), p)
	}
	if s.MinP > 0 {
		best := slices.Max(p)
		for i := range p {
			margin = min(margin, math.Abs(p[i]-s.MinP*best))
		}
		keep(func(i int) bool { return p[i] >= s.MinP*best })
	}
	if s.TopK > 0 {
		beaten()
		keep(func(i int) bool { return rank[i] < s.TopK })
	}
	if s.TopP < 1 {
		beaten()
		for i := range p {
			margin = min(margin, math.Abs(before[i]-s.TopP))
		}
		keep(func(i int) bool { return rank[i] == 0 || before[i] < s.TopP })
	}
	return p, margin
}

func plainLogSoftmax(x []float64) []float64 {
	y := slices.Clone(x)
	floats.AddConst(-floats.LogSumExp(x), y)
	return y
}

func plainSoftmax(x []float64) []float64 {
	y := plainLogSoftmax(x)
	for i, v := range y {
		y[i] = math.Exp(v)
	}
	return y
}

// randomLogprobs are a log-softmax with ties, and tokens that are impossible.
func randomLogprobs(rng *rand.Rand, n int) []float32 {
	scale := []float64{0.1, 2, 10}[rng.IntN(3)]
	x := make([]float64, n)
	for i := range x {
		x[i] = math.Round(8*rng.NormFloat64()*scale) / 8
		if rng.IntN(5) == 0 {
			x[i] = math.Inf(-1)
		}
	}
	x[rng.IntN(n)] = 0
	out := make([]float32, n)
	for i, lp := range plainLogSoftmax(x) {
		out[i] = float32(lp)
	}
	return out
}

// checkSample compares one draw with the brute-force distribution, walked along with the same random number.
func checkSample(t *testing.T, logprobs []float32, s Settings, seed uint64, index int) {
	t.Helper()
	id, sampled := Sample(logprobs, s, seed, index)
	p, margin := reshaped(logprobs, s)
	if margin < 1e-9 {
		return // rounding decides what is kept
	}
	require.Positive(t, p[id], "token %d is impossible: %+v", id, s)
	require.InDelta(t, math.Log(p[id]), sampled, 1e-6+1e-6*math.Abs(math.Log(p[id])), "%+v", s)
	u := rand.New(rand.NewPCG(seed, uint64(index))).Float64()
	for i, q := range p {
		if math.Abs(u-q) < 1e-9 {
			return // rounding decides between two tokens
		}
		if u < q {
			require.EqualValues(t, i, id, "%+v", s)
			return
		}
		u -= q
	}
}

// TestSample_MatchesBruteForce over random distributions and settings, temperatures without limit among them.
func TestSample_MatchesBruteForce(t *testing.T) {
	rng := rand.New(rand.NewPCG(seed, 50))
	for i := range 3000 {
		checkSample(t, randomLogprobs(rng, 1+rng.IntN(30)), Settings{
			Temperature: []float64{1, 0.7, 1.3, 0.01, 10, 1e-300, 1e300}[rng.IntN(7)],
			TopP:        []float64{1, 0.9, 0.5, 0.999, 1e-9, 0}[rng.IntN(6)],
			TopK:        []int{0, 1, 2, 5, 100}[rng.IntN(5)],
			MinP:        []float64{0, 0, 0.05, 0.3, 1}[rng.IntN(5)],
		}, rng.Uint64(), i)
	}
}

func TestSample_Greedy(t *testing.T) {
	for _, c := range []struct {
		logprobs []float32
		want     int32
	}{
		{[]float32{-3, -1, -2}, 1},
		{[]float32{-2, -1, -1, -1}, 1},
		{[]float32{-1, -1}, 0},
		{[]float32{inf, -50, inf, -50}, 1},
		{[]float32{0}, 0},
	} {
		id, sampled := Sample(c.logprobs, Settings{TopP: 0.3, TopK: 2}, 1, 2)
		require.Equal(t, c.want, id, "ties are in favour of the smaller id")
		require.Zero(t, sampled, "the distribution has one token")
		id, _ = Sample(c.logprobs, Settings{Temperature: 1e-12, TopP: 1, TopK: 1}, 1, 2)
		require.Equal(t, c.want, id)
		id, _ = Sample(c.logprobs, Settings{Temperature: 1}, 1, 2)
		require.Equal(t, c.want, id, "TopP 0 leaves one token")
	}
}

// TestSample_TiesAtTheEdge: of equal tokens top-k and top-p keep those with the smaller ids.
func TestSample_TiesAtTheEdge(t *testing.T) {
	quarter := float32(math.Log(0.25))
	logprobs := []float32{quarter, quarter, quarter, quarter}
	for _, s := range []Settings{{Temperature: 1, TopP: 1, TopK: 2}, {Temperature: 1, TopP: 0.5},
		{Temperature: 1, TopP: 0.4}, {Temperature: 1, TopP: 0.9, TopK: 2}} {
		seen := map[int32]bool{}
		for i := range 200 {
			id, sampled := Sample(logprobs, s, seed, i)
			seen[id] = true
			require.InDelta(t, -math.Ln2, sampled, 1e-6)
		}
		require.Equal(t, map[int32]bool{0: true, 1: true}, seen, "%+v", s)
	}
}

// TestSample_ExtremeTemperatures: the ends are greedy and uniform over what is possible.
func TestSample_ExtremeTemperatures(t *testing.T) {
	logprobs := []float32{-40, inf, -0.5, -1, inf, -80}
	for _, cold := range []float64{math.SmallestNonzeroFloat64, 1e-300, 1e-5} {
		for i := range 100 {
			id, sampled := Sample(logprobs, Settings{Temperature: cold, TopP: 1}, seed, i)
			require.EqualValues(t, 2, id, "temperature %v", cold)
			require.Zero(t, sampled)
		}
	}
	for _, hot := range []float64{1e12, 1e300, math.MaxFloat64} {
		count := make([]int, len(logprobs))
		for i := range 4000 {
			id, sampled := Sample(logprobs, Settings{Temperature: hot, TopP: 1}, seed, i)
			count[id]++
			require.InDelta(t, -math.Log(4), sampled, 1e-6)
		}
		for i, n := range count {
			if logprobs[i] == inf {
				require.Zero(t, n)
			} else {
				require.InDelta(t, 1000, n, 5*math.Sqrt(1000*0.75), "temperature %v, seed %d", hot, seed)
			}
		}
	}
}

// chiSquare compares counts with a probability of each cell. It returns how many standard deviations it lies above what
// chance makes of it.
func chiSquare(count []int, p []float64) float64 {
	total, sum, cells := 0.0, 0.0, 0.0
	for _, n := range count {
		total += float64(n)
	}
	for i, n := range count {
		if p[i] > 0 {
			d := float64(n) - total*p[i]
			sum += d * d / (total * p[i])
			cells++
		}
	}
	return (sum - (cells - 1)) / math.Sqrt(2*(cells-1))
}

// TestSample_Frequencies counts draws: along a completion, and over seeds.
func TestSample_Frequencies(t *testing.T) {
	rng := rand.New(rand.NewPCG(seed, 51))
	for _, s := range []Settings{{Temperature: 1, TopP: 1}, {Temperature: 0.6, TopP: 0.95, TopK: 7},
		{Temperature: 2, TopP: 0.8}} {
		logprobs := randomLogprobs(rng, 12)
		p, _ := reshaped(logprobs, s)
		along, over := make([]int, 12), make([]int, 12)
		for i := range 20_000 {
			id, _ := Sample(logprobs, s, seed, i)
			along[id]++
			id, _ = Sample(logprobs, s, uint64(i), 3)
			over[id]++
		}
		require.Less(t, chiSquare(along, p), 5.0, "%+v: %v for %v", s, along, p)
		require.Less(t, chiSquare(over, p), 5.0, "%+v: %v for %v", s, over, p)
	}
}

// TestSample_NeighboursAreIndependent: draws at neighbouring positions, and of neighbouring seeds, do not know of each
// other, although only one bit of what they are seeded with differs.
func TestSample_NeighboursAreIndependent(t *testing.T) {
	const n = 8
	uniform, cells := make([]float32, n), make([]float64, n*n)
	for i := range cells {
		cells[i] = 1.0 / (n * n)
	}
	draw := func(seed uint64, index int) int {
		id, _ := Sample(uniform, Settings{Temperature: 1, TopP: 1}, seed, index)
		return int(id)
	}
	for name, pair := range map[string]func(i int) (a, b int){
		"positions":          func(i int) (int, int) { return draw(seed, 2*i), draw(seed, 2*i+1) },
		"seeds":              func(i int) (int, int) { return draw(uint64(2*i), 0), draw(uint64(2*i+1), 0) },
		"seed and position":  func(i int) (int, int) { return draw(uint64(i), i+1), draw(uint64(i+1), i) },
		"top bits of a seed": func(i int) (int, int) { return draw(uint64(i), 5), draw(uint64(i)|1<<63, 5) },
	} {
		count := make([]int, n*n)
		for i := range 20_000 {
			a, b := pair(i)
			count[a*n+b]++
		}
		require.Less(t, chiSquare(count, cells), 5.0, name)
	}
}

// TestSample_DependsOnItsArgumentsAlone: not on draws before it, and it changes nothing that it is given.
func TestSample_DependsOnItsArgumentsAlone(t *testing.T) {
	rng := rand.New(rand.NewPCG(seed, 52))
	a, b := randomLogprobs(rng, 20), randomLogprobs(rng, 9)
	before := slices.Clone(a)
	s := Settings{Temperature: 0.8, TopP: 0.9, TopK: 5}
	var first []int32
	for i := range 50 {
		id, _ := Sample(a, s, seed, i)
		first = append(first, id)
	}
	for i := range 50 {
		i = 49 - i
		Sample(b, s, seed, i)
		id, _ := Sample(a, s, seed, i)
		require.Equal(t, first[i], id)
	}
	require.Equal(t, before, a)
}

func TestSampling_Reshapes(t *testing.T) {
	require.False(t, Settings{Temperature: 1, TopP: 1}.Reshapes())
	require.False(t, Settings{Temperature: 1, TopP: 1, Penalties: Penalties{Repetition: 1}}.Reshapes())
	for _, s := range []Settings{{Temperature: 0, TopP: 1}, {Temperature: 0.9, TopP: 1}, {Temperature: 1, TopP: 0.99},
		{Temperature: 1, TopP: 1, TopK: 1}, {Temperature: 1, TopP: 1, MinP: 0.1},
		{Temperature: 1, TopP: 1, Penalties: Penalties{Repetition: 1.1}},
		{Temperature: 1, TopP: 1, Penalties: Penalties{Presence: -1}},
		{Temperature: 1, TopP: 1, Penalties: Penalties{Frequency: 0.1}},
		{Temperature: 1, TopP: 1, Penalties: Penalties{Bias: map[int32]float64{3: 0}}}} {
		require.True(t, s.Reshapes(), "%+v", s)
	}
	logprobs := randomLogprobs(rand.New(rand.NewPCG(seed, 53)), 30)
	for i := range 100 {
		id, sampled := Sample(logprobs, Settings{Temperature: 1, TopP: 1}, seed, i)
		require.InDelta(t, logprobs[id], sampled, 2e-6, "without reshaping it is the model's own logprob")
	}
}

// FuzzSample: a draw is a possible token of the distribution that brute force finds, at any temperature.
func FuzzSample(f *testing.F) {
	f.Add([]byte{1, 2, 255, 0}, 1.0, 1.0, 0, uint64(1), 0)
	f.Add([]byte{9, 9, 9}, 1e-310, 0.5, 2, uint64(1), 1<<40)
	f.Add([]byte{255, 0, 254, 255}, 1e308, 0.999, 1, uint64(1)<<63, -1)
	f.Fuzz(func(t *testing.T, data []byte, temperature, topP float64, topK int, seed uint64, index int) {
		logprobs := make([]float32, 0, len(data)+1)
		for _, b := range data {
			if b == 255 {
				logprobs = append(logprobs, inf)
			} else {
				logprobs = append(logprobs, -float32(b)*float32(b)/16)
			}
		}
		logprobs = append(logprobs, -1)
		if !(temperature > 0) || math.IsInf(temperature, 0) || !(topP >= 0) || len(logprobs) > 200 {
			return
		}
		checkSample(t, logprobs, Settings{Temperature: temperature, TopP: topP, TopK: topK}, seed, index)
	})
}

// BenchmarkSample draws from the vocabulary of SmolLM2.
func BenchmarkSample(b *testing.B) {
	rng, x := rand.New(rand.NewPCG(seed, 51)), make([]float64, 49_152)
	for i := range x {
		x[i] = 3 * rng.NormFloat64()
	}
	logprobs := make([]float32, len(x))
	for i, lp := range plainLogSoftmax(x) {
		logprobs[i] = float32(lp)
	}
	b.Run("plain", func(b *testing.B) {
		for i := range b.N {
			Plain(logprobs, 1, i)
		}
	})
	b.Run("temperature", func(b *testing.B) {
		for i := range b.N {
			Sample(logprobs, Settings{Temperature: 0.7, TopP: 1}, 1, i)
		}
	})
}

// TestPlain_LikeSample where rounding does not decide, in vocabularies of one block and of several.
func TestPlain_LikeSample(t *testing.T) {
	rng, plain := rand.New(rand.NewPCG(seed, 52)), Settings{Temperature: 1, TopP: 1}
	for i := range 3000 {
		logprobs := randomLogprobs(rng, []int{1, 30, 255, 256, 257, 1100}[rng.IntN(6)])
		from := rng.Uint64()
		want, _ := Sample(logprobs, plain, from, i)
		got := Plain(logprobs, from, i)
		if got == want {
			continue
		}
		sum, u := 0.0, Uniform(from, i)
		for _, lp := range logprobs[:min(got, want)+1] {
			sum += math.Exp(float64(lp))
		}
		require.InDelta(t, u, sum, 1e-5, "%d and %d of %d, seed %d", got, want, len(logprobs), seed)
	}
}
