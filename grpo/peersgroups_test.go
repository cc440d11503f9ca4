package grpo

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/grpo/credit"
	"github.com/goart-dev/art/internal/trainset"
)

// answer is a trajectory of one reply of so many tokens.
func answer(reward float64, tokens int, finish string) *art.Trajectory {
	reply := art.Assistant("x")
	reply.Sample = &art.Sample{PromptIDs: []int32{1}, IDs: make([]int32, tokens), Logprobs: make([]float32, tokens),
		Finish: finish}
	t := art.NewTrajectory(art.User("u"))
	t.Add(reply)
	t.Reward = reward
	return t
}

// advantagesOf are those that a training takes for groups, 0 where it skips a trajectory.
func advantagesOf(t *testing.T, cfg art.TrainConfig, groups ...*art.TrajectoryGroup) (all []float64) {
	t.Helper()
	require.NoError(t, cfg.Validate())
	for _, group := range trainset.FromGroups(groups, cfg.WithDefaults(), 0, 100, 10).Advantages {
		for _, a := range group {
			if math.IsNaN(a) {
				a = 0
			}
			all = append(all, a)
		}
	}
	return all
}

// TestScales_MatchPeers: TRL divides by the standard deviation of a sample + 1e-4, we by that of the population
// + StdEpsilon, of a group or of the batch; that apart, advantages are the same. In that of the batch are groups too
// that have no advantages.
func TestScales_MatchPeers(t *testing.T) {
	const size, epsilon = 4, 1e-4
	golden := readPeersGolden(t).Scaled
	var groups []*art.TrajectoryGroup
	for rewards := range slices.Chunk(golden.Rewards, size) {
		group := &art.TrajectoryGroup{}
		for _, r := range rewards {
			group.Trajectories = append(group.Trajectories, answer(r, 1, art.FinishStop))
		}
		groups = append(groups, group)
	}
	for name, scale := range map[string]credit.Scale{
		"group": credit.ScaleStd, "batch": credit.ScaleBatch, "none": credit.ScaleNone,
	} {
		got := advantagesOf(t, art.TrainConfig{Scale: scale}, groups...)
		require.Len(t, golden.Advantages[name], len(got))
		for i, want := range golden.Advantages[name] {
			of := golden.Rewards // whose deviation it is
			if scale == credit.ScaleStd {
				of = golden.Rewards[i/size*size:][:size]
			}
			if std := credit.BatchStd(of); scale != credit.ScaleNone {
				got[i] *= (std + credit.StdEpsilon) / (sampleStd(std, len(of)) + epsilon)
			}
			require.InDelta(t, want, got[i], 1e-12, "%s, reward %v", name, golden.Rewards[i])
		}
	}
}

// TestOverlong_MatchesPeers: the penalty of long answers is that of TRL and of verl. It is seen in the advantages of
// answers of equal reward.
func TestOverlong_MatchesPeers(t *testing.T) {
	golden := readPeersGolden(t)
	require.Len(t, golden.Penalties, 4)
	for _, c := range golden.Penalties {
		group, mean := &art.TrajectoryGroup{}, 0.0
		for i, penalty := range c.Values {
			group.Trajectories = append(group.Trajectories, answer(3, i+1, art.FinishStop))
			mean += penalty / float64(len(c.Values))
			overlong := credit.Overlong{Longest: c.Longest, Buffer: c.Buffer, Penalty: c.Penalty}
			require.InDelta(t, penalty, overlong.Of(i+1), 1e-12, c.Name)
		}
		require.NotZero(t, mean)
		cfg := art.TrainConfig{Scale: credit.ScaleNone,
			Overlong: credit.Overlong{Longest: c.Longest, Buffer: c.Buffer, Penalty: c.Penalty}}
		for i, a := range advantagesOf(t, cfg, group) {
			require.InDelta(t, c.Values[i]-mean, a, 1e-12, "%s, %d tokens", c.Name, i+1)
		}
	}
}

// TestMaskTruncated_MatchesPeers: what was cut is not in the loss, and its reward counts in the baseline, as in TRL.
// Where the number of answers divides the loss, TRL counts what it left out, and we do not.
func TestMaskTruncated_MatchesPeers(t *testing.T) {
	golden := readPeersGolden(t)
	group := &art.TrajectoryGroup{}
	var rows []int // that are trained on
	for i, n := range golden.Lengths {
		finish := art.FinishLength
		if !slices.Contains(golden.Truncated.Cut, i) {
			finish, rows = art.FinishStop, append(rows, i)
		}
		group.Trajectories = append(group.Trajectories, answer(golden.Truncated.Rewards[i], n, finish))
	}
	fewer := float64(len(rows)) / float64(len(golden.Lengths))
	require.Less(t, fewer, 1.0)
	for name, c := range map[string]struct {
		cfg   art.TrainConfig
		scale float64 // what TRL has over what we have
	}{
		"trl dapo":    {art.TrainConfig{Loss: credit.DAPO}, 1},
		"trl grpo":    {art.TrainConfig{Loss: credit.GRPO}, fewer},
		"trl dr_grpo": {art.TrainConfig{Loss: credit.DrGRPO, Length: 12}, fewer},
	} {
		t.Run(name, func(t *testing.T) {
			at := slices.IndexFunc(golden.Truncated.Losses, func(l peersLoss) bool { return l.Name == name })
			require.GreaterOrEqual(t, at, 0)
			theirs := golden.Truncated.Losses[at]
			for _, row := range golden.Truncated.Cut {
				require.InDeltaSlice(t, make([]float64, len(theirs.Grad[row])), theirs.Grad[row], 0)
			}
			c.cfg.MaskTruncated, c.cfg.Scale, c.cfg.NormalizeAdvantages = true, credit.ScaleNone, new(bool)
			require.NoError(t, c.cfg.Validate())
			cfg := c.cfg.WithDefaults()
			set := trainset.FromGroups([]*art.TrajectoryGroup{group}, cfg, 0, 100, 10)
			require.Len(t, set.Sequences, len(rows))
			seqs, err := credit.Normalize(set.Sequences, cfg.Credit().Normalize)
			require.NoError(t, err)
			grad := golden.flat(theirs.Grad, rows)
			for i := range grad {
				grad[i] /= c.scale
			}
			loss := PolicyLoss{Loss: cfg.Loss}
			golden.tokens(seqs, rows).compare(t, loss, theirs.Value/c.scale, grad)
		})
	}
}
