package trainer

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/grpo"
	"github.com/goart-dev/art/grpo/credit"
	"github.com/goart-dev/art/internal/graphx/graphtest"
	"github.com/goart-dev/art/internal/safetensors"
	"github.com/goart-dev/art/lora"
	"github.com/goart-dev/art/model"
)

// stepsGolden is a batch, and the values of losses on it; testdata/steps.py writes it. Gradients are in
// steps.safetensors: of each loss one vector of all parameters, in the order of Names.
type stepsGolden struct {
	Names                           []string
	IDs                             [][]int32
	Trained                         [][]bool
	Trajectory, Group               []int // of sequences, of trajectories
	Rewards                         []float64
	Old, Again, Behavior, Reference [][]float32
	Values                          map[string]float64
}

// stepCase is our configuration of a case of steps.py.
type stepCase struct {
	loss       grpo.Loss
	advantages credit.AdvantageConfig
	weights    credit.NormalizeConfig
	recomputed bool    // ratios are against Again, not Old
	shape      float64 // KL in the advantage
	overlong   *[2]int // longest and buffer
	plain      bool    // no advantages: all weights are 1
}

// stepCases are the cases of steps.py by their names there.
func stepCases() map[string]stepCase {
	type policy = grpo.PolicyLoss
	ppo, reinforce := policy{Loss: credit.PPO}, policy{Loss: credit.Reinforce}
	apart := credit.AdvantageConfig{Scale: credit.ScaleNone}
	constant := credit.NormalizeConfig{Weighting: credit.WeightConstant, Advantages: new(bool)}
	dpo := func(p credit.Preference) stepCase {
		return stepCase{loss: grpo.PreferenceLoss{Preference: p}, plain: true}
	}
	everything := grpo.Penalized{Loss: grpo.Corrected{Loss: policy{Loss: credit.PPO, EpsilonHigh: ptr(0.4), DualClip: 2.5,
		KimiTau: 0.1, Level: credit.LevelGeometric}}, KL: 0.1, Entropy: 0.05}
	cases := map[string]stepCase{
		"cispo, mask":    {loss: policy{Epsilon: ptr(0.3), EpsilonHigh: ptr(0.3), MaskRatio: true}},
		"cispo, tau":     {loss: policy{KimiTau: 0.2}},
		"cispo, average": {loss: policy{Epsilon: ptr(0.3), EpsilonHigh: ptr(0.3), Level: credit.LevelAverage}},

		"ppo, upper bound":    {loss: policy{Loss: credit.PPO, EpsilonHigh: ptr(0.4)}},
		"ppo, dual clip":      {loss: policy{Loss: credit.PPO, DualClip: 3}},
		"ppo, mask":           {loss: policy{Loss: credit.PPO, Epsilon: ptr(0.3), MaskRatio: true}},
		"ppo, tau":            {loss: policy{Loss: credit.PPO, KimiTau: 0.2}},
		"ppo, sequence":       {loss: policy{Loss: credit.PPO, Epsilon: ptr(0.1), Level: credit.LevelSequence}},
		"ppo, average":        {loss: policy{Loss: credit.PPO, Level: credit.LevelAverage}},
		"ppo, geometric mean": {loss: policy{Loss: credit.PPO, Level: credit.LevelGeometric}},

		"importance_sampling, sequence": {loss: policy{Loss: credit.ImportanceSampling, Level: credit.LevelSequence}},
		"dro, beta":                     {loss: policy{Loss: credit.DRO, DROBeta: 0.4}},

		"truncated":             {loss: grpo.Corrected{Loss: ppo}},
		"truncated, sequence":   {loss: grpo.Corrected{Loss: ppo, Correction: credit.Correction{Sequence: true}}},
		"truncated, recomputed": {loss: grpo.Corrected{Loss: ppo, FromOld: true}, recomputed: true},
		"masked":                {loss: grpo.Corrected{Loss: reinforce, Correction: credit.Correction{Method: credit.CorrectMask, High: 2.5}}},
		"masked, sequence":      {loss: grpo.Corrected{Loss: reinforce, Correction: credit.Correction{Method: credit.CorrectMask, Low: 0.3, High: 3, Sequence: true}}},

		"kl k1":               {loss: grpo.Penalized{Loss: ppo, KL: 0.1, Estimator: credit.K1}},
		"kl k2":               {loss: grpo.Penalized{Loss: ppo, KL: 0.1, Estimator: credit.K2}},
		"kl k3":               {loss: grpo.Penalized{Loss: ppo, KL: 0.1}},
		"kl in the advantage": {loss: ppo, shape: 0.5},
		"entropy bonus":       {loss: grpo.Penalized{Loss: ppo, Entropy: 0.05}},
		"all terms":           {loss: everything},

		"leave one out": {loss: reinforce, weights: credit.NormalizeConfig{Advantages: new(bool)},
			advantages: credit.AdvantageConfig{Scale: credit.ScaleNone, Baseline: credit.BaselineLeaveOne}},
		"balance":  {loss: reinforce, weights: credit.NormalizeConfig{Balance: 0.5}},
		"overlong": {loss: reinforce, overlong: &[2]int{10, 4}},

		"supervised":     {loss: grpo.SupervisedLoss{}, plain: true},
		"dpo":            dpo(credit.Preference{Beta: 0.3}),
		"dpo, smoothing": dpo(credit.Preference{Beta: 0.5, Smoothing: 0.1}),
		"dpo, mean":      dpo(credit.Preference{Beta: 5, Mean: true}),
	}
	for _, kind := range credit.Losses() {
		c := stepCase{loss: policy{Loss: kind}}
		switch kind {
		case credit.DrGRPO:
			c.advantages, c.weights = apart, constant
		case credit.DAPO:
			c.weights.Weighting = credit.WeightToken
		}
		cases[string(kind)] = c
	}
	return cases
}

// batch returns the sequences of a case, as training prepares them.
func (g *stepsGolden) batch(t *testing.T, c *stepCase) (batch []grpo.Sequence) {
	advantages := g.advantages(t, c)
	for i, ids := range g.IDs {
		s := grpo.Sequence{
			IDs: ids, Trained: g.Trained[i], Logprobs: g.Old[i], Behavior: g.Behavior[i], Reference: g.Reference[i],
			Advantage: advantages[g.Trajectory[i]], Weight: 1, Trajectory: g.Trajectory[i],
		}
		if c.recomputed {
			s.Old = g.Again[i]
		}
		batch = append(batch, s)
	}
	if c.plain {
		return batch
	}
	batch, err := credit.Normalize(batch, c.weights)
	require.NoError(t, err)
	if c.shape != 0 {
		batch, _, err = credit.ShapeByKL(batch, c.shape, credit.K1)
		require.NoError(t, err)
	}
	return batch
}

// advantages returns those of trajectories, whose groups follow one another.
func (g *stepsGolden) advantages(t *testing.T, c *stepCase) (list []float64) {
	rewards := slices.Clone(g.Rewards)
	if c.overlong != nil {
		tokens := make([]int, len(rewards))
		for i, at := range g.Trajectory {
			s := grpo.Sequence{Trained: g.Trained[i]}
			tokens[at] += s.NumTrained()
		}
		for i := range rewards {
			rewards[i] += credit.Overlong{Longest: c.overlong[0], Buffer: c.overlong[1]}.Of(tokens[i])
		}
	}
	for len(list) < len(rewards) {
		end := len(list)
		for end < len(rewards) && g.Group[end] == g.Group[len(list)] {
			end++
		}
		of, reason := credit.Advantages(rewards[len(list):end], c.advantages)
		require.Empty(t, reason)
		list = append(list, of...)
	}
	return list
}

// readSteps returns the golden, its vectors by the names of cases, and the model with its adapter.
func readSteps(t *testing.T) (golden stepsGolden, vectors map[string][]float32, target Target, start *State) {
	content, err := os.ReadFile("testdata/steps.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(content, &golden))
	file, err := safetensors.Open("testdata/steps.safetensors")
	require.NoError(t, err)
	defer file.Close()
	vectors = map[string][]float32{}
	for _, name := range file.Names() {
		x, _ := file.Tensor(name)
		vectors[name], err = x.Float32s()
		require.NoError(t, err)
	}
	w, err := model.Load("../../lora/testdata/dora/base")
	require.NoError(t, err)
	params, err := w.Params(graphtest.Device(t))
	require.NoError(t, err)
	layout, err := lora.New(lora.Config{Rank: 2, Alpha: 3, Targets: []string{"q_proj", "v_proj", "down_proj"}},
		adaptable(w.Config), seed)
	require.NoError(t, err)
	start = AdapterState(layout)
	require.ElementsMatch(t, golden.Names, start.Names)
	at := split(t, vectors["adapter"], golden.Names, start)
	for i := range start.Params {
		start.Params[i] = at[i]
	}
	return golden, vectors, AdapterTarget(w.Config, params, layout), start
}

// split cuts a vector of parameters in the order of names into those of a state.
func split(t *testing.T, vector []float32, names []string, s *State) [][]float32 {
	lists := make([][]float32, len(s.Names))
	for _, name := range names {
		i := slices.Index(s.Names, name)
		n := len(s.Params[i])
		lists[i], vector = slices.Clone(vector[:n]), vector[n:]
	}
	require.Empty(t, vector)
	return lists
}

// TestSteps_AsAutograd: one optimizer step of each loss through a whole model has the value and the gradient that
// PyTorch computes from the formula, to 1e-4 of the gradient's length, and AdamW moves parameters by it.
func TestSteps_AsAutograd(t *testing.T) {
	golden, vectors, target, start := readSteps(t)
	cases := stepCases()
	require.Len(t, golden.Values, len(cases))
	for name, want := range golden.Values {
		c, ok := cases[name]
		require.True(t, ok, name)
		optimizer := grpo.AdamW{Beta1: 0.9, Beta2: 0.99, Eps: 0.1, WeightDecay: 0.1}
		run := Run{Loss: testLoss{Loss: c.loss}, Optimizer: optimizer, Epochs: 1, MiniBatches: 1}
		metric := "test/loss"
		if loss, ok := c.loss.(grpo.BatchLoss); ok {
			run.Loss, metric = loss, loss.Value().Name
		}
		const rate = 0.01
		run.Rate = func(int) float64 { return rate }
		next, report, err := New(target, Options{Device: graphtest.Device(t)}).Train(t.Context(), start,
			golden.batch(t, &c), run)
		require.NoError(t, err, name)
		value := report.Metrics[metric]
		require.InDelta(t, want, value, 1e-6*max(1, math.Abs(want)), name) // terms of both signs add up to it
		grads := split(t, vectors[name], golden.Names, start)
		moments, moved := firstStep(start.Params, grads, optimizer, rate)
		difference, length := distance(moments, next.M)
		require.Greater(t, length, 1e-4, name)
		require.Less(t, difference, 1e-4*length, name)
		t.Logf("%-30s %.2g of the gradient's length, %.2g of the value", name, difference/length, math.Abs(value/want-1))
		difference, _ = distance(moved, next.Params)
		_, length = distance(start.Params, start.Params)
		require.Less(t, difference, 1e-6*length, name)
	}
}

// firstStep returns the first moments and the parameters after the first step of AdamW, without a bound of the norm:
//
//	m = (1 - Beta1)·g
//	p = p - rate·(g / (|g| + Eps) + WeightDecay·p)
func firstStep(params, grads [][]float32, cfg grpo.AdamW, rate float64) (moments, moved [][]float32) {
	for i, p := range params {
		m, next := make([]float32, len(p)), make([]float32, len(p))
		for j, g := range grads[i] {
			g, p := float64(g), float64(p[j])
			m[j] = float32((1 - cfg.Beta1) * g)
			next[j] = float32(p - rate*(g/(math.Abs(g)+cfg.Eps)+cfg.WeightDecay*p))
		}
		moments, moved = append(moments, m), append(moved, next)
	}
	return moments, moved
}
