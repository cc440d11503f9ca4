package art

import (
	"context"
	"maps"
	"net/http"
	"sync/atomic"
)

// LoRA says how a model is adapted (Hu et al. 2021): W x + (Alpha/Rank) B A x.
type LoRA struct {
	// Rank defaults to 8.
	Rank int `json:"rank"`
	// Alpha defaults to 2 x Rank.
	Alpha float64 `json:"alpha"`
	// Targets are the names of linear layers. Default: q_proj, k_proj, v_proj, o_proj, gate_proj, up_proj, down_proj.
	Targets []string `json:"targets"`
}

// ModelOptions describes a model. The zero value is a trainable LoRA adapter on the built-in tiny model.
type ModelOptions struct {
	// Project groups runs. Default "default".
	Project string
	// Base names the base model, in the words of the backend: for the local one "tiny" (the default) or a folder.
	Base string
	// LoRA describes the adapter. A run that exists must have been made with the same one.
	LoRA LoRA
	// Frozen makes a prompted baseline: the base model as it is, for the same rollout code. Its replies carry no Sample
	// and it cannot be trained.
	Frozen bool
	// Chat are the defaults of [Model.Chat].
	Chat ChatOptions
	// Seed of the run: of the adapter's first weights and of every sampled token. Default 0.
	Seed uint64
}

// ChatOptions shape one completion. Nil fields fall back to the model's defaults, and those to temperature 1,
// top-p 1, top-k 0 (off).
type ChatOptions struct {
	Temperature *float64
	TopP        *float64
	TopK        *int
	// MaxTokens bounds the reply. nil or 0 leaves it the rest of the context.
	MaxTokens *int
	// Stop strings end the reply and are not part of it.
	Stop []string
	// Seed overrides the seed that is derived from the run, the step and the context.
	Seed *uint64
}

// Model is a name under which an adapter learns. It is safe for concurrent use once it is registered.
type Model struct {
	name    string
	opts    ModelOptions
	backend Backend
	step    atomic.Int64
	calls   atomic.Uint64 // of calls outside of a gather
}

// NewModel describes a model; opts may be nil. Nothing happens until [Model.Register].
func NewModel(name string, opts *ModelOptions) *Model {
	m := &Model{name: name}
	if opts != nil {
		m.opts = *opts
	}
	m.opts.setDefaults()
	return m
}
