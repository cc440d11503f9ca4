package art

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"unicode"
)

// LoRA says how a model is adapted (Hu et al. 2021): W x + (Alpha/Rank) B A x.
type LoRA struct {
	// Rank defaults to 8.
	Rank int `json:"rank"`
	// Alpha defaults to 2 x Rank.
	Alpha float64 `json:"alpha"`
	// Targets are the names of linear layers. Default: those of q_proj, k_proj, v_proj, o_proj, gate_proj, up_proj and
	// down_proj that the base model has, or layers that hold several of them, such as qkv_proj. It stays empty in
	// [Model.Options]; the backend fills it in.
	// embed_tokens and lm_head have adapters too where they are named.
	Targets []string `json:"targets"`
	// TargetPattern chooses the layers in place of Targets: a regular expression in Python's syntax for their full names,
	// such as `model\.layers\.[0-9]\..*_proj`, as PEFT's target_modules where that is one string.
	TargetPattern string `json:"target_pattern,omitempty"`
	// RankStabilized divides Alpha by the root of the rank, so that adapters of large rank learn as fast (rsLoRA).
	RankStabilized bool `json:"rank_stabilized,omitempty"`
	// DoRA trains the length of the weights of each output of a layer beside A and B, which change their direction (Liu et
	// al. 2024): closer to a training of all weights at small ranks, and slower. A step takes the norms of all adapted
	// weights anew. PEFT's use_dora.
	DoRA bool `json:"dora,omitempty"`
	// Ranks and Alphas are those of single layers, by patterns for their names, as PEFT's rank_pattern and alpha_pattern:
	// {"down_proj": 16}, or a regular expression for the full name. Default: Rank and Alpha for all.
	Ranks  map[string]int     `json:"ranks,omitempty"`
	Alphas map[string]float64 `json:"alphas,omitempty"`
}

// ModelOptions describes a model. The zero value is a trainable LoRA adapter on the default base model of the backend:
// the built-in tiny model with backend/local.
type ModelOptions struct {
	// Project groups runs. Default "default".
	Project string
	// Base names the base model; the backend defines the names, and the default, which [Model.Register] fills in.
	// backend/local takes "tiny" (its default), a folder, a GGUF file, or ORG/NAME[@revision] of a model on the hub; an
	// existing path takes precedence over the hub. Backends of hosted models take the API's name of the model, and
	// without it the name of the [Model]. Backends that train on a service need one.
	Base string
	// LoRA describes the adapter. An existing run must have been made with the same one.
	LoRA LoRA
	// Adapter is the folder of a LoRA adapter that a new run begins with, in the format of Hugging Face's PEFT: one that
	// PEFT wrote, or a checkpoint of another run on the same base. It defines rank, alpha and targets, so LoRA must be
	// empty.
	Adapter string
	// Fork is a step of another run that a new run begins with, weights and optimizer: [PROJECT/]NAME[@STEP|@best], where
	// "best" is the step with the highest val/reward, and the newest is the default; or what [Model.SaveWeights] has
	// stored, by its path. The new run begins at step 0. Like Adapter it says what LoRA would, which must be left empty;
	// Base is that of the other run.
	Fork string
	// Full trains all weights of the base model in place of an adapter, where memory allows; LoRA, Adapter and Fork are
	// then empty. Each step is a whole model, with its optimizer: 12 bytes for each parameter on disk, see Retention, and
	// about 56 in memory. A run that is a fork of such a run is one too.
	Full bool
	// Frozen makes a prompted baseline: the base model as it is, for the same rollout code. Its replies carry no Sample
	// and it cannot be trained. LoRA is not looked at, so that the options can be those of the model it is compared with.
	Frozen bool
	// Chat are the defaults of [Model.Chat].
	Chat ChatOptions
	// ToolFormat renders tools for a chat template that does not support them, which is an error otherwise: into the
	// system message, with calls and their results in the texts of messages. Replies are parsed in the same format. It is
	// "hermes" (a JSON object between <tool_call> tags), "llama3_json" (a JSON object that is the reply), "pythonic" (a
	// Python list of calls) or "qwen3_coder" (XML). Default: the format of the template. A resumed run may change it.
	ToolFormat string
	// Retention deletes old checkpoints whenever a step is committed. nil keeps all: docs/runs.md says why. A resumed run
	// may change it. A backend that is no driver.CheckpointKeeper refuses it.
	Retention *Retention
	// CollapseAfter makes [Model.Train] return an [ErrCollapsed], and no step, when it is the n-th in a row, in this
	// process, in which no group has differences among its rewards: nothing is learned any more. Default 0: never.
	CollapseAfter int
	// Events are called for trainings, steps and what is logged. May be nil.
	Events *Events
	// Logger gets a warning of a step that teaches nothing, since all of its groups are skipped: of the first, and when
	// they persist, with the reason. What a backend logs is an option of the backend. nil is [slog.Default].
	Logger *slog.Logger
	// Seed of the run: of the initial adapter and of every sampled token. Default 0.
	Seed uint64
}

// ChatOptions shape one completion. Nil fields fall back to the model's defaults, and those to temperature 1,
// top-p 1, and everything else off. A backend refuses those that it does not support.
type ChatOptions struct {
	Temperature *float64
	TopP        *float64
	TopK        *int
	// MaxTokens bounds the reply. nil or 0 leaves it the rest of the context.
	MaxTokens *int
	// Stop strings end the reply and are not part of it.
	Stop []string
	// StopTokenIDs end the reply like its end token. The one that does is among the sampled tokens, and not in the text.
	StopTokenIDs []int32
	// MinTokens is the number of tokens before which the reply does not end: end tokens and StopTokenIDs are not sampled,
	// and stop strings not looked for. nil is 0.
	MinTokens *int
	// IgnoreEOS lets the reply go on after its end token, up to MaxTokens, StopTokenIDs and stop strings: for measurements
	// of speed, mostly.
	IgnoreEOS *bool
	// AllowedTokenIDs are the only tokens that the reply may have; its end tokens only if they are among them. nil is all
	// tokens.
	AllowedTokenIDs []int32
	// BadWords are texts that the reply must not have. As in vLLM's API, the last token of one is not sampled where the
	// tokens before it are there: those of the word as it is, and behind a space. A word that is spelled with other tokens
	// is not recognised.
	BadWords []string
	// MinP drops tokens that are less likely than MinP times the likeliest one, after temperature (Nguyen et al. 2024).
	// nil and 0 are off.
	MinP *float64
	// RepetitionPenalty divides the positive logits of tokens that prompt or reply have, and multiplies the negative ones
	// (Keskar et al. 2019). nil and 1 are off.
	RepetitionPenalty *float64
	// PresencePenalty is subtracted from the logits of tokens that the reply has, FrequencyPenalty times the number of
	// times that it has them: -2 to 2, as in OpenAI's API. nil and 0 are off.
	PresencePenalty, FrequencyPenalty *float64
	// LogitBias is added to the logits of tokens, by id: -100 to 100, as in OpenAI's API, before the penalties.
	LogitBias map[int32]float64
	// TopLogprobs is how many of the likeliest tokens the response lists at each position, at most 20. nil is 0.
	TopLogprobs *int
	// PromptLogprobs makes the response list the logprobs of the prompt's tokens, and so many of the likeliest ones at
	// each position, at most 20. They take a pass over the whole prompt. nil is off.
	PromptLogprobs *int
	// ResponseFormat restricts the text of the reply, such as to JSON by a schema. nil is any text. Tokens that it leaves
	// no choice about are marked in [Sample].Forced.
	ResponseFormat *ResponseFormat
	// ToolChoice forces calls of tools, or forbids them. nil leaves it to the model.
	ToolChoice *ToolChoice
	// Seed overrides the seed that is derived from the run, the step and the context.
	Seed *uint64
	// TemplateArgs are further variables of the chat template, a JSON object: {"enable_thinking": false}. Those of the
	// call override those of the model, one by one. A template ignores unknown ones.
	TemplateArgs json.RawMessage
}

// Model is a named adapter, or a frozen base model, on a backend. It is safe for concurrent use once it is registered.
type Model struct {
	name    string
	opts    ModelOptions
	backend Backend
	step    atomic.Int64
	calls   atomic.Uint64 // number of calls outside of a gather
	flat    collapse      // of rewards
	idle    idle          // of steps
	// snapshot says that it was made by Model.Snapshot.
	snapshot bool
}

// NewModel describes a model; opts may be nil. Nothing happens until [Model.Register], which also validates the
// description.
func NewModel(name string, opts *ModelOptions) *Model {
	m := &Model{name: name}
	if opts != nil {
		m.opts = opts.clone()
	}
	o := &m.opts
	o.Project = cmp.Or(o.Project, "default")
	if l := &o.LoRA; o.Adapter == "" && o.Fork == "" && !o.Full { // the backend knows the layers, Targets
		l.Rank = cmp.Or(l.Rank, 8)
		l.Alpha = cmp.Or(l.Alpha, 2*float64(l.Rank))
	}
	return m
}

// Name returns the name of the model.
func (m *Model) Name() string { return m.name }

// Options returns a copy of the model's options, with defaults filled in.
func (m *Model) Options() ModelOptions { return m.opts.clone() }

// Backend returns the backend that the model is registered with, nil before.
func (m *Model) Backend() Backend { return m.backend }

// Step returns the newest policy step that this process knows of: 0 for a new run, the stored one after
// [Model.Register], and one more after each training. It is the step of the policy that answers the next request.
func (m *Model) Step() int { return int(m.step.Load()) }

// Register validates the description of m and connects it to b, which prepares the base model and resumes the run if
// there is one. A model is registered once.
//
// Name and project become names of folders and parts of "name@step": they are not empty, not "." or "..", contain no
// separator, "@" or control character, and no space at either end.
func (m *Model) Register(ctx context.Context, b Backend) error {
	if m.backend != nil {
		return &Error{"register", fmt.Errorf("%w: model %q is already registered", ErrInvalid, m.name), "make another Model"}
	}
	var p problems
	p.check(b != nil, "backend is nil")
	p.folderName("name", m.name)
	m.opts.validate(&p)
	_, keeps := b.(checkpointKeeper)
	p.check(b == nil || keeps || m.opts.Retention == nil, "retention is set, and %T keeps no checkpoints", b)
	if err := p.err("register", "correct NewModel's name and options"); err != nil {
		return err
	}
	given := m.opts.Base
	if c, ok := b.(baseChooser); ok && given == "" {
		m.opts.Base = c.DefaultBase(m)
	}
	step, err := b.Register(ctx, m)
	if err != nil {
		m.opts.Base = given
		return err
	}
	m.backend = b
	m.reached(step)
	tell(m.events().Register, Registration{m, step})
	return nil
}

// reached raises the known step. It never decreases: overlapping trainings may return in any order.
func (m *Model) reached(step int) {
	for {
		old := m.step.Load()
		if int64(step) <= old || m.step.CompareAndSwap(old, int64(step)) {
			return
		}
	}
}

func (m *Model) registered(op string) (Backend, error) {
	if m.backend == nil {
		return nil, &Error{op, fmt.Errorf("%w: %q", ErrNotRegistered, m.name), "call Model.Register first"}
	}
	return m.backend, nil
}

func (o ModelOptions) clone() ModelOptions {
	o.LoRA.Targets = slices.Clone(o.LoRA.Targets)
	o.LoRA.Ranks, o.LoRA.Alphas = maps.Clone(o.LoRA.Ranks), maps.Clone(o.LoRA.Alphas)
	o.Chat = o.Chat.clone()
	o.Retention = clonePtr(o.Retention)
	return o
}

func (o *ModelOptions) validate(p *problems) {
	p.folderName("project", o.Project)
	o.validateAdapter(p)
	formats := []string{"hermes", "llama3_json", "pythonic", "qwen3_coder"}
	p.check(o.ToolFormat == "" || slices.Contains(formats, o.ToolFormat),
		"tool format %q is not known; there are %s", o.ToolFormat, strings.Join(formats, ", "))
	o.Retention.validate(p)
	p.check(o.CollapseAfter >= 0, "CollapseAfter is %d, want >= 0", o.CollapseAfter)
	if err := o.Chat.settings(nil).Validate(); err != nil {
		p.addf("chat options: %v", err)
	}
	if _, err := o.Chat.templateArgs(nil); err != nil {
		p.addf("chat options: %v", err)
	}
}

func (o *ModelOptions) validateAdapter(p *problems) {
	if o.Adapter == "" && o.Fork == "" && !o.Full {
		l := &o.LoRA
		p.check(l.Rank > 0, "LoRA rank is %d, want > 0", l.Rank)
		p.check(finite(l.Alpha) && l.Alpha > 0, "LoRA alpha is %v, want a finite number > 0", l.Alpha)
		for i, target := range l.Targets {
			p.check(target != "", "LoRA target %d is empty", i)
			p.check(!slices.Contains(l.Targets[:i], target), "LoRA target %q is named twice", target)
		}
		p.check(l.TargetPattern == "" || len(l.Targets) == 0, "LoRA has both Targets and a TargetPattern")
		return
	}
	if o.Full {
		p.check(o.Adapter == "" && o.Fork == "", "Full is set, and Adapter or Fork: they say what is trained")
		p.check(o.LoRA.empty(), "Full and LoRA are both set: an adapter is trained, or all weights")
		p.check(!o.Frozen, "Full and Frozen are both set: a frozen model is not trained")
		return
	}
	start := "Adapter"
	if o.Fork != "" {
		start = "Fork"
	}
	p.check(o.Adapter == "" || o.Fork == "", "Adapter and Fork are both set")
	p.check(o.LoRA.empty(), "LoRA and %s are both set: leave LoRA empty, the adapter defines it", start)
	p.check(!o.Frozen, "Frozen and %s are both set: a frozen model has no adapter", start)
}

func (l *LoRA) empty() bool {
	return l.Rank == 0 && l.Alpha == 0 && l.TargetPattern == "" && !l.RankStabilized && !l.DoRA &&
		len(l.Targets)+len(l.Ranks)+len(l.Alphas) == 0
}

// folderName checks that s can be the name of a folder on every system, and part of "name@step".
func (p *problems) folderName(what, s string) {
	p.check(s != "", "%s is empty", what)
	p.check(s != "." && s != "..", "%s is %q, which names another folder", what, s)
	p.check(!strings.ContainsAny(s, `/\@`), `%s %q contains one of / \ @`, what, s)
	p.check(!strings.ContainsFunc(s, unicode.IsControl), "%s %q contains a control character", what, s)
	p.check(strings.TrimSpace(s) == s, "%s %q begins or ends with a space", what, s)
}
