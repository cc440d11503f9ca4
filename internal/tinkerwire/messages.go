package tinkerwire

import "time"

// Request is the union of the small JSON requests: each route uses some of the fields.
type Request struct {
	SDKVersion   string         `json:"sdk_version,omitempty"`
	Type         string         `json:"type,omitempty"`
	SessionID    string         `json:"session_id,omitempty"`
	Tags         []string       `json:"tags,omitzero"` // an empty list is written
	UserMetadata map[string]any `json:"user_metadata,omitempty"`
	ProjectID    string         `json:"project_id,omitempty"`
	DisplayName  string         `json:"display_name,omitempty"`

	ModelID    string      `json:"model_id,omitempty"`
	ModelSeqID *int        `json:"model_seq_id,omitempty"`
	BaseModel  string      `json:"base_model,omitempty"`
	LoRA       *LoRAConfig `json:"lora_config,omitempty"`
	Optimizer  *Optimizer  `json:"optimizer_config,omitempty"`

	SeqID           int      `json:"seq_id,omitempty"`
	Adam            *Adam    `json:"adam_params,omitempty"`
	OptimizerParams *Adam    `json:"optimizer_params,omitempty"`
	Path            string   `json:"path,omitempty"`
	LoadOptimizer   bool     `json:"optimizer,omitempty"`
	TTLSeconds      *float64 `json:"ttl_seconds,omitempty"`
	Overwrite       bool     `json:"overwrite,omitempty"`
	Kind            string   `json:"kind,omitempty"`
	Recipients      []string `json:"age_encryption_recipients,omitempty"`

	SamplingSessionSeqID *int   `json:"sampling_session_seq_id,omitempty"`
	ModelPath            string `json:"model_path,omitempty"`

	// Extensions are those of ours that a client knows; Tinker has none. See [PolicyWeights] and [NoTarget].
	Extensions []string `json:"extensions,omitempty"`

	RequestID  string `json:"request_id,omitempty"`
	TinkerPath string `json:"tinker_path,omitempty"`
}

// PolicyWeights is an extension: policy losses take the input "weights" too. A server that has it says so in the answer
// to client/config, to clients that ask.
const PolicyWeights = "policy_weights"

// NoTarget is an extension, said in the same way: a target of -1 is none, so that nothing is computed for its position
// and its logprob is 0. Without it such positions have a target, and nothing that weighs it.
const NoTarget = "no_target"

// LoRAConfig describes an adapter. Parts that are not named are trained.
type LoRAConfig struct {
	Rank         int    `json:"rank"`
	Seed         *int64 `json:"seed,omitempty"`
	TrainUnembed *bool  `json:"train_unembed,omitempty"`
	TrainMLP     *bool  `json:"train_mlp,omitempty"`
	TrainAttn    *bool  `json:"train_attn,omitempty"`
}

// Optimizer names a family of optimizers.
type Optimizer struct {
	Type string `json:"type"`
}

// AdamW is the type of the only optimizer that every service has.
const AdamW = "adamw"

// Adam are the parameters of one step. What is missing has the default in its comment.
type Adam struct {
	Type         string   `json:"type,omitempty"`
	LearningRate *float64 `json:"learning_rate,omitempty"`  // 1e-4
	Beta1        *float64 `json:"beta1,omitempty"`          // 0.9
	Beta2        *float64 `json:"beta2,omitempty"`          // 0.95
	Eps          *float64 `json:"eps,omitempty"`            // 1e-12
	WeightDecay  *float64 `json:"weight_decay,omitempty"`   // 0
	GradClipNorm *float64 `json:"grad_clip_norm,omitempty"` // 0, off
}

// Result is the union of the small JSON answers and results.
type Result struct {
	RequestID         string             `json:"request_id,omitempty"`
	ModelID           string             `json:"model_id,omitempty"`
	SessionID         string             `json:"session_id,omitempty"`
	SamplingSessionID string             `json:"sampling_session_id,omitempty"`
	SampleSequenceIDs []string           `json:"sample_sequence_ids,omitempty"`
	Path              string             `json:"path,omitempty"`
	SizeBytes         int64              `json:"size_bytes,omitempty"`
	Metrics           map[string]float64 `json:"metrics,omitempty"`
	Type              string             `json:"type,omitempty"`
	QueueState        string             `json:"queue_state,omitempty"`
	Status            string             `json:"status,omitempty"`
	Error             string             `json:"error,omitempty"`
	Category          string             `json:"category,omitempty"`
}

// The categories of errors of futures, and the state of one that waits.
const (
	CategoryUser   = "user"
	CategoryServer = "server"
	TryAgain       = "try_again"
)

// ModelInfo answers get_info.
type ModelInfo struct {
	ModelID   string     `json:"model_id"`
	Data      ModelData  `json:"model_data"`
	Optimizer *Optimizer `json:"optimizer_config,omitempty"`
	IsLoRA    bool       `json:"is_lora"`
	Rank      int        `json:"lora_rank,omitempty"`
	ModelName string     `json:"model_name,omitempty"`
	Type      string     `json:"type"`
}

// ModelData describes the base of a model.
type ModelData struct {
	ModelName   string `json:"model_name"`
	TokenizerID string `json:"tokenizer_id,omitempty"`
}

// Capabilities answers get_server_capabilities.
type Capabilities struct {
	Models []SupportedModel `json:"supported_models"`
}

// SupportedModel is a base that can be trained and sampled.
type SupportedModel struct {
	Name       string `json:"model_name"`
	MaxContext int    `json:"max_context_length,omitempty"`
	Trainable  *bool  `json:"trainable,omitempty"`
	Sampleable *bool  `json:"sampleable,omitempty"`
}

// SamplerInfo answers samplers/ID.
type SamplerInfo struct {
	ID        string `json:"sampler_id"`
	BaseModel string `json:"base_model"`
	ModelPath string `json:"model_path,omitempty"`
}

// WeightsInfo answers weights_info.
type WeightsInfo struct {
	BaseModel    string     `json:"base_model"`
	IsLoRA       bool       `json:"is_lora"`
	Rank         int        `json:"lora_rank,omitempty"`
	TrainUnembed *bool      `json:"train_unembed,omitempty"`
	TrainMLP     *bool      `json:"train_mlp,omitempty"`
	TrainAttn    *bool      `json:"train_attn,omitempty"`
	Optimizer    *Optimizer `json:"optimizer_config,omitempty"`
}

// The types of a [Checkpoint], and the second parts of their paths.
const (
	Training = "training"
	Sampler  = "sampler"
	External = "external"

	WeightsKind  = "weights"
	SamplerKind  = "sampler_weights"
	ExternalKind = "external_weights"
)

// Checkpoint describes stored weights.
type Checkpoint struct {
	ID           string         `json:"checkpoint_id"` // weights/NAME
	Type         string         `json:"checkpoint_type"`
	Time         time.Time      `json:"time"`
	Path         string         `json:"tinker_path"`
	SizeBytes    int64          `json:"size_bytes,omitempty"`
	Public       bool           `json:"public"`
	UserMetadata map[string]any `json:"user_metadata,omitempty"`
	ExpiresAt    *time.Time     `json:"expires_at,omitempty"`
}

// TrainingRun describes a run.
type TrainingRun struct {
	ID           string         `json:"training_run_id"`
	BaseModel    string         `json:"base_model"`
	Owner        string         `json:"model_owner"`
	IsLoRA       bool           `json:"is_lora"`
	Corrupted    bool           `json:"corrupted"`
	Rank         int            `json:"lora_rank,omitempty"`
	LastRequest  time.Time      `json:"last_request_time"`
	Last         *Checkpoint    `json:"last_checkpoint,omitempty"`
	LastSampler  *Checkpoint    `json:"last_sampler_checkpoint,omitempty"`
	UserMetadata map[string]any `json:"user_metadata,omitempty"`
}

// Cursor says which part of a list an answer has.
type Cursor struct {
	Offset int `json:"offset"`
	Limit  int `json:"limit"`
	Total  int `json:"total_count"`
}
