package art

import (
	"context"
	"encoding/json"
	"io"
	"time"
)

// Backend runs and trains models. What only some backends can do is an optional interface of package backend/driver:
//
//   - models: BaseChooser;
//   - training: SFTTrainer, DPOTrainer, LossProvider, TrainChecker, GroupChecker, RateChooser; for loops of one's own
//     Trainer and WeightsKeeper of backend/loop;
//   - what is stored: Logger, CheckpointKeeper, CheckpointRestorer, StateKeeper;
//   - requests: Streamer, Sampler, Tokenizer, HTTPServer, and Pinner and StepPinner for older steps.
//
// A Backend is safe for concurrent use. Requests during Train are answered by the previous step.
type Backend interface {
	// Register prepares m: its base model, its run, its newest checkpoint. It returns the step that m is at,
	// 0 for a new run. Registering the same model again is an error.
	Register(ctx context.Context, m *Model) (step int, err error)
	// Complete answers one chat request with the newest step of m. Every field of req.Settings is set.
	Complete(ctx context.Context, m *Model, req *ChatRequest) (*ChatResponse, error)
	// Train makes the next step of m, k+1 after k, out of groups, and commits it. An option that the backend does not
	// support is an error. cfg is valid and has its defaults filled in.
	//
	// Groups and trajectories that cannot be trained on are listed in the result; the step is made even when nothing else
	// is left. Metrics has the number of groups that were trained on under "data/groups_trainable". An empty list of
	// groups is an [ErrNoGroups].
	Train(ctx context.Context, m *Model, groups []*TrajectoryGroup, cfg *TrainConfig) (*TrainResult, error)
	io.Closer
}

// ChatRequest is one call of the model.
type ChatRequest struct {
	Messages []Message
	Tools    []Tool
	Settings Sampling
	// TemplateArgs are further variables of the chat template, a JSON object; nil when there are none.
	TemplateArgs json.RawMessage
}

// ChatResponse is its answer.
type ChatResponse struct {
	ID    string
	Model string // name@step
	// Message is the reply. Its Sample is set when the model is trainable.
	Message Message
	// Malformed says what is wrong with tool calls in the reply that cannot be parsed; nil when there are none. Their text
	// is part of the message's content.
	Malformed error
	Finish    string
	// Stopped is the stop string that ended the reply, "" if none did.
	Stopped string
	// TopLogprobs are the likeliest tokens at each position of the reply, if [ChatOptions].TopLogprobs asks for them.
	TopLogprobs [][]TokenLogprob
	// PromptLogprobs are, for each token of the prompt, that token and then the likeliest others, if
	// [ChatOptions].PromptLogprobs asks for them. The first token has none: it is given nothing.
	PromptLogprobs [][]TokenLogprob
	Usage          Usage
}

// Usage counts tokens.
type Usage struct {
	PromptTokens     int `json:"prompt_tokens"`
	CachedTokens     int `json:"-"` // prompt tokens that were not computed again
	CompletionTokens int `json:"completion_tokens"`
}

// HistoryRow is one logged set of metrics. Keys of Metrics carry the split as prefix: "val/reward".
type HistoryRow struct {
	Split   string
	Step    int
	Metrics map[string]float64
}

// Logged returns a metric of a step, from the first row that has it. ok is false when there is none.
func Logged(rows []HistoryRow, key string, step int) (value float64, ok bool) {
	for _, row := range rows {
		if value, ok = row.Metrics[key]; ok && row.Step == step {
			return value, true
		}
	}
	return 0, false
}

// HandlerOptions say which clients the handler of an driver.HTTPServer answers, and how much it accepts. The zero
// value and a nil *HandlerOptions are the defaults: programs that reach it by a name of this machine, and no pages of
// other web sites.
//
// Without Keys every client that can connect is answered: listen on a loopback address, or set Keys. A handler does not
// speak TLS: over a network, put it behind a server that does.
type HandlerOptions struct {
	// Hosts are the names under which the server is reached, as in the Host header: "gpu-box", "10.0.0.7", or with a port,
	// "gpu-box:8080", which allows that port only. Always allowed are localhost and names that end in .localhost, loopback
	// addresses, and the address at which the connection arrived. Other hosts are refused (status 403), against DNS
	// rebinding: a web site can point its own name to this machine, and pass for the same origin in a browser. "*" allows
	// all and needs Keys.
	Hosts []string
	// Origins are the web sites whose pages may use the server from a browser: "https://app.example.com". They get the
	// headers of CORS. Pages that come from the server's own host and port are always allowed, all others are refused
	// (status 403). "*" allows all and needs Keys.
	Origins []string
	// Keys are the accepted secrets. A client sends one of them as "Authorization: Bearer KEY" or "X-Api-Key: KEY"; other
	// requests are refused (status 401), but for those of probes. Default: no key is needed.
	Keys []string
	// MaxBody bounds the body of a request in bytes. Default 32 MiB.
	MaxBody int64
	// MaxBodies bounds the bodies of all requests that are being read or answered, in bytes that have arrived; the first
	// 64 KiB of each are not counted. A request beyond it is refused (status 503, with Retry-After). Default 256 MiB, or
	// MaxBody when that is more.
	MaxBodies int64
	// MaxRequests bounds the requests that are being answered. A request beyond it is refused (status 503, with
	// Retry-After), but for probes. Default 1024.
	MaxRequests int
	// MaxChoices bounds the replies that one request may ask for, of all its prompts (status 400). Default 128, as in
	// OpenAI's API.
	MaxChoices int
	// MaxTokens bounds the tokens of a reply. A request for more is refused (status 400); one that leaves the length open
	// gets this much. Default: what the context has left.
	MaxTokens int
	// BodyTimeout is how long a body may take to arrive (status 408). A server with a ReadTimeout of its own has that
	// instead. It needs a ResponseWriter that [net/http.ResponseController] knows: middleware that wraps one must have the
	// method Unwrap. Default 1 minute.
	BodyTimeout time.Duration
}

// GroupSource is where a training loop takes complete groups from: rollouts that other processes run against a server,
// for example. It is safe for concurrent use; each group is returned once.
type GroupSource interface {
	// Next waits until a group is complete, removes it from the source and returns it. It returns [io.EOF] when there is
	// none and will be none, and an error that wraps ctx's when ctx ends first.
	Next(ctx context.Context) (*TrajectoryGroup, error)
}

// Pin is a step of a model that goes on answering when the next ones are made: an evaluation beside training measures
// one policy, and self-play has its past as the opponent. The step stays in memory as long as the Pin.
type Pin struct {
	model  *Model
	step   int
	pinned func(context.Context) context.Context
}

type pinKey struct{ m *Model }

// Pin returns a pin of the newest step.
//
// It returns [ErrNotRegistered], and [ErrUnsupported] when the backend is no driver.Pinner.
func (m *Model) Pin() (*Pin, error) {
	pinner, err := capability[pinner](m, "pin", "driver.Pinner")
	if err != nil {
		return nil, err
	}
	pinned, step, err := pinner.Pin(m)
	if err != nil {
		return nil, err
	}
	return &Pin{m, step, pinned}, nil
}

// PinStep returns a pin of a stored step: over HTTP such a step is the model name@step.
//
// It returns [ErrNotRegistered], [ErrInvalid] for a step without a checkpoint, and [ErrUnsupported] when the backend is
// no driver.StepPinner.
func (m *Model) PinStep(ctx context.Context, step int) (*Pin, error) {
	pinner, err := capability[stepPinner](m, "pin step", "driver.StepPinner")
	if err != nil {
		return nil, err
	}
	pinned, err := pinner.PinStep(ctx, m, step)
	if err != nil {
		return nil, err
	}
	return &Pin{m, step, pinned}, nil
}

// Step returns the step.
func (p *Pin) Step() int { return p.step }

// Context returns a context with which the step answers the calls of its model. It holds for calls in this process, by
// [Model.Chat] or [Model.HTTPClient].
func (p *Pin) Context(ctx context.Context) context.Context {
	return context.WithValue(p.pinned(ctx), pinKey{p.model}, p.step)
}

func (m *Model) answers(ctx context.Context) int {
	if step, ok := ctx.Value(pinKey{m}).(int); ok {
		return step
	}
	return m.Step()
}
