// Package wandbwire has the bodies of W&B Training's routes, as openpipe-art's serverless client sends and reads them.
package wandbwire

import "encoding/json"

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
