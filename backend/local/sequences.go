package local

import (
	"fmt"
	"math"
	"slices"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/grpo"
)

// batch is what a training call trains on, and what it skips.
type batch struct {
	cfg       *art.TrainConfig // with defaults; nil for supervised training
	step      int              // of the policy that is trained
	limit     int              // most tokens of a sequence
	vocab     int              // number of ids
	std       float64          // what advantages are divided by besides the group's scale
	sequences []grpo.Sequence
	skipped   []art.Skip
	groups    int // with trajectories that are trained on
	trained   int // trajectories
}

// collect converts groups to sequences for the policy of step. limit is the maximum length of a sequence, vocab the
// number of ids.
func collect(groups []*art.TrajectoryGroup, cfg *art.TrainConfig, step, limit, vocab int) *batch {
	b := &batch{cfg: cfg, step: step, limit: limit, vocab: vocab, std: 1}
	if cfg.Scale == art.ScaleBatch {
		b.std = batchStd(groups) + grpo.StdEpsilon
	}
	for g, group := range groups {
		before := b.trained
		b.addGroup(g, group)
		if b.trained > before {
			b.groups++
		}
	}
	return b
}

func (b *batch) skip(group, trajectory int, reason art.SkipReason, detail string) {
	b.skipped = append(b.skipped, art.Skip{Group: group, Trajectory: trajectory, Reason: reason, Detail: detail})
}

// addGroup adds a group with its advantages. A trajectory whose reward is not finite is excluded from the baseline; one
// that cannot be trained on for another reason is not.
func (b *batch) addGroup(g int, group *art.TrajectoryGroup) {
	if group == nil || len(group.Trajectories) == 0 {
		b.skip(g, -1, art.SkipEmptyGroup, "")
		return
	}
	var rewards []float64
	var usable []int
	for i, t := range group.Trajectories {
		switch {
		case t == nil:
			b.skip(g, i, art.SkipNoSamples, "the trajectory is nil")
		case math.IsNaN(t.Reward) || math.IsInf(t.Reward, 0):
			b.skip(g, i, art.SkipBadReward, fmt.Sprintf("reward is %v", t.Reward))
		default:
			rewards, usable = append(rewards, t.Reward), append(usable, i)
		}
	}
	advantages, reason := grpo.Advantages(rewards, advantageConfig(b.cfg))
	if reason != grpo.ReasonNone {
		b.skip(g, -1, art.SkipReason(reason), fmt.Sprintf("rewards %v", rewards))
		return
	}
	for k, i := range usable {
		b.addTrajectory(g, i, group.Trajectories[i], advantages[k]/b.std)
	}
}

// advantageConfig translates a configuration.
func advantageConfig(cfg *art.TrainConfig) grpo.AdvantageConfig {
	return grpo.AdvantageConfig{
		Baseline: grpo.Baseline(cfg.Baseline), Scale: grpo.Scale(cfg.Scale), Objective: grpo.Objective(cfg.Objective),
		K: cfg.K, Tolerance: cfg.VarianceTolerance,
	}
}

// batchStd is the standard deviation of all rewards that are finite.
func batchStd(groups []*art.TrajectoryGroup) float64 {
	var rewards []float64
	for _, g := range present(groups) {
		for _, t := range g.Trajectories {
			if !math.IsNaN(t.Reward) && !math.IsInf(t.Reward, 0) {
				rewards = append(rewards, t.Reward)
			}
		}
	}
	return grpo.BatchStd(rewards)
}

func (b *batch) addTrajectory(g, i int, t *art.Trajectory, advantage float64) {
	if len(t.Samples()) == 0 {
		b.skip(g, i, art.SkipNoSamples, "no message was sampled by the model")
		return
	}
	if advantage == 0 {
		b.skip(g, i, art.SkipZeroAdvantage, "")
		return
	}
	var sequences []grpo.Sequence
	for _, h := range t.Histories() {
		list, err := historySequences(h, b.step, b.vocab)
		if err != nil {
			b.skip(g, i, art.SkipBadSample, err.Error())
			return
		}
		sequences = append(sequences, list...)
	}
	for k := range sequences {
		s := &sequences[k]
		s.Advantage, s.Trajectory = advantage, b.trained
		if n := s.NumInputs(); n > b.limit {
			b.skip(g, i, art.SkipTooLong, fmt.Sprintf("%d tokens, the context has %d", n, b.limit))
			return
		}
	}
	sequences = slices.DeleteFunc(sequences, func(s grpo.Sequence) bool { return s.NumTrained() == 0 })
	if len(sequences) == 0 {
		b.skip(g, i, art.SkipNoSamples, "every sampled token was forced")
		return
	}
	b.sequences = append(b.sequences, sequences...)
	b.trained++
}

// historySequences converts the samples of a conversation to as few sequences as possible: a sample whose prompt begins
// with the whole previous sequence extends it. step is that of the policy to train.
func historySequences(h *art.History, step, vocab int) ([]grpo.Sequence, error) {
	var out []grpo.Sequence
	for i := range h.Messages {
		s := h.Messages[i].Sample
		if s == nil {
			continue
		}
		if err := checkSample(s, vocab); err != nil {
			return nil, fmt.Errorf("message %d: %w", i, err)
		}
		if n := len(out); n == 0 || !hasPrefix(s.PromptIDs, out[n-1].IDs) {
			out = append(out, grpo.Sequence{})
		}
		extend(&out[len(out)-1], s, step)
	}
	return out, nil
}

func hasPrefix(ids, prefix []int32) bool {
	return len(ids) >= len(prefix) && slices.Equal(ids[:len(prefix)], prefix)
}

// extend appends the rest of the prompt of s, and its tokens.
func extend(to *grpo.Sequence, s *art.Sample, step int) {
	for _, id := range s.PromptIDs[len(to.IDs):] {
		to.IDs, to.Trained, to.Logprobs = append(to.IDs, id), append(to.Trained, false), append(to.Logprobs, 0)
		to.Staleness = append(to.Staleness, 0)
	}
	for i, id := range s.IDs {
		trained := s.Forced == nil || !s.Forced[i]
		to.IDs, to.Trained, to.Logprobs = append(to.IDs, id), append(to.Trained, trained), append(to.Logprobs, s.Logprobs[i])
		to.Staleness = append(to.Staleness, step-s.Step)
	}
}

// checkSample reports an invalid sample, such as of an edited file or with tokens of another model.
func checkSample(s *art.Sample, vocab int) error {
	if len(s.PromptIDs) == 0 || len(s.IDs) == 0 || len(s.Logprobs) != len(s.IDs) || s.Forced != nil &&
		len(s.Forced) != len(s.IDs) {
		return fmt.Errorf("%d prompt ids, %d ids, %d logprobs, %d forced marks do not fit together", len(s.PromptIDs),
			len(s.IDs), len(s.Logprobs), len(s.Forced))
	}
	for _, list := range [][]int32{s.PromptIDs, s.IDs} {
		for _, id := range list {
			if id < 0 || int(id) >= vocab {
				return fmt.Errorf("id %d is not in the vocabulary of %d", id, vocab)
			}
		}
	}
	for i, lp := range s.Logprobs {
		if !(lp <= 1e-3 && lp >= -math.MaxFloat32) {
			return fmt.Errorf("logprob %d is %v", i, lp)
		}
	}
	return nil
}
