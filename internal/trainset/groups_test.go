package trainset

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/grpo/credit"
)

// sampled returns a message with a sample of the given ids.
func sampled(prompt, ids []int32) art.Message {
	m := art.Assistant("x")
	m.Sample = &art.Sample{PromptIDs: prompt, IDs: ids, Logprobs: make([]float32, len(ids))}
	for i := range ids {
		m.Sample.Logprobs[i] = -float32(ids[i])
	}
	return m
}

func rewarded(reward float64, messages ...art.Message) *art.Trajectory {
	t := art.NewTrajectory(art.User("u"))
	t.Add(messages...)
	t.Reward = reward
	return t
}

func group(trajectories ...*art.Trajectory) []*art.TrajectoryGroup {
	return []*art.TrajectoryGroup{{Trajectories: trajectories}}
}

func collectAll(groups []*art.TrajectoryGroup) *Set {
	return FromGroups(groups, (&art.TrainConfig{}).WithDefaults(), 0, 20, 100)
}

// TestCollect_Turns: turns that continue one another are one sequence, in which only sampled tokens are trained.
func TestCollect_Turns(t *testing.T) {
	first := sampled([]int32{1, 2}, []int32{3, 4})
	second := sampled([]int32{1, 2, 3, 4, 5, 6}, []int32{7})
	second.Sample.IDs, second.Sample.Logprobs, second.Sample.Forced = []int32{7, 8}, []float32{-7, -8}, []bool{false, true}
	b := collectAll(group(rewarded(1, first, art.User("u"), second), rewarded(0, sampled([]int32{1, 2}, []int32{9}))))
	require.Empty(t, b.Skipped)
	require.Len(t, b.Sequences, 2)
	s := b.Sequences[0]
	require.Equal(t, []int32{1, 2, 3, 4, 5, 6, 7, 8}, s.IDs)
	require.Equal(t, []bool{false, false, true, true, false, false, true, false}, s.Trained)
	require.Equal(t, []float32{0, 0, -3, -4, 0, 0, -7, -8}, s.Logprobs)
	require.InDelta(t, 1, s.Advantage, 1e-5)
	require.InDelta(t, -1, b.Sequences[1].Advantage, 1e-5)
	require.Equal(t, 1, b.Groups)
	require.Equal(t, 2, b.Trained)
}

// TestCollect_Rewritten: a prompt that does not contain what was sampled before begins a sequence of its own.
func TestCollect_Rewritten(t *testing.T) {
	b := collectAll(group(
		rewarded(1, sampled([]int32{1, 2}, []int32{3, 4}), sampled([]int32{1, 2, 5}, []int32{6})),
		rewarded(0, sampled([]int32{1}, []int32{2}))))
	require.Len(t, b.Sequences, 3)
	require.Equal(t, 0, b.Sequences[0].Trajectory)
	require.Equal(t, 0, b.Sequences[1].Trajectory, "both belong to the first trajectory")
	require.Equal(t, 1, b.Sequences[2].Trajectory)
}

func TestCollect_Skips(t *testing.T) {
	good := func(reward float64) *art.Trajectory { return rewarded(reward, sampled([]int32{1}, []int32{2})) }
	with := func(edit func(s *art.Sample)) *art.Trajectory {
		x := good(3)
		edit(x.Messages[1].Sample)
		return x
	}
	for name, c := range map[string]struct {
		groups []*art.TrajectoryGroup
		want   art.Skip // without detail
	}{
		"nil group":   {[]*art.TrajectoryGroup{nil}, art.Skip{Trajectory: -1, Reason: credit.ReasonEmptyGroup}},
		"empty group": {group(), art.Skip{Trajectory: -1, Reason: credit.ReasonEmptyGroup}},
		"one":         {group(good(1)), art.Skip{Trajectory: -1, Reason: credit.ReasonSingleton}},
		"equal":       {group(good(.1), good(.1), good(.1)), art.Skip{Trajectory: -1, Reason: credit.ReasonNoVariance}},
		"NaN":         {group(good(1), good(2), good(math.NaN())), art.Skip{Trajectory: 2, Reason: credit.ReasonBadReward}},
		"infinite":    {group(good(1), good(math.Inf(1)), good(2)), art.Skip{Trajectory: 1, Reason: credit.ReasonBadReward}},
		"nil":         {group(good(1), nil, good(2)), art.Skip{Trajectory: 1, Reason: credit.ReasonNoSamples}},
		"no sample":   {group(good(1), good(2), rewarded(3)), art.Skip{Trajectory: 2, Reason: credit.ReasonNoSamples}},
		"all forced":  {group(good(1), good(2), with(func(s *art.Sample) { s.Forced = []bool{true} })), art.Skip{Trajectory: 2, Reason: credit.ReasonNoSamples}},
		"mean":        {group(good(1), good(2), good(3)), art.Skip{Trajectory: 1, Reason: credit.ReasonZeroAdvantage}},
		"too long":    {group(good(1), good(2), with(func(s *art.Sample) { s.PromptIDs = make([]int32, 21) })), art.Skip{Trajectory: 2, Reason: credit.ReasonTooLong}},
		"vocabulary":  {group(good(1), good(2), with(func(s *art.Sample) { s.IDs[0] = 100 })), art.Skip{Trajectory: 2, Reason: credit.ReasonBadSample}},
		"NaN logprob": {group(good(1), good(2), with(func(s *art.Sample) { s.Logprobs[0] = float32(math.NaN()) })), art.Skip{Trajectory: 2, Reason: credit.ReasonBadSample}},
		"lengths":     {group(good(1), good(2), with(func(s *art.Sample) { s.Logprobs = nil })), art.Skip{Trajectory: 2, Reason: credit.ReasonBadSample}},
	} {
		t.Run(name, func(t *testing.T) {
			b := collectAll(c.groups)
			var found []art.Skip
			for _, s := range b.Skipped {
				s.Detail = ""
				found = append(found, s)
			}
			require.Contains(t, found, c.want)
			require.Equal(t, 1.0, b.Metrics(nil)["data/skipped_"+string(c.want.Reason)])
		})
	}
}

// TestCollect_ScaleBatch: advantages of all groups are divided by one standard deviation, that of all rewards, those of
// groups that are skipped included.
func TestCollect_ScaleBatch(t *testing.T) {
	play := func(reward float64) *art.Trajectory { return rewarded(reward, sampled([]int32{1}, []int32{2})) }
	groups := append(group(play(0), play(1)), append(group(play(3), play(3)), group(play(0), play(0.5))...)...)
	b := FromGroups(groups, (&art.TrainConfig{Scale: credit.ScaleBatch}).WithDefaults(), 0, 20, 100)
	std := math.Sqrt((0+1+9+9+0+0.25)/6-(7.5/6)*(7.5/6)) + 1e-6
	var got []float64
	for _, s := range b.Sequences {
		got = append(got, s.Advantage)
	}
	require.InDeltaSlice(t, []float64{-0.5 / std, 0.5 / std, -0.25 / std, 0.25 / std}, got, 1e-12)
}

// TestCollect_ScaleBatchOfObjectives: with another objective the standard deviation is that of what the objective makes
// of the rewards, by hand, and so does not depend on the size of rewards where only their order counts.
func TestCollect_ScaleBatchOfObjectives(t *testing.T) {
	play := func(reward float64) *art.Trajectory { return rewarded(reward, sampled([]int32{1}, []int32{2})) }
	other := group(play(5), play(5))[0] // skipped: its ranks are equal, and it adds 0 to the best of two
	for name, c := range map[string]struct {
		cfg     art.TrainConfig
		rewards []float64
		raw     []float64 // what becomes of the rewards of both groups
		want    []float64 // advantages but for the scale
	}{
		"rank": {art.TrainConfig{Objective: credit.ObjectiveRank}, []float64{0, 1000, 10}, []float64{0, 1, 0.5, 0.5, 0.5},
			[]float64{-0.5, 0.5}},
		"pass@k": {art.TrainConfig{Objective: credit.ObjectivePassK, K: 2}, []float64{1, 0, 0, 0},
			[]float64{0.5, -1.0 / 6, -1.0 / 6, -1.0 / 6, 0, 0}, []float64{0.5, -1.0 / 6, -1.0 / 6, -1.0 / 6}},
		"max@k": {art.TrainConfig{Objective: credit.ObjectiveMaxK, K: 2}, []float64{3, 1, 0}, []float64{2.5, 0.5, 0, 0, 0},
			[]float64{2.5, 0.5}},
	} {
		var first []*art.Trajectory
		for _, r := range c.rewards {
			first = append(first, play(r))
		}
		c.cfg.Scale = credit.ScaleBatch
		b := FromGroups(append(group(first...), other), c.cfg.WithDefaults(), 0, 20, 100)
		var got []float64
		for _, s := range b.Sequences {
			got = append(got, s.Advantage*(deviation(c.raw)+1e-6))
		}
		require.InDeltaSlice(t, c.want, got, 1e-9, name)
	}
}

// deviation is the population standard deviation.
func deviation(x []float64) float64 {
	var sum, squares float64
	for _, v := range x {
		sum, squares = sum+v, squares+v*v
	}
	n := float64(len(x))
	return math.Sqrt(squares/n - sum/n*sum/n)
}

// TestCollect_ScaleBatchOfPenalized: the standard deviation is of the rewards after the penalty for length.
func TestCollect_ScaleBatchOfPenalized(t *testing.T) {
	cfg := &art.TrainConfig{Scale: credit.ScaleBatch, Overlong: credit.Overlong{Longest: 5, Buffer: 2, Penalty: 3}}
	long, short := sampled([]int32{1}, []int32{2, 3, 4, 5}), sampled([]int32{1}, []int32{2})
	b := FromGroups(append(group(rewarded(1, long), rewarded(1, short)), group(rewarded(4, short), rewarded(4, short))...),
		cfg.WithDefaults(), 0, 20, 100)
	require.Len(t, b.Sequences, 2)
	require.InDelta(t, -0.75/(deviation([]float64{-0.5, 1, 4, 4})+1e-6), b.Sequences[0].Advantage, 1e-12)
}

// TestCollect_Objectives: each reason of package grpo is counted under its own name.
func TestCollect_Objectives(t *testing.T) {
	play := func(reward float64) *art.Trajectory { return rewarded(reward, sampled([]int32{1}, []int32{2})) }
	for _, c := range []struct {
		cfg  art.TrainConfig
		want credit.Reason
	}{
		{art.TrainConfig{Objective: credit.ObjectivePassK, K: 2}, credit.ReasonNotBinary},
		{art.TrainConfig{Objective: credit.ObjectiveMaxK, K: 4}, credit.ReasonSmallGroup},
		{art.TrainConfig{VarianceTolerance: 1}, credit.ReasonNoVariance},
	} {
		b := FromGroups(group(play(0), play(0.5), play(1)), c.cfg.WithDefaults(), 0, 20, 100)
		require.Empty(t, b.Sequences)
		require.Equal(t, 1.0, b.Metrics(nil)["data/skipped_"+string(c.want)])
	}
}

// TestCheckGroup: it agrees with what a training skips, whatever the objective, for random groups.
func TestCheckGroup(t *testing.T) {
	const seed = 3
	random := rand.New(rand.NewPCG(seed, seed))
	counts := map[credit.Reason]int{}
	for range 2000 {
		cfg := []*art.TrainConfig{
			{}, {VarianceTolerance: 0.6}, {Overlong: credit.Overlong{Longest: 3, Buffer: 2}}, {Objective: credit.ObjectiveRank},
			{Objective: credit.ObjectivePassK, K: 2}, {Objective: credit.ObjectiveMaxK, K: 3}, {Objective: credit.ObjectivePassK, K: 4},
		}[random.IntN(7)].WithDefaults()
		g := &art.TrajectoryGroup{}
		for range random.IntN(6) {
			reward := []float64{0, 0, 0, 1, 1, 1, 0.5, math.NaN()}[random.IntN(8)]
			g.Trajectories = append(g.Trajectories, rewarded(reward, sampled([]int32{1}, make([]int32, 1+random.IntN(4)))))
		}
		want := credit.Reason("")
		for _, s := range FromGroups([]*art.TrajectoryGroup{g}, cfg, 0, 20, 100).Skipped {
			if s.Trajectory < 0 {
				want = s.Reason
			}
		}
		counts[want]++
		require.Equal(t, want, CheckGroup(g, cfg), "seed %d: %+v", seed, cfg)
	}
	require.Len(t, counts, 6, "advantages, and five reasons: %v", counts)
	require.Equal(t, credit.ReasonEmptyGroup, CheckGroup(nil, (&art.TrainConfig{}).WithDefaults()))
}

// TestCollect_Advantages: the result tells the advantage of each trajectory that is trained on, and NaN of others.
func TestCollect_Advantages(t *testing.T) {
	good := func(reward float64) *art.Trajectory { return rewarded(reward, sampled([]int32{1}, []int32{2})) }
	groups := append(group(good(1), rewarded(0.5), good(0)), nil)
	got := collectAll(append(groups, group(good(2), good(2))...)).Advantages
	require.Len(t, got, 3)
	require.InDelta(t, math.Sqrt(1.5), got[0][0], 1e-4)
	require.True(t, math.IsNaN(got[0][1]), "without a sample")
	require.InDelta(t, -math.Sqrt(1.5), got[0][2], 1e-4)
	require.Empty(t, got[1])
	require.Len(t, got[2], 2)
	require.True(t, math.IsNaN(got[2][0]), "of a group without variance")
}

// TestCollect_Truncated: a reply that was cut is context for what follows, and counts in the baseline; one after it
// is trained on.
func TestCollect_Truncated(t *testing.T) {
	cut := func() art.Message {
		m := sampled([]int32{1, 2}, []int32{3, 4})
		m.Sample.Finish = art.FinishLength
		return m
	}
	cfg := (&art.TrainConfig{MaskTruncated: true}).WithDefaults()
	b := FromGroups(group(
		rewarded(1, cut(), art.User("u"), sampled([]int32{1, 2, 3, 4, 5}, []int32{6})),
		rewarded(0, cut()), rewarded(2, cut()),
		rewarded(3, sampled([]int32{1, 2}, []int32{7})),
	), cfg, 0, 20, 100)
	require.Len(t, b.Sequences, 2)
	require.Equal(t, []int32{1, 2, 3, 4, 5, 6}, b.Sequences[0].IDs)
	require.Equal(t, []bool{false, false, false, false, false, true}, b.Sequences[0].Trained)
	require.InDelta(t, -b.Sequences[1].Advantage/3, b.Sequences[0].Advantage, 1e-9, "the mean is 1.5")
	metrics := b.Metrics(nil)
	require.Equal(t, 2.0, metrics["data/skipped_truncated"])
	require.Equal(t, 6.0, metrics["data/tokens_truncated"])
}

// TestCollect_Overlong: 4 sampled tokens of at most 5, with a buffer of 2, cost half of the penalty.
func TestCollect_Overlong(t *testing.T) {
	overlong := credit.Overlong{Longest: 5, Buffer: 2, Penalty: 3}
	cfg := (&art.TrainConfig{Scale: credit.ScaleNone, Overlong: overlong}).WithDefaults()
	b := FromGroups(group(
		rewarded(1, sampled([]int32{1}, []int32{2, 3, 4, 5})), rewarded(1, sampled([]int32{1}, []int32{2})),
	), cfg, 0, 20, 100)
	require.Len(t, b.Sequences, 2, "rewards differ by the penalty alone")
	require.InDelta(t, -0.75, b.Sequences[0].Advantage, 1e-12)
	require.InDelta(t, 0.75, b.Sequences[1].Advantage, 1e-12)
	require.InDelta(t, -0.75, b.Metrics(group(rewarded(1), rewarded(1)))["data/overlong_penalty_mean"], 1e-12)
}

// TestCollect_Behavior: with Correction.Behavior the logprobs of the distribution that was sampled from are kept.
func TestCollect_Behavior(t *testing.T) {
	hot := sampled([]int32{1}, []int32{2, 3})
	hot.Sample.Sampled = []float32{-0.5, -0.25}
	groups := group(rewarded(1, hot), rewarded(0, sampled([]int32{1}, []int32{4})))
	require.Nil(t, collectAll(groups).Sequences[0].Behavior)
	cfg := &art.TrainConfig{Correction: credit.Correction{Method: credit.CorrectTruncate, Behavior: true}}
	b := FromGroups(groups, cfg.WithDefaults(), 0, 20, 100)
	require.Equal(t, []float32{0, -0.5, -0.25}, b.Sequences[0].Behavior)
	require.Equal(t, []float32{0, -4}, b.Sequences[1].Behavior, "as the policy's where none were recorded")
	hot.Sample.Sampled = []float32{-1}
	b = FromGroups(groups, cfg.WithDefaults(), 0, 20, 100)
	require.Equal(t, 1.0, b.Metrics(nil)["data/skipped_bad_sample"])
}
