package trainset

import (
	"fmt"
	"slices"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/grpo/credit"
	"github.com/goart-dev/art/tokenizer/chat"
)

// FromConversations tokenises conversations with their targets, those of some turns. Those of more than limit tokens
// are skipped.
func FromConversations(t *chat.Template, trajectories []*art.Trajectory, turns art.Turns, limit int) *Set {
	out := &Set{limit: limit, origins: map[int]origin{}}
	for i, one := range trajectories {
		if one == nil {
			out.skip(0, i, credit.ReasonNoSamples, "the trajectory is nil")
			continue
		}
		before := len(out.Sequences)
		out.origins[i] = origin{0, i}
		for _, h := range one.Histories() {
			first := 0
			for k := range h.Messages {
				if turns == art.TurnsLast && h.Messages[k].Role == art.RoleAssistant {
					first = k
				}
			}
			if seq, ok := out.target(0, i, t, h, first, "no assistant message"); ok {
				seq.Advantage, seq.Weight, seq.Trajectory = 1, 1, i
				out.Sequences = append(out.Sequences, seq)
			}
		}
		if len(out.Sequences) > before {
			out.Trained++
		}
	}
	return out
}

// target tokenises a conversation whose targets begin at message first. It skips what cannot be trained on; none says
// that it has no target.
func (b *Set) target(
	group, trajectory int, t *chat.Template, h *art.History, first int, none string,
) (seq credit.Sequence, ok bool) {
	ids, mask, err := t.TargetFrom(first, h.Messages, h.Tools)
	if err != nil {
		b.skip(group, trajectory, credit.ReasonBadSample, err.Error())
		return seq, false
	}
	seq = credit.Sequence{IDs: ids, Trained: mask, Logprobs: make([]float32, len(ids))}
	switch {
	case seq.NumTrained() == 0:
		b.skip(group, trajectory, credit.ReasonNoSamples, none)
	case seq.NumInputs() > b.limit:
		b.skip(group, trajectory, credit.ReasonTooLong,
			fmt.Sprintf("%d tokens, the context has %d", seq.NumInputs(), b.limit))
	default:
		return seq, true
	}
	return seq, false
}

// FromPreferences tokenises pairs: the chosen sequence, then the rejected one. Those of more than limit tokens are
// skipped.
func FromPreferences(t *chat.Template, pairs []art.Preference, limit int) *Set {
	out := &Set{limit: limit, origins: map[int]origin{}}
	for i, p := range pairs {
		prompt := p.Prompt()
		out.origins[2*i], out.origins[2*i+1] = origin{i, 0}, origin{i, 1}
		chosen, fits := out.target(i, 0, t, &p.Chosen.History, prompt, "the answer has no tokens")
		rejected, both := out.target(i, 1, t, &p.Rejected.History, prompt, "the answer has no tokens")
		chosen.Trajectory, rejected.Trajectory = 2*i, 2*i+1
		if !fits || !both {
			continue
		}
		n := slices.Index(chosen.Trained, true)
		if n != slices.Index(rejected.Trained, true) || !slices.Equal(chosen.IDs[:n], rejected.IDs[:n]) {
			out.skip(i, -1, credit.ReasonBadSample, "the template renders the common prompt differently before the two answers")
			continue
		}
		out.Sequences = append(out.Sequences, chosen, rejected)
		out.Groups, out.Trained = out.Groups+1, out.Trained+2
	}
	return out
}
