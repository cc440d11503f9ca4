// Package trainset turns what a training call is given, groups, conversations or pairs, into tokenised sequences with
// advantages. It says what cannot be trained on, and why.
package trainset

import (
	"fmt"
	"math"
	"slices"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/grpo/credit"
)

// Seed is the seed of the order of sequences in a step of a run with a seed.
func Seed(seed uint64, step int) uint64 { return seed*0x9e3779b97f4a7c15 + uint64(step) }

// Set is what a training call trains on, and what it skips.
type Set struct {
	cfg       *art.TrainConfig // with defaults; nil for supervised training
	step      int              // of the policy that is trained
	limit     int              // most tokens of a sequence
	vocab     int              // number of ids
	std       float64          // what advantages are divided by besides the group's scale
	penalties float64          // sum of penalties for length
	truncated int              // sampled tokens that are left out because their reply was cut
	origins   map[int]origin   // by Trajectory of Sequences

	// Sequences are not normalised.
	Sequences []credit.Sequence
	Skipped   []art.Skip
	Groups    int // with trajectories that are trained on
	Trained   int // trajectories
	// Advantages of the trajectories of each group, NaN where nothing is trained on.
	Advantages [][]float64
}

// FromGroups converts groups to sequences for the policy of step. limit is the maximum length of a sequence, vocab the
// number of ids.
func FromGroups(groups []*art.TrajectoryGroup, cfg *art.TrainConfig, step, limit, vocab int) *Set {
	b := &Set{cfg: cfg, step: step, limit: limit, vocab: vocab, std: 1, origins: map[int]origin{}}
	rewards := make([][]float64, len(groups))
	var transformed []float64 // what the objective makes of the rewards
	for g, group := range groups {
		rewards[g] = comparedRewards(group, cfg)
		if cfg.Scale == credit.ScaleBatch {
			transformed = append(transformed, credit.Transformed(present(rewards[g]), cfg.Credit().Advantages)...)
		}
	}
	if cfg.Scale == credit.ScaleBatch {
		b.std = credit.BatchStd(transformed) + credit.StdEpsilon
	}
	for g, group := range groups {
		before := b.Trained
		b.Advantages = append(b.Advantages, noAdvantages(group))
		b.addGroup(g, group, rewards[g])
		if b.Trained > before {
			b.Groups++
		}
	}
	return b
}

func (b *Set) skip(group, trajectory int, reason credit.Reason, detail string) {
	b.Skipped = append(b.Skipped, art.Skip{Group: group, Trajectory: trajectory, Reason: reason, Detail: detail})
}

// addGroup adds a group with its advantages. A trajectory whose reward is not finite is excluded from the baseline; one
// that cannot be trained on for another reason is not. rewards are the compared ones.
func (b *Set) addGroup(g int, group *art.TrajectoryGroup, rewards []float64) {
	if group == nil || len(group.Trajectories) == 0 {
		b.skip(g, -1, credit.ReasonEmptyGroup, "")
		return
	}
	var usable []int
	for i, t := range group.Trajectories {
		switch {
		case t == nil:
			b.skip(g, i, credit.ReasonNoSamples, "the trajectory is nil")
		case math.IsNaN(rewards[i]):
			b.skip(g, i, credit.ReasonBadReward, fmt.Sprintf("reward is %v", t.Reward))
		default:
			usable = append(usable, i)
			b.penalties += rewards[i] - t.Reward
		}
	}
	compared := present(rewards)
	advantages, reason := credit.Advantages(compared, b.cfg.Credit().Advantages)
	if reason != credit.ReasonNone {
		b.skip(g, -1, reason, fmt.Sprintf("rewards %v", compared))
		return
	}
	for k, i := range usable {
		b.addTrajectory(g, i, group.Trajectories[i], advantages[k]/b.std)
	}
}

// CheckGroup says why a training skips a group as a whole, or "" where it has advantages. cfg has its defaults.
func CheckGroup(group *art.TrajectoryGroup, cfg *art.TrainConfig) credit.Reason {
	_, reason := credit.Advantages(present(comparedRewards(group, cfg)), cfg.Credit().Advantages)
	return reason
}

// comparedRewards returns what the trajectories of a group are compared by, the rewards with the penalty for length. It
// is NaN for those that are left out: nil ones, and those whose reward is not finite.
func comparedRewards(group *art.TrajectoryGroup, cfg *art.TrainConfig) []float64 {
	rewards := noAdvantages(group)
	for i := range rewards {
		if t := group.Trajectories[i]; t != nil && !math.IsNaN(t.Reward) && !math.IsInf(t.Reward, 0) {
			sampled := 0
			for _, s := range t.Samples() {
				sampled += len(s.IDs)
			}
			rewards[i] = t.Reward + cfg.Overlong.Of(sampled)
		}
	}
	return rewards
}

func present(rewards []float64) []float64 {
	return slices.DeleteFunc(slices.Clone(rewards), math.IsNaN)
}

func (b *Set) addTrajectory(g, i int, t *art.Trajectory, advantage float64) {
	if len(t.Samples()) == 0 {
		b.skip(g, i, credit.ReasonNoSamples, "no message was sampled by the model")
		return
	}
	if advantage == 0 {
		b.skip(g, i, credit.ReasonZeroAdvantage, "")
		return
	}
	var sequences []credit.Sequence
	for _, h := range t.Histories() {
		list, err := b.historySequences(h)
		if err != nil {
			b.skip(g, i, credit.ReasonBadSample, err.Error())
			return
		}
		sequences = append(sequences, list...)
	}
	for k := range sequences {
		s := &sequences[k]
		s.Advantage, s.Trajectory = advantage, b.Trained
		if n := s.NumInputs(); n > b.limit {
			b.skip(g, i, credit.ReasonTooLong, fmt.Sprintf("%d tokens, the context has %d", n, b.limit))
			return
		}
	}
	sequences = slices.DeleteFunc(sequences, func(s credit.Sequence) bool { return s.NumTrained() == 0 })
	if len(sequences) == 0 {
		reason, detail := credit.ReasonNoSamples, "every sampled token was forced"
		if slices.ContainsFunc(t.Samples(), b.masked) {
			reason, detail = credit.ReasonTruncated, "its replies ended at the limit of tokens"
		}
		b.skip(g, i, reason, detail)
		return
	}
	b.Sequences = append(b.Sequences, sequences...)
	b.Advantages[g][i] = advantage
	b.origins[b.Trained] = origin{g, i}
	b.Trained++
}

// masked reports whether a sample is left out because it was cut.
func (b *Set) masked(s *art.Sample) bool {
	return b.cfg.MaskTruncated && s.Finish == art.FinishLength
}

// noAdvantages returns NaN for each trajectory of a group.
func noAdvantages(group *art.TrajectoryGroup) []float64 {
	if group == nil {
		return nil
	}
	none := make([]float64, len(group.Trajectories))
	for i := range none {
		none[i] = math.NaN()
	}
	return none
}

// historySequences converts the samples of a conversation to as few sequences as possible: a sample whose prompt begins
// with the whole previous sequence extends it.
func (b *Set) historySequences(h *art.History) ([]credit.Sequence, error) {
	var out []credit.Sequence
	for i := range h.Messages {
		s := h.Messages[i].Sample
		if s == nil {
			continue
		}
		if err := checkSample(s, b.vocab); err != nil {
			return nil, fmt.Errorf("message %d: %w", i, err)
		}
		if n := len(out); n == 0 || !hasPrefix(s.PromptIDs, out[n-1].IDs) {
			out = append(out, credit.Sequence{})
		}
		to, behavior := &out[len(out)-1], s.Logprobs
		if s.Sampled != nil {
			behavior = s.Sampled
		}
		add := func(id int32, trained bool, logprob, behavior float32, staleness int) {
			to.IDs, to.Trained, to.Logprobs = append(to.IDs, id), append(to.Trained, trained), append(to.Logprobs, logprob)
			to.Staleness = append(to.Staleness, staleness)
			if b.cfg.Correction.Behavior {
				to.Behavior = append(to.Behavior, behavior)
			}
		}
		for _, id := range s.PromptIDs[len(to.IDs):] {
			add(id, false, 0, 0, 0)
		}
		masked := b.masked(s)
		if masked {
			b.truncated += len(s.IDs)
		}
		for i, id := range s.IDs {
			trained := (s.Forced == nil || !s.Forced[i]) && !masked
			add(id, trained, s.Logprobs[i], behavior[i], b.step-s.Step)
		}
	}
	return out, nil
}

func hasPrefix(ids, prefix []int32) bool {
	return len(ids) >= len(prefix) && slices.Equal(ids[:len(prefix)], prefix)
}

// checkSample reports an invalid sample, such as of an edited file or with tokens of another model.
func checkSample(s *art.Sample, vocab int) error {
	n := len(s.IDs)
	if len(s.PromptIDs) == 0 || n == 0 || len(s.Logprobs) != n || s.Forced != nil && len(s.Forced) != n ||
		s.Sampled != nil && len(s.Sampled) != n {
		return fmt.Errorf("%d prompt ids, %d ids, %d logprobs, %d of them as sampled, %d forced marks do not fit together",
			len(s.PromptIDs), n, len(s.Logprobs), len(s.Sampled), len(s.Forced))
	}
	for _, list := range [][]int32{s.PromptIDs, s.IDs} {
		for _, id := range list {
			if id < 0 || int(id) >= vocab {
				return fmt.Errorf("id %d is not in the vocabulary of %d", id, vocab)
			}
		}
	}
	for i, lp := range slices.Concat(s.Logprobs, s.Sampled) {
		if !(lp <= 1e-3 && lp >= -math.MaxFloat32) {
			return fmt.Errorf("logprob %d is %v", i, lp)
		}
	}
	return nil
}

// origin is where a trajectory is in what the training call was given.
type origin struct{ group, trajectory int }

// SkipNotFinite adds to Skipped, and returns, the trajectories of skipped updates, each once: those whose own loss or
// gradient was not finite, and those of updates of which only the sum was not. They are numbered as in Sequences.
func (b *Set) SkipNotFinite(alone, together []int) []art.Skip {
	before, seen := len(b.Skipped), map[int]bool{}
	for _, x := range []struct {
		list   []int
		detail string
	}{
		{alone, "its loss or gradient is NaN or infinite: the update that it was in was skipped"},
		{together, "the sum of the gradients of its update overflowed, though each alone is finite: the update was skipped"},
	} {
		for _, i := range x.list {
			if !seen[i] {
				seen[i] = true
				b.skip(b.origins[i].group, b.origins[i].trajectory, credit.ReasonNotFinite, x.detail)
			}
		}
	}
	return b.Skipped[before:]
}
