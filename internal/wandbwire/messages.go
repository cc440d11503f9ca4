// Package wandbwire has the bodies of W&B Training's routes, as openpipe-art's serverless client sends and reads them.
package wandbwire

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/wire"
)

// CreateModel is the body of POST preview/models.
type CreateModel struct {
	Entity         *string `json:"entity"`
	Project        *string `json:"project"`
	Name           *string `json:"name"`
	BaseModel      string  `json:"base_model"`
	ReturnExisting bool    `json:"return_existing"`
}

// Model is a registered model.
type Model struct {
	ID        string  `json:"id"`
	Entity    string  `json:"entity"`
	Project   string  `json:"project"`
	Name      string  `json:"name"`
	BaseModel string  `json:"base_model"`
	RunID     *string `json:"run_id"`
}

// Page is a part of a list. The next part is asked for with the id of the last element.
type Page[T any] struct {
	Data    []T  `json:"data"`
	HasMore bool `json:"has_more"`
}

// Checkpoint is a stored step.
type Checkpoint struct {
	ID      string             `json:"id"`
	Step    int                `json:"step"`
	Metrics map[string]float64 `json:"metrics"`
}

// DeleteCheckpoints is the body of DELETE preview/models/ID/checkpoints.
type DeleteCheckpoints struct {
	Steps []int `json:"steps"`
}

// DeletedCheckpoints is its answer.
type DeletedCheckpoints struct {
	Deleted  int   `json:"deleted_count"`
	NotFound []int `json:"not_found_steps"`
}

// LogGroups is the body of POST preview/models/ID/log.
type LogGroups struct {
	ModelID string  `json:"model_id"`
	Groups  []Group `json:"trajectory_groups"`
	Split   string  `json:"split"`
}

// CreateJob is the body of POST preview/training-jobs.
type CreateJob struct {
	ModelID string   `json:"model_id"`
	Groups  []Group  `json:"trajectory_groups"`
	Config  *RLTrain `json:"experimental_config"`
}

// CreateSFTJob is the body of POST preview/sft-training-jobs.
type CreateSFTJob struct {
	ModelID string    `json:"model_id"`
	DataURL string    `json:"training_data_url"`
	Config  *SFTTrain `json:"config"`
}

// SFTTrain configures supervised training.
type SFTTrain struct {
	BatchSize      *int            `json:"batch_size,omitempty"`
	LearningRate   json.RawMessage `json:"learning_rate,omitempty"` // a number, or one for each batch
	AssistantTurns string          `json:"assistant_turns,omitempty"`
	MetricLogging  *struct {
		Enabled bool `json:"enabled"`
	} `json:"metric_logging,omitempty"`
}

// Job is a training that runs, or has run.
type Job struct {
	ID string `json:"id"`
}

// The types of events, in their order.
const (
	EventStarted = "training_started" // with "num_sequences": the number of gradient steps
	EventStep    = "gradient_step"    // with metrics
	EventEnded   = "training_ended"
	EventFailed  = "training_failed" // with "error_message"
)

// Event is one thing that a training says of itself.
type Event struct {
	ID   string         `json:"id"`
	Type string         `json:"type"`
	Data map[string]any `json:"data"`
}

// ArtifactScheme begins the names of artifacts: wandb-artifact:///ENTITY/PROJECT/NAME[:ALIAS].
const ArtifactScheme = "wandb-artifact:///"

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
