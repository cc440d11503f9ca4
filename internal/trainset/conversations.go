package trainset

import (
	"fmt"

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
		first = lastReply(h.Messages)
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

func lastReply(messages []art.Message) int {
	for i := len(messages) - 1; i > 0; i-- {
		if messages[i].Role == art.RoleAssistant {
			return i
		}
	}
	return 0
}
