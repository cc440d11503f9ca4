package wandbwire

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/wire"
)

// Completion is the answer to a request for a reply.
type Completion struct {
	ID             string      `json:"id"`
	Choices        []choice    `json:"choices"`
	PromptTokenIDs []int32     `json:"prompt_token_ids"`
	Usage          *wire.Usage `json:"usage"`
}

// Response converts an answer. step is that of the model that was asked. The message has a sample when the answer has
// all tokens; lengths that differ, logprobs that are not and probabilities above 1 are errors.
func (c *Completion) Response(settings art.Sampling, step int) (*art.ChatResponse, error) {
	if len(c.Choices) == 0 {
		return nil, errors.New("the answer has no choices")
	}
	reply := &c.Choices[0]
	var m art.Message
	if err := json.Unmarshal(reply.Message, &m); err != nil {
		return nil, fmt.Errorf("the message cannot be read: %w", err)
	}
	out := &art.ChatResponse{ID: c.ID, Finish: reply.FinishReason}
	if c.Usage != nil {
		out.Usage = art.Usage{
			PromptTokens: c.Usage.PromptTokens, CachedTokens: c.Usage.PromptTokensDetails.CachedTokens,
			CompletionTokens: c.Usage.CompletionTokens,
		}
	}
	var err error
	m.Sample, err = c.sample(settings, step)
	out.Message = m
	return out, err
}

// sample returns the tokens of a reply, nil when the answer does not have them all.
func (c *Completion) sample(settings art.Sampling, step int) (s *art.Sample, err error) {
	reply := &c.Choices[0]
	switch {
	case reply.Sample != nil:
		if s, err = wire.DecodeSample(reply.Sample); err != nil {
			return nil, err
		}
	case len(c.PromptTokenIDs) == 0 || len(reply.TokenIDs) == 0 || reply.Logprobs == nil || settings.Reshapes():
		return nil, nil // after a reshaped distribution the logprobs of other services are not those of the policy
	default:
		s = &art.Sample{
			PromptIDs: c.PromptTokenIDs, IDs: reply.TokenIDs, Settings: settings, Step: step, Finish: reply.FinishReason,
		}
		for _, t := range reply.Logprobs.Content {
			s.Logprobs = append(s.Logprobs, t.Logprob)
		}
	}
	if len(s.Logprobs) != len(s.IDs) {
		return nil, fmt.Errorf("the reply has %d tokens and %d logprobs", len(s.IDs), len(s.Logprobs))
	}
	for i, x := range s.Logprobs {
		if math.IsNaN(float64(x)) || x > 1e-3 {
			return nil, fmt.Errorf("the logprob of token %d is %v", i, x)
		}
	}
	return s, nil
}
