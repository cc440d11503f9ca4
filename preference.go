package art

import (
	"context"
	"reflect"
)

// Preference is a pair of answers to one prompt. The prompt is the messages that both conversations begin with; what
// follows in each, an assistant message first, is the answer.
type Preference struct {
	Chosen   *Trajectory
	Rejected *Trajectory
}

// Prompt returns the number of messages of the common prompt.
func (p Preference) Prompt() int {
	n := 0
	for n < min(len(p.Chosen.Messages), len(p.Rejected.Messages)) &&
		sameMessage(p.Chosen.Messages[n], p.Rejected.Messages[n]) {
		n++
	}
	return n
}

// sameMessage compares what a template renders; the Sample of a message tells who wrote it, not what it says.
func sameMessage(a, b Message) bool {
	a.Sample, b.Sample = nil, nil
	return reflect.DeepEqual(a, b)
}

// check lists the problems of a pair.
func (p Preference) check(found *problems, i int) {
	if p.Chosen == nil || p.Rejected == nil {
		found.check(false, "pair %d has no chosen or no rejected trajectory", i)
		return
	}
	found.check(len(p.Chosen.AdditionalHistories)+len(p.Rejected.AdditionalHistories) == 0,
		"pair %d has additional histories: make a pair of each", i)
	found.check(reflect.DeepEqual(p.Chosen.Tools, p.Rejected.Tools), "pair %d has different tools", i)
	n := p.Prompt()
	found.check(n > 0, "pair %d has no common prompt: the first messages differ", i)
	for _, t := range []*Trajectory{p.Chosen, p.Rejected} {
		found.check(n == 0 || n < len(t.Messages) && t.Messages[n].Role == RoleAssistant,
			"pair %d: after %d common messages an assistant message must follow in both", i, n)
	}
}

// TrainDPO makes the next step of the model by direct preference optimization: the chosen answer of each pair becomes
// likelier, relative to the rejected one, than it is under a reference policy. cfg may be nil: defaults.
//
// It returns [ErrNotRegistered], [ErrFrozen], [ErrUnsupported] when the backend is no [DPOTrainer], and [ErrInvalid]
// listing every problem of cfg, or of the pairs: each needs two trajectories without additional histories, with the
// same tools and a common prompt, after which both have an assistant message.
func (m *Model) TrainDPO(ctx context.Context, pairs []Preference, cfg *DPOConfig) (*TrainResult, error) {
	trainer, err := capability[DPOTrainer](m, "train dpo", "art.DPOTrainer, such as backend/local")
	if err != nil {
		return nil, err
	}
	if err := m.trainable("train dpo"); err != nil {
		return nil, err
	}
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if err := checkPreferences(pairs); err != nil {
		return nil, err
	}
	cfg = cfg.WithDefaults()
	l := m.startLearning(PreferenceGroups(pairs))
	cfg.Progress = both(cfg.Progress, l.progress())
	tell(m.events().TrainStart, TrainStart{m, l.start, l.step, len(pairs), l.trajectories(), nil, nil, cfg})
	return l.end(trainer.TrainDPO(ctx, m, pairs, cfg))
}

// checkPreferences lists the problems of all pairs.
func checkPreferences(pairs []Preference) error {
	if len(pairs) == 0 {
		return problems{"no pairs"}.err("train dpo", "give at least one with a chosen and a rejected trajectory")
	}
	var p problems
	for i, pair := range pairs {
		pair.check(&p, i)
	}
	return p.err("train dpo", "a pair is two conversations with the same first messages and different answers")
}

// PreferenceGroups returns each pair as a group of two trajectories, the chosen one first: how pairs are counted and
// stored.
func PreferenceGroups(pairs []Preference) []*TrajectoryGroup {
	groups := make([]*TrajectoryGroup, len(pairs))
	for i, p := range pairs {
		groups[i] = &TrajectoryGroup{Trajectories: []*Trajectory{p.Chosen, p.Rejected}}
	}
	return groups
}
