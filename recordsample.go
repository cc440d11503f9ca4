package art

import (
	"context"
	"fmt"
	"slices"
)

// tokensHistory stands for the tools of a history that consists of token ids, which has none.
const tokensHistory = "token ids"

// recordSample hands a reply to a prompt of token ids to the recorder of ctx, if there is one.
func recordSample(ctx context.Context, m *Model, reply *ChatResponse) error {
	r, ok := ctx.Value(recorderKey{}).(*Recorder)
	if !ok {
		return nil
	}
	if reply.Message.Sample == nil {
		return &Error{"record", fmt.Errorf("the reply of model %s has no sample", m.name), "its Sampler must set it"}
	}
	return r.addSample(reply.Message, func(ids []int32) (string, error) {
		tokenizer, ok := m.backend.(tokenizer)
		if !ok {
			return "", nil
		}
		return tokenizer.Decode(ctx, m, ids)
	})
}

// addSample records a reply to a prompt of token ids. text decodes what of the prompt is new, which stands before the
// reply as a message of the user.
func (r *Recorder) addSample(reply Message, text func(ids []int32) (string, error)) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if drop, err := r.late(); drop {
		return err
	}
	prompt := reply.Sample.PromptIDs
	h, known := r.continuedIDs(prompt)
	added, err := text(prompt[len(known):])
	if err != nil {
		return err
	}
	if h == nil {
		h = r.begin(nil, tokensHistory, func() string { return r.tokensForkReason(prompt) })
	}
	if len(known) < len(prompt) {
		h.Add(User(added))
	}
	h.Add(reply)
	r.completions++
	return nil
}

// continuedIDs returns the history whose ids a prompt repeats furthest, and these; nil if it repeats none as a whole.
func (r *Recorder) continuedIDs(prompt []int32) (best *History, known []int32) {
	for i, h := range r.histories() {
		ids := r.idsOf(i, h)
		if len(ids) > len(known) && len(ids) <= len(prompt) && slices.Equal(ids, prompt[:len(ids)]) {
			best, known = h, ids
		}
	}
	return best, known
}

// idsOf returns all ids of a history that consists of token ids, nil for another one.
func (r *Recorder) idsOf(i int, h *History) []int32 {
	if r.tools[i] != tokensHistory {
		return nil
	}
	s := h.Messages[len(h.Messages)-1].Sample
	return slices.Concat(s.PromptIDs, s.IDs)
}

// tokensForkReason says where a prompt leaves the history whose ids it repeats furthest.
func (r *Recorder) tokensForkReason(prompt []int32) string {
	of, common := -1, 0
	for i, h := range r.histories() {
		ids := r.idsOf(i, h)
		n := 0
		for n < min(len(ids), len(prompt)) && ids[n] == prompt[n] {
			n++
		}
		if ids != nil && (of < 0 || n > common) {
			of, common = i, n
		}
	}
	if of < 0 {
		return "it consists of token ids, and the others of messages"
	}
	return fmt.Sprintf("of the %d token ids of the prompt the first %d are those of %s, which has more or others",
		len(prompt), common, historyName(of))
}
