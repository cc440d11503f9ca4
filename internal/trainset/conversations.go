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
			out.addTarget(i, t, h, turns)
		}
		if len(out.Sequences) > before {
			out.Trained++
		}
	}
	return out
}

func (b *Set) addTarget(i int, t *chat.Template, h *art.History, turns art.Turns) {
	first := 0
	if turns == art.TurnsLast {
		for i := range h.Messages {
			if h.Messages[i].Role == art.RoleAssistant {
				first = i
			}
		}
	}
	ids, mask, err := t.TargetFrom(first, h.Messages, h.Tools)
	if err != nil {
		b.skip(0, i, credit.ReasonBadSample, err.Error())
		return
	}
	seq := credit.Sequence{IDs: ids, Trained: mask, Logprobs: make([]float32, len(ids)), Advantage: 1, Weight: 1,
		Trajectory: i}
	switch {
	case seq.NumTrained() == 0:
		b.skip(0, i, credit.ReasonNoSamples, "no assistant message")
	case seq.NumInputs() > b.limit:
		b.skip(0, i, credit.ReasonTooLong, fmt.Sprintf("%d tokens, the context has %d", seq.NumInputs(), b.limit))
	default:
		b.Sequences = append(b.Sequences, seq)
	}
}

// FromPreferences tokenises pairs: the chosen sequence, then the rejected one. Those of more than limit tokens are
// skipped.
func FromPreferences(t *chat.Template, pairs []art.Preference, limit int) *Set {
	out := &Set{limit: limit, origins: map[int]origin{}}
	for i, p := range pairs {
		prompt := p.Prompt()
		chosen, fits := out.answer(i, 0, t, p.Chosen, prompt)
		rejected, both := out.answer(i, 1, t, p.Rejected, prompt)
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

// answer tokenises one side of a pair whose answer begins after prompt messages. It skips what cannot be trained on.
func (b *Set) answer(
	pair, side int, template *chat.Template, t *art.Trajectory, prompt int,
) (seq credit.Sequence, ok bool) {
	ids, mask, err := template.TargetFrom(prompt, t.Messages, t.Tools)
	if err != nil {
		b.skip(pair, side, credit.ReasonBadSample, err.Error())
		return seq, false
	}
	b.origins[2*pair+side] = origin{pair, side}
	seq = credit.Sequence{IDs: ids, Trained: mask, Logprobs: make([]float32, len(ids)), Trajectory: 2*pair + side}
	switch {
	case seq.NumTrained() == 0:
		b.skip(pair, side, credit.ReasonNoSamples, "the answer has no tokens")
	case seq.NumInputs() > b.limit:
		b.skip(pair, side, credit.ReasonTooLong, fmt.Sprintf("%d tokens, the context has %d", seq.NumInputs(), b.limit))
	default:
		return seq, true
	}
	return seq, false
}
