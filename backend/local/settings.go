package local

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/engine"
	"github.com/goart-dev/art/model"
)

// checkSettings refuses tokens that the model does not have.
func (s *base) checkSettings(op string, settings art.Sampling) error {
	limit := s.config.VocabSize
	bias := slices.Sorted(maps.Keys(settings.LogitBias))
	for _, id := range slices.Concat(settings.StopTokenIDs, settings.AllowedTokenIDs, bias) {
		if id < 0 || int(id) >= limit {
			err := fmt.Errorf("%w: token %d of StopTokenIDs, AllowedTokenIDs or LogitBias is not in the vocabulary of %d",
				art.ErrInvalid, id, limit)
			return &art.Error{Op: op, Err: err, Hint: "send ids of this model's own tokenizer"}
		}
	}
	return nil
}

// request returns the engine's form of the request, without stop strings.
func (c *completion) request() engine.Request {
	s := c.settings
	return engine.Request{
		Prompt: c.prompt, End: slices.Concat(c.end, s.StopTokenIDs), MaxTokens: s.MaxTokens, MinTokens: s.MinTokens,
		Top: s.TopLogprobs, Seed: s.Seed, Adapter: c.now.adapter, Mask: c.mask,
		Sampling: model.Sampling{
			Temperature: s.Temperature, TopP: s.TopP, TopK: s.TopK, MinP: s.MinP,
			Penalties: model.Penalties{
				Bias: s.LogitBias, Repetition: s.RepetitionPenalty, Presence: s.PresencePenalty, Frequency: s.FrequencyPenalty,
			},
		},
	}
}

// addPromptLogprobs scores the prompt if the request asks for its logprobs.
func (c *completion) addPromptLogprobs(ctx context.Context, r *art.ChatResponse) error {
	if c.settings.PromptLogprobs == nil {
		return nil
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	top, err := engine.ScoreTop(engine.Scored{
		Device: c.backend.device, Config: c.base.config, Params: c.base.params, Adapter: c.now.adapter, IDs: c.prompt,
	}, *c.settings.PromptLogprobs)
	if err != nil {
		return &art.Error{Op: "prompt logprobs", Err: deviceError(err)}
	}
	r.PromptLogprobs = append([][]art.TokenLogprob{nil}, candidates(top)...)
	return nil
}

// candidates converts lists of tokens; nil of nil.
func candidates(list [][]engine.Candidate) [][]art.TokenLogprob {
	if list == nil {
		return nil
	}
	out := make([][]art.TokenLogprob, len(list))
	for i, at := range list {
		for _, c := range at {
			out[i] = append(out[i], art.TokenLogprob(c))
		}
	}
	return out
}
