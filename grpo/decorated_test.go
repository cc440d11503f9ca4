package grpo

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/diff/fd"

	"github.com/goart-dev/art/grpo/credit"
	"github.com/goart-dev/art/internal/graphx/graphtest"
)

// decoratedTokens are random tokens with what corrections and penalties use.
func decoratedTokens(src *rand.Rand, n int) tokens {
	in := randomTokens(src, n)
	for i := range n {
		in.Behavior = append(in.Behavior, in.Old[i]+0.02*src.NormFloat64()+[]float64{0, 0.9, -1.2, 0.05}[i%4])
		distance := []float64{-2, -0.5, -0.01, 0.001, 0.3, 1.5}[i%6]
		in.Reference = append(in.Reference, in.New[i]+distance*(0.9+0.1*src.Float64()))
		in.Entropy = append(in.Entropy, 3*src.Float64())
	}
	return in
}

// plainCorrection is the weight of token i; log-ratios are from the logprobs p, a constant.
func plainCorrection(c Corrected, in tokens, p []float64, i int) float64 {
	x := p[i] - in.Behavior[i]
	if c.Sequence {
		x = 0
		for j := range p {
			if in.Rows[j] == in.Rows[i] && in.Mask[j] != 0 {
				x += p[j] - in.Behavior[j]
			}
		}
	}
	r := math.Exp(math.Max(-20, math.Min(x, 20)))
	lo, hi := c.correction().Low, c.correction().High
	if c.Method == credit.CorrectMask {
		if r < lo || r > hi {
			return 0
		}
		return r
	}
	return math.Max(lo, math.Min(r, hi))
}

// plainPenalty is the term of token i, without its weight.
func plainPenalty(e credit.Estimator, d float64) float64 {
	switch e {
	case credit.K1:
		return d
	case credit.K2:
		return d * d / 2
	default:
		return math.Exp(-d) + d - 1
	}
}

// plainDecorated is a penalised or corrected policy loss in plain Go.
func plainDecorated(l Loss, in tokens, frozen tokens, denominator float64) float64 {
	switch l := l.(type) {
	case Penalized:
		sum := 0.0
		for i := range in.New {
			penalty := plainPenalty(l.Estimator, in.New[i]-in.Reference[i])
			sum += in.Mask[i] * (l.KL*in.Weight[i]*penalty - l.Entropy*in.Entropy[i])
		}
		return plainDecorated(l.Loss, in, frozen, denominator) + sum/denominator
	case Corrected:
		p := frozen.New
		if l.FromOld {
			p = in.Old
		}
		in.Weight = slices.Clone(in.Weight)
		for i := range in.Weight {
			in.Weight[i] *= plainCorrection(l, in, p, i)
		}
		return plainDecorated(l.Loss, in, frozen, denominator)
	default:
		return plainLoss(l.(PolicyLoss), in, frozen.logRatios(), denominator)
	}
}

var decorated = []Loss{
	Corrected{Loss: PolicyLoss{}},
	Corrected{Loss: PolicyLoss{Loss: credit.PPO}, Correction: credit.Correction{Method: credit.CorrectMask}, FromOld: true},
	Corrected{Loss: PolicyLoss{Loss: credit.Reinforce}, Correction: credit.Correction{Low: 0.7, High: 1.3}},
	Corrected{Loss: PolicyLoss{Loss: credit.GSPO}, Correction: credit.Correction{Sequence: true, High: 50}, FromOld: true},
	Corrected{Loss: PolicyLoss{Loss: credit.DAPO}, Correction: credit.Correction{Sequence: true, Method: credit.CorrectMask, Low: 1e-3, High: 1e3}},
	Penalized{Loss: PolicyLoss{Loss: credit.GRPO}, KL: 0.04},
	Penalized{Loss: PolicyLoss{}, KL: 0.1, Estimator: credit.K1},
	Penalized{Loss: PolicyLoss{}, KL: 0.1, Estimator: credit.K2, Entropy: 0.01},
	Penalized{Loss: PolicyLoss{Loss: credit.PPO}, Entropy: 0.3},
	Penalized{Loss: Corrected{Loss: PolicyLoss{Loss: credit.DrGRPO}}, KL: 0.2, Estimator: credit.K3, Entropy: 0.01},
}

// TestDecorated_MatchesPlainGo compares values, and gradients by finite differences.
func TestDecorated_MatchesPlainGo(t *testing.T) {
	device := graphtest.Device(t)
	for _, l := range decorated {
		t.Run(l.Spec().Key, func(t *testing.T) {
			require.NoError(t, l.Validate())
			in := decoratedTokens(rand.New(rand.NewPCG(31, 1)), 60)
			in.Mask[5], in.Mask[59] = 0, 0
			plain := func(x []float64) float64 {
				at := in
				at.New = x
				return plainDecorated(l, at, in, 50)
			}
			got := deviceLoss[float64](t, device, l, in, 50)
			require.InEpsilon(t, plain(in.New), got.loss, 1e-6) // the series of k3 ends after d⁵
			want := fd.Gradient(nil, plain, in.New, &fd.Settings{Formula: fd.Central, Step: 1e-5})
			require.InDeltaSlice(t, want, got.grad, 1e-7)
			single := deviceLoss[float32](t, device, l, in, 50)
			require.InDeltaSlice(t, want, single.grad, 1e-5)
		})
	}
}

// TestPenalized_GradientOnPolicy takes the expectation over a whole vocabulary: in the loss, k1 has no gradient, k2 has
// that of KL(policy ‖ reference), k3 that of KL(reference ‖ policy).
func TestPenalized_GradientOnPolicy(t *testing.T) {
	device := graphtest.Device(t)
	logSoftmax := func(z []float64) []float64 {
		out, sum := slices.Clone(z), 0.0
		for _, x := range z {
			sum += math.Exp(x)
		}
		for i := range out {
			out[i] -= math.Log(sum)
		}
		return out
	}
	kl := func(p, q []float64) float64 {
		sum := 0.0
		for i := range p {
			sum += math.Exp(p[i]) * (p[i] - q[i])
		}
		return sum
	}
	logits, reference := []float64{0.3, -1, 1.2, 0}, logSoftmax([]float64{1, 0.4, -0.5, 0.2})
	policy := logSoftmax(logits)
	in := tokens{New: policy, Old: policy, Reference: reference, Advantage: make([]float64, 4),
		Mask: []float64{1, 1, 1, 1}}
	for _, x := range policy {
		in.Weight = append(in.Weight, math.Exp(x))
	}
	for estimator, divergence := range map[credit.Estimator]func(z []float64) float64{
		credit.K1: func([]float64) float64 { return 0 },
		credit.K2: func(z []float64) float64 { return kl(logSoftmax(z), reference) },
		credit.K3: func(z []float64) float64 { return kl(reference, logSoftmax(z)) },
	} {
		grad := deviceLoss[float64](t, device, Penalized{Loss: PolicyLoss{}, KL: 1, Estimator: estimator}, in, 1).grad
		total := 0.0
		for _, g := range grad {
			total += g
		}
		for i := range grad {
			grad[i] -= total * in.Weight[i] // of logits
		}
		want := fd.Gradient(nil, divergence, logits, &fd.Settings{Formula: fd.Central, Step: 1e-5})
		require.InDeltaSlice(t, want, grad, 1e-8, "%s", estimator)
	}
}

// TestDecorated_MicroBatchesAddUp: the normalisation is of the whole batch, so rows may be computed in any split.
func TestDecorated_MicroBatchesAddUp(t *testing.T) {
	device := graphtest.Device(t)
	for _, l := range decorated {
		in := decoratedTokens(rand.New(rand.NewPCG(32, 1)), 60)
		in.Mask[3], in.Mask[40] = 0, 0
		whole := deviceLoss[float64](t, device, l, in, 58)
		var sum float64
		var grad []float64
		for lo := 0; lo < 60; lo += 20 {
			r := deviceLoss[float64](t, device, l, in.part(lo, lo+20), 58)
			sum, grad = sum+r.loss, append(grad, r.grad...)
		}
		require.InEpsilon(t, whole.loss, sum, 1e-12, l.Spec().Key)
		require.InDeltaSlice(t, whole.grad, grad, 1e-15, l.Spec().Key)
	}
}

// TestDecorated_PaddingIsInert puts garbage into every padded input.
func TestDecorated_PaddingIsInert(t *testing.T) {
	device := graphtest.Device(t)
	for _, l := range decorated {
		clean := decoratedTokens(rand.New(rand.NewPCG(33, 1)), 60)
		for _, x := range clean.columns() {
			for i := 20; i < 60; i++ {
				(*x)[i] = 0
			}
		}
		want := deviceLoss[float32](t, device, l, clean, 20)
		for _, bad := range []float64{math.NaN(), math.Inf(1), -1e30} {
			dirty := clean
			for k, x := range dirty.columns() {
				if k == 4 { // the mask
					continue
				}
				*x = slices.Clone(*x)
				for i := 20; i < 60; i++ {
					(*x)[i] = bad
				}
			}
			require.Equal(t, want, deviceLoss[float32](t, device, l, dirty, 20), "%s, padding %v", l.Spec().Key, bad)
		}
	}
}

func TestDecorated_Metrics(t *testing.T) {
	device := graphtest.Device(t)
	in := decoratedTokens(rand.New(rand.NewPCG(34, 1)), 60)
	in.Mask[59] = 0
	l := Penalized{Loss: Corrected{Loss: PolicyLoss{}}, KL: 0.2, Entropy: 0.01}
	got := deviceLoss[float64](t, device, l, in, 59)
	want := map[string]float64{"loss/total": got.loss}
	for i := range 59 {
		r := math.Exp(in.New[i] - in.Behavior[i])
		want["loss/correction_mean"] += r / 59
		if r > 2 {
			want["loss/corrected_fraction"] += 1. / 59
		}
		want["loss/kl_ref"] += plainPenalty(credit.K3, in.New[i]-in.Reference[i]) / 59
		want["loss/entropy_full"] += in.Entropy[i] / 59
	}
	for name, v := range want {
		require.InEpsilon(t, v, got.metrics[name], 1e-5, name)
	}
	require.Len(t, got.metrics, len(policyMetrics)+len(want))
	require.True(t, l.Spec().Reference && l.Spec().Entropy && l.Spec().Sampled)
	require.False(t, Penalized{Loss: PolicyLoss{}, Entropy: 1}.Spec().Reference)
}

func TestDecorated_Validate(t *testing.T) {
	for _, c := range []struct {
		loss Loss
		want []string
	}{
		{Corrected{Correction: credit.Correction{Method: "x", Low: 3, High: 1}}, []string{`"x"`, "between 3 and 1", "without a loss"}},
		{Corrected{Loss: PolicyLoss{Loss: "y"}, Correction: credit.Correction{High: math.NaN()}}, []string{`"y"`, "NaN"}},
		{Penalized{KL: -1, Entropy: math.Inf(1), Estimator: "k4"}, []string{"KL coefficient is -1", "entropy coefficient is +Inf", `"k4"`, "without a loss"}},
		{Penalized{Loss: Corrected{}}, []string{"correction without a loss"}},
		{Corrected{Loss: PreferenceLoss{credit.Preference{Beta: 1}}}, []string{`correction of loss "preference"`}},
		{Penalized{Loss: PreferenceLoss{credit.Preference{Beta: 1}}}, []string{`penalty of loss "preference"`}},
	} {
		for _, want := range c.want {
			require.ErrorContains(t, c.loss.Validate(), want)
		}
	}
	seen := map[string]bool{}
	for _, l := range decorated {
		require.False(t, seen[l.Spec().Key], l.Spec().Key)
		seen[l.Spec().Key] = true
	}
}

// TestShapeByKL holds numbers that were computed by hand.
func TestShapeByKL(t *testing.T) {
	seqs := []Sequence{
		{IDs: []int32{1, 2, 3}, Trained: []bool{false, true, true}, Logprobs: []float32{0, -1, -2},
			Reference: []float32{9, -2, -2}, Advantage: 1},
		{IDs: []int32{1, 2}, Trained: []bool{false, true}, Logprobs: []float32{0, -9}, Old: []float32{0, -3},
			Reference: []float32{0, -1}, Advantage: -1},
	}
	for e, k := range map[credit.Estimator][]float64{
		"": {1, 0, -2}, credit.K1: {1, 0, -2}, credit.K2: {0.5, 0, 2}, credit.K3: {math.Exp(-1), 0, math.Exp(2) - 3},
	} {
		got, mean, err := credit.ShapeByKL(seqs, 0.5, e)
		require.NoError(t, err)
		require.InDelta(t, (k[0]+k[1]+k[2])/3, mean, 1e-12, "%q", e)
		require.InDeltaSlice(t, []float64{0, (mean - k[0]) / 2, (mean - k[1]) / 2}, got[0].Shaping, 1e-12)
		require.InDeltaSlice(t, []float64{0, (mean - k[2]) / 2}, got[1].Shaping, 1e-12)
		require.Nil(t, seqs[0].Shaping, "the input was modified")
	}
	for _, c := range []struct {
		strength  float64
		estimator credit.Estimator
		edit      func(s *Sequence)
		want      string
	}{
		{-1, credit.K1, func(*Sequence) {}, "KL coefficient is -1"},
		{1, "k0", func(*Sequence) {}, `"k0"`},
		{1, credit.K1, func(s *Sequence) { s.Reference = nil }, "sequence 1 has no reference"},
		{1, credit.K1, func(s *Sequence) { s.Reference = s.Reference[:1] }, "1 reference logprobs"},
		{1, credit.K1, func(s *Sequence) { s.Old = []float32{0, float32(math.NaN())} }, "logprob NaN"},
	} {
		bad := slices.Clone(seqs)
		c.edit(&bad[1])
		_, _, err := credit.ShapeByKL(bad, c.strength, c.estimator)
		require.ErrorContains(t, err, c.want)
	}
}
