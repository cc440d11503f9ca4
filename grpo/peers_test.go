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

// peersLoss is what they compute of a loss.
type peersLoss struct {
	Name       string
	Advantages []float64 // by sequence
	Value      float64
	Grad       [][]float64
}

// peersGolden is testdata/peers.json, which testdata/peers.py writes: what the code of TRL and verl computes. Numbers
// of tokens are by sequence, padded.
type peersGolden struct {
	Lengths                                []int
	New, Old, Behavior, Reference, Entropy [][]float64
	Losses                                 []peersLoss
	Rewards                                []float64
	Groups                                 []int
	Advantages                             map[string][]float64

	Preferences []struct { // of pairs: sequence i is preferred to sequence i + half of all
		Name                   string
		Beta, Smoothing, Value float64
		Grad                   [][]float64
	}
	Scaled struct { // groups of four
		Rewards    []float64
		Advantages map[string][]float64 // by TRL's name
	}
	Truncated struct { // one group
		Cut     []int // rows
		Rewards []float64
		Losses  []peersLoss
	}
	Penalties []struct { // of answers of 1, 2 and so on tokens
		Name            string
		Longest, Buffer int
		Penalty         float64
		Values          []float64
	}
	KLRewards []struct { // what a penalty adds to the rewards of tokens
		Estimator credit.Estimator
		Strength  float64
		Added     [][]float64
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

// all lists all rows.
func (g *peersGolden) all() (rows []int) {
	for i := range g.Lengths {
		rows = append(rows, i)
	}
	return rows
}

// flat lists the numbers of the real tokens of rows.
func (g *peersGolden) flat(x [][]float64, rows []int) (out []float64) {
	for _, row := range rows {
		out = append(out, x[row][:g.Lengths[row]]...)
	}
	return out
}

// normalized returns the sequences, weighted by Normalize.
func (g *peersGolden) normalized(t *testing.T, advantages []float64, cfg credit.NormalizeConfig) []Sequence {
	t.Helper()
	var seqs []Sequence
	for i := range g.Lengths {
		s := g.sequence(i)
		s.Advantage, s.Trajectory = advantages[i], i
		seqs = append(seqs, s)
	}
	cfg.Advantages = new(bool)
	seqs, err := credit.Normalize(seqs, cfg)
	require.NoError(t, err)
	return seqs
}

// sequence is that of a row, with a first token that is not trained.
func (g *peersGolden) sequence(row int) Sequence {
	n := g.Lengths[row] + 1
	s := Sequence{IDs: make([]int32, n), Trained: make([]bool, n), Logprobs: g.padded(g.Old, row),
		Reference: g.padded(g.Reference, row)}
	for j := 1; j < n; j++ {
		s.Trained[j] = true
	}
	return s
}

// padded is the numbers of the real tokens of a row after that of a first token.
func (g *peersGolden) padded(x [][]float64, row int) []float32 {
	out := []float32{0}
	for _, v := range x[row][:g.Lengths[row]] {
		out = append(out, float32(v))
	}
	return out
}

// tokens are the inputs of a loss, with advantages and weights of sequences, which are those of rows.
func (g *peersGolden) tokens(seqs []Sequence, rows []int) tokens {
	in := tokens{New: g.flat(g.New, rows), Old: g.flat(g.Old, rows), Behavior: g.flat(g.Behavior, rows),
		Reference: g.flat(g.Reference, rows), Entropy: g.flat(g.Entropy, rows)}
	for i := range rows {
		for range seqs[i].NumTrained() {
			in.Advantage, in.Weight = append(in.Advantage, seqs[i].Advantage), append(in.Weight, seqs[i].Weight)
			in.Mask, in.Rows = append(in.Mask, 1), append(in.Rows, i)
		}
	}
	return in
}

// compare holds the gradient of a loss against another one, and its value too, unless it is NaN.
func (in tokens) compare(t *testing.T, loss Loss, value float64, grad []float64) {
	t.Helper()
	device, n := graphtest.Device(t), float64(len(in.New))
	got, single := deviceLoss[float64](t, device, loss, in, n), deviceLoss[float32](t, device, loss, in, n)
	require.InDeltaSlice(t, grad, got.grad, 1e-6)
	require.InDeltaSlice(t, grad, single.grad, 1e-5)
	if !math.IsNaN(value) {
		require.NotZero(t, value)
		require.InDelta(t, value, got.loss, 1e-6)
		require.InDelta(t, value, single.loss, 1e-5)
	}
}

// peersCases are our configurations of what peers.py calls.
var peersCases = map[string]struct {
	loss    Loss
	weights credit.NormalizeConfig
}{
	"trl grpo":                {loss: PolicyLoss{Loss: credit.GRPO}},
	"trl grpo delta":          {loss: PolicyLoss{Loss: credit.GRPO, DualClip: 1.5}},
	"trl grpo beta":           {loss: Penalized{Loss: PolicyLoss{Loss: credit.GRPO}, KL: 0.04}},
	"trl grpo entropy":        {loss: Penalized{Loss: PolicyLoss{Loss: credit.GRPO}, Entropy: 0.02}},
	"trl dr_grpo":             {PolicyLoss{Loss: credit.DrGRPO}, credit.NormalizeConfig{Weighting: credit.WeightConstant, Length: 12}},
	"trl dapo":                {PolicyLoss{Loss: credit.DAPO}, credit.NormalizeConfig{Weighting: credit.WeightToken}},
	"trl cispo":               {PolicyLoss{EpsilonHigh: ptr(0.5)}, credit.NormalizeConfig{Weighting: credit.WeightToken}},
	"trl gspo":                {loss: PolicyLoss{Loss: credit.GSPO}},
	"trl gspo wide":           {loss: PolicyLoss{Loss: credit.GSPO, Epsilon: ptr(0.1), EpsilonHigh: ptr(0.15)}},
	"trl dapo truncated":      {Corrected{Loss: PolicyLoss{Loss: credit.DAPO}, Correction: credit.Correction{High: 1.3}, FromOld: true}, credit.NormalizeConfig{Weighting: credit.WeightToken}},
	"verl ppo":                {PolicyLoss{Loss: credit.PPO, DualClip: 1.5}, credit.NormalizeConfig{Weighting: credit.WeightToken}},
	"verl ppo sequences":      {loss: PolicyLoss{Loss: credit.PPO, EpsilonHigh: ptr(0.3), DualClip: 3}},
	"verl gspo":               {loss: PolicyLoss{Loss: credit.GSPO, Epsilon: ptr(0.05), EpsilonHigh: ptr(0.1)}},
	"verl dro":                {PolicyLoss{Loss: credit.DRO, DROBeta: 0.3}, credit.NormalizeConfig{Weighting: credit.WeightToken}},
	"verl cispo":              {PolicyLoss{Epsilon: ptr(0.3), EpsilonHigh: ptr(0.5)}, credit.NormalizeConfig{Weighting: credit.WeightToken}},
	"verl truncated":          {Corrected{Loss: PolicyLoss{}, Correction: credit.Correction{High: 1.2}, FromOld: true}, credit.NormalizeConfig{Weighting: credit.WeightToken}},
	"verl icepop":             {Corrected{Loss: PolicyLoss{Loss: credit.PPO, DualClip: 3}, Correction: credit.Correction{Method: credit.CorrectMask, Low: 0.7, High: 1.4}, FromOld: true}, credit.NormalizeConfig{Weighting: credit.WeightToken}},
	"verl truncated sequence": {Corrected{Loss: PolicyLoss{Loss: credit.PPO, DualClip: 3}, Correction: credit.Correction{High: 1.5, Sequence: true}, FromOld: true}, credit.NormalizeConfig{Weighting: credit.WeightToken}},
	"verl k1":                 {Penalized{Loss: PolicyLoss{Loss: credit.Reinforce}, KL: 1, Estimator: credit.K1}, credit.NormalizeConfig{Weighting: credit.WeightToken}},
	"verl k2":                 {Penalized{Loss: PolicyLoss{Loss: credit.Reinforce}, KL: 1, Estimator: credit.K2}, credit.NormalizeConfig{Weighting: credit.WeightToken}},
	"trl unbounded":           {loss: PolicyLoss{Loss: credit.ImportanceSampling}},
	"trl unbounded sequence":  {loss: PolicyLoss{Loss: credit.ImportanceSampling, Level: credit.LevelSequence}},
	"trl reinforce":           {PolicyLoss{Loss: credit.Reinforce}, credit.NormalizeConfig{Weighting: credit.WeightToken}},
	"verl reinforce":          {loss: PolicyLoss{Loss: credit.Reinforce}},
	"verl gpg":                {PolicyLoss{Loss: credit.Reinforce}, credit.NormalizeConfig{Weighting: credit.WeightToken}},
	"verl sft":                {SupervisedLoss{}, credit.NormalizeConfig{Weighting: credit.WeightToken}},
	"verl sft positive":       {PolicyLoss{Loss: credit.CrossEntropy}, credit.NormalizeConfig{Weighting: credit.WeightToken}},
	"verl k3":                 {Penalized{Loss: PolicyLoss{Loss: credit.Reinforce}, KL: 1, Estimator: credit.K3}, credit.NormalizeConfig{Weighting: credit.WeightToken}},
}

// TestLosses_MatchPeers: losses, weights, masks and KL are those of TRL and verl, with their gradients.
func TestLosses_MatchPeers(t *testing.T) {
	golden := readPeersGolden(t)
	require.Len(t, golden.Losses, len(peersCases))
	for _, c := range golden.Losses {
		t.Run(c.Name, func(t *testing.T) {
			ours, ok := peersCases[c.Name]
			require.True(t, ok)
			in := golden.tokens(golden.normalized(t, c.Advantages, ours.weights), golden.all())
			in.compare(t, ours.loss, c.Value, golden.flat(c.Grad, golden.all()))
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
					std := credit.BatchStd(golden.Rewards[lo:hi])
					got[i] *= (std + credit.StdEpsilon) / (sampleStd(std, hi-lo) + credit.StdEpsilon)
				}
				require.InDelta(t, want[lo+i], got[i], 1e-6, "%s, reward %v", name, golden.Rewards[lo+i])
				compared++
			}
			lo = hi
		}
		require.Equal(t, len(golden.Rewards), compared)
	}
}

// sampleStd is the standard deviation of n numbers as of a sample, from that of a population.
func sampleStd(std float64, n int) float64 { return std * math.Sqrt(float64(n)/float64(n-1)) }

// TestPreferenceLoss_MatchesPeers: the value and the gradient of DPO are those of TRL, also smoothed and by token.
func TestPreferenceLoss_MatchesPeers(t *testing.T) {
	golden := readPeersGolden(t)
	require.Len(t, golden.Preferences, 4)
	pairs, rows := golden.pairs()
	var logprobs [][]float32
	for _, row := range rows {
		logprobs = append(logprobs, golden.padded(golden.New, row))
	}
	for _, c := range golden.Preferences {
		t.Run(c.Name, func(t *testing.T) {
			loss := PreferenceLoss{credit.Preference{Beta: c.Beta, Smoothing: c.Smoothing, Mean: c.Name == "sigmoid_norm"}}
			require.NoError(t, loss.Validate())
			linear, value := loss.Linearize(pairs, logprobs)
			require.NotZero(t, c.Value)
			require.InDelta(t, c.Value, value, 1e-6)
			golden.tokens(linear, rows).compare(t, loss, math.NaN(), golden.flat(c.Grad, rows)) // the graph is linear
		})
	}
}

// pairs lists the pairs, a chosen sequence and a rejected one each, and which row each is.
func (g *peersGolden) pairs() (seqs []Sequence, rows []int) {
	half := len(g.Lengths) / 2
	for i := range half {
		seqs, rows = append(seqs, g.sequence(i), g.sequence(i+half)), append(rows, i, i+half)
	}
	return seqs, rows
}

// TestShapeByKL_MatchesPeers: verl takes strength·k from the reward of a token; ours adds the mean of that to all.
func TestShapeByKL_MatchesPeers(t *testing.T) {
	golden := readPeersGolden(t)
	require.Len(t, golden.KLRewards, 3)
	for _, c := range golden.KLRewards {
		seqs := golden.normalized(t, make([]float64, len(golden.Lengths)), credit.NormalizeConfig{})
		shaped, mean, err := credit.ShapeByKL(seqs, c.Strength, c.Estimator)
		require.NoError(t, err)
		sum, count := 0.0, 0.0
		for i := range shaped {
			for j, added := range c.Added[i][:golden.Lengths[i]] {
				require.InDelta(t, added, shaped[i].Shaping[j+1]-c.Strength*mean, 1e-6, c.Estimator)
				sum, count = sum+added, count+1
			}
		}
		require.NotZero(t, sum)
		require.InDelta(t, -sum/count, c.Strength*mean, 1e-6, c.Estimator)
	}
}
