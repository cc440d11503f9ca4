package grpo

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/internal/graphx/graphtest"

	"github.com/goart-dev/art/grpo/credit"
)

// peersGolden is testdata/peers.json, which testdata/peers.py writes: what the code of TRL and verl computes. Numbers
// of tokens are by sequence, padded.
type peersGolden struct {
	Lengths                                []int
	New, Old, Behavior, Reference, Entropy [][]float64
	Losses                                 []struct {
		Name       string
		Advantages []float64 // by sequence
		Value      float64
		Grad       [][]float64
	}
	Rewards    []float64
	Groups     []int
	Advantages map[string][]float64

	Preferences []struct { // of pairs: sequence i is preferred to sequence i + half of all
		Name                   string
		Beta, Smoothing, Value float64
		Grad                   [][]float64
	}
}

func readPeersGolden(t *testing.T) peersGolden {
	t.Helper()
	content, err := os.ReadFile("testdata/peers.json")
	require.NoError(t, err)
	var golden peersGolden
	require.NoError(t, json.Unmarshal(content, &golden))
	return golden
}

// flat lists the numbers of real tokens.
func (g *peersGolden) flat(x [][]float64) (out []float64) {
	for i, n := range g.Lengths {
		out = append(out, x[i][:n]...)
	}
	return out
}

// tokens are the inputs of a loss, weighted by Normalize.
func (g *peersGolden) tokens(t *testing.T, advantages []float64, cfg credit.NormalizeConfig) tokens {
	t.Helper()
	var seqs []Sequence
	for i, n := range g.Lengths {
		s := Sequence{IDs: make([]int32, n+1), Trained: make([]bool, n+1), Logprobs: make([]float32, n+1),
			Advantage: advantages[i], Trajectory: i}
		for j := range n {
			s.Trained[j+1] = true
		}
		seqs = append(seqs, s)
	}
	cfg.Advantages = new(bool)
	seqs, err := credit.Normalize(seqs, cfg)
	require.NoError(t, err)
	in := tokens{New: g.flat(g.New), Old: g.flat(g.Old), Behavior: g.flat(g.Behavior), Reference: g.flat(g.Reference),
		Entropy: g.flat(g.Entropy)}
	for i, n := range g.Lengths {
		for range n {
			in.Advantage, in.Weight = append(in.Advantage, seqs[i].Advantage), append(in.Weight, seqs[i].Weight)
			in.Mask, in.Rows = append(in.Mask, 1), append(in.Rows, i)
		}
	}
	return in
}

// peersCases are our configurations of what peers.py calls.
var peersCases = map[string]struct {
	loss    Loss
	weights credit.NormalizeConfig
}{
	"trl grpo":                {loss: PolicyLoss{Kind: GRPO}},
	"trl grpo delta":          {loss: PolicyLoss{Kind: GRPO, DualClip: 1.5}},
	"trl grpo beta":           {loss: Penalized{Loss: PolicyLoss{Kind: GRPO}, KL: 0.04}},
	"trl grpo entropy":        {loss: Penalized{Loss: PolicyLoss{Kind: GRPO}, Entropy: 0.02}},
	"trl dr_grpo":             {PolicyLoss{Kind: DrGRPO}, credit.NormalizeConfig{Weighting: credit.WeightConstant, Length: 12}},
	"trl dapo":                {PolicyLoss{Kind: DAPO}, credit.NormalizeConfig{Weighting: credit.WeightToken}},
	"trl cispo":               {PolicyLoss{EpsilonHigh: ptr(0.5)}, credit.NormalizeConfig{Weighting: credit.WeightToken}},
	"trl gspo":                {loss: PolicyLoss{Kind: GSPO}},
	"trl gspo wide":           {loss: PolicyLoss{Kind: GSPO, Epsilon: ptr(0.1), EpsilonHigh: ptr(0.15)}},
	"trl dapo truncated":      {Corrected{Loss: PolicyLoss{Kind: DAPO}, High: 1.3, FromOld: true}, credit.NormalizeConfig{Weighting: credit.WeightToken}},
	"verl ppo":                {PolicyLoss{Kind: PPO, DualClip: 1.5}, credit.NormalizeConfig{Weighting: credit.WeightToken}},
	"verl ppo sequences":      {loss: PolicyLoss{Kind: PPO, EpsilonHigh: ptr(0.3), DualClip: 3}},
	"verl gspo":               {loss: PolicyLoss{Kind: GSPO, Epsilon: ptr(0.05), EpsilonHigh: ptr(0.1)}},
	"verl dro":                {PolicyLoss{Kind: DRO, Beta: 0.3}, credit.NormalizeConfig{Weighting: credit.WeightToken}},
	"verl cispo":              {PolicyLoss{Epsilon: ptr(0.3), EpsilonHigh: ptr(0.5)}, credit.NormalizeConfig{Weighting: credit.WeightToken}},
	"verl truncated":          {Corrected{Loss: PolicyLoss{}, High: 1.2, FromOld: true}, credit.NormalizeConfig{Weighting: credit.WeightToken}},
	"verl icepop":             {Corrected{Loss: PolicyLoss{Kind: PPO, DualClip: 3}, Method: Mask, Low: 0.7, High: 1.4, FromOld: true}, credit.NormalizeConfig{Weighting: credit.WeightToken}},
	"verl truncated sequence": {Corrected{Loss: PolicyLoss{Kind: PPO, DualClip: 3}, High: 1.5, Sequence: true, FromOld: true}, credit.NormalizeConfig{Weighting: credit.WeightToken}},
	"verl k1":                 {Penalized{Loss: PolicyLoss{Kind: Reinforce}, KL: 1, Estimator: credit.K1}, credit.NormalizeConfig{Weighting: credit.WeightToken}},
	"verl k2":                 {Penalized{Loss: PolicyLoss{Kind: Reinforce}, KL: 1, Estimator: credit.K2}, credit.NormalizeConfig{Weighting: credit.WeightToken}},
	"verl k3":                 {Penalized{Loss: PolicyLoss{Kind: Reinforce}, KL: 1, Estimator: credit.K3}, credit.NormalizeConfig{Weighting: credit.WeightToken}},
}

// TestLosses_MatchPeers: losses, weights, masks and KL are those of TRL and verl, with their gradients.
func TestLosses_MatchPeers(t *testing.T) {
	device, golden := graphtest.Device(t), readPeersGolden(t)
	require.Len(t, golden.Losses, len(peersCases))
	for _, c := range golden.Losses {
		t.Run(c.Name, func(t *testing.T) {
			ours, ok := peersCases[c.Name]
			require.True(t, ok)
			in := golden.tokens(t, c.Advantages, ours.weights)
			got := deviceLoss[float64](t, device, ours.loss, in, float64(len(in.New)))
			require.NotZero(t, c.Value)
			require.InDelta(t, c.Value, got.loss, 1e-6)
			require.InDeltaSlice(t, golden.flat(c.Grad), got.grad, 1e-6)
			single := deviceLoss[float32](t, device, ours.loss, in, float64(len(in.New)))
			require.InDelta(t, c.Value, single.loss, 1e-5)
			require.InDeltaSlice(t, golden.flat(c.Grad), single.grad, 1e-5)
		})
	}
}

// TestAdvantages_MatchPeers: verl divides by the sample standard deviation, we by that of the population, which is
// smaller by sqrt((n-1)/n). What it computes for a tie of the best, max@k leaves out.
func TestAdvantages_MatchPeers(t *testing.T) {
	golden := readPeersGolden(t)
	for name, c := range map[string]struct {
		cfg credit.AdvantageConfig
		std bool
	}{
		"grpo":      {credit.AdvantageConfig{}, true},
		"no std":    {credit.AdvantageConfig{Scale: credit.ScaleNone}, false},
		"rloo":      {credit.AdvantageConfig{Baseline: credit.BaselineLeaveOne, Scale: credit.ScaleNone}, false},
		"passk":     {credit.AdvantageConfig{Objective: credit.ObjectiveMaxK, Scale: credit.ScaleNone}, false},
		"passk std": {credit.AdvantageConfig{Objective: credit.ObjectiveMaxK}, true},
	} {
		want, compared := golden.Advantages[name], 0
		for lo := 0; lo < len(golden.Groups); {
			hi := lo
			for hi < len(golden.Groups) && golden.Groups[hi] == golden.Groups[lo] {
				hi++
			}
			if c.cfg.Objective == credit.ObjectiveMaxK {
				c.cfg.K = hi - lo
			}
			got, reason := credit.Advantages(golden.Rewards[lo:hi], c.cfg)
			if reason == credit.ReasonNoVariance { // a tie of the best
				got = make([]float64, hi-lo)
			}
			for i := range got {
				if c.std {
					std, n := credit.BatchStd(golden.Rewards[lo:hi]), float64(hi-lo)
					got[i] *= (std + credit.StdEpsilon) / (std*math.Sqrt(n/(n-1)) + credit.StdEpsilon)
				}
				require.InDelta(t, want[lo+i], got[i], 1e-6, "%s, reward %v", name, golden.Rewards[lo+i])
				compared++
			}
			lo = hi
		}
		require.Equal(t, len(golden.Rewards), compared)
	}
}

// TestPreferenceLoss_MatchesPeers: the value and the gradient of DPO are those of TRL, also smoothed and by token.
func TestPreferenceLoss_MatchesPeers(t *testing.T) {
	device, golden := graphtest.Device(t), readPeersGolden(t)
	require.Len(t, golden.Preferences, 4)
	for _, c := range golden.Preferences {
		t.Run(c.Name, func(t *testing.T) {
			loss := PreferenceLoss{credit.Preference{Beta: c.Beta, Smoothing: c.Smoothing, Mean: c.Name == "sigmoid_norm"}}
			require.NoError(t, loss.Validate())
			pairs, rows := golden.pairs()
			var logprobs [][]float32
			for _, row := range rows {
				logprobs = append(logprobs, golden.sequenceOf(golden.New, row))
			}
			linear, value := loss.Linearize(pairs, logprobs)
			require.NotZero(t, c.Value)
			require.InDelta(t, c.Value, value, 1e-6)
			var in tokens
			var want []float64
			for i, row := range rows {
				for j := range golden.Lengths[row] {
					in.New, want = append(in.New, golden.New[row][j]), append(want, c.Grad[row][j])
					in.Advantage, in.Weight = append(in.Advantage, linear[i].Advantage), append(in.Weight, linear[i].Weight)
					in.Mask, in.Rows = append(in.Mask, 1), append(in.Rows, i)
				}
			}
			in.Old, in.Behavior, in.Reference, in.Entropy = in.New, in.New, in.New, in.New
			require.InDeltaSlice(t, want, deviceLoss[float64](t, device, loss, in, float64(len(in.New))).grad, 1e-6)
			require.InDeltaSlice(t, want, deviceLoss[float32](t, device, loss, in, float64(len(in.New))).grad, 1e-6)
		})
	}
}

// sequenceOf is the numbers of the real tokens of a sequence, with a first token that is not trained.
func (g *peersGolden) sequenceOf(x [][]float64, row int) []float32 {
	out := []float32{0}
	for _, v := range x[row][:g.Lengths[row]] {
		out = append(out, float32(v))
	}
	return out
}

// pairs lists the pairs, a chosen sequence and a rejected one each, and which row each is.
func (g *peersGolden) pairs() (seqs []Sequence, rows []int) {
	half := len(g.Lengths) / 2
	for i := range half {
		for _, row := range []int{i, i + half} {
			n := g.Lengths[row] + 1
			s := Sequence{IDs: make([]int32, n), Trained: make([]bool, n), Logprobs: g.sequenceOf(g.Old, row),
				Reference: g.sequenceOf(g.Reference, row)}
			for j := 1; j < n; j++ {
				s.Trained[j] = true
			}
			seqs, rows = append(seqs, s), append(rows, row)
		}
	}
	return seqs, rows
}
