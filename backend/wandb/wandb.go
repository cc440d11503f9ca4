// Package wandb trains and samples on W&B Training, the service behind ART's ServerlessBackend, or on a server of its
// protocol, such as `art serve --train`. Rollouts, rewards and the run directory stay here: a program that trains in
// process changes one line.
//
//	backend, err := wandb.Open(ctx, &wandb.Options{BaseURL: "http://127.0.0.1:8000/v1", Key: key})
//	model := art.NewModel("player-1", &art.ModelOptions{Base: "tiny"})
//	err = model.Register(ctx, backend)
//
// Each step is a checkpoint of the service. The run directory notes its name, with metrics and trajectories, and
// another process goes on at the newest step of the service.
//
// The hosted service was not reached when this was written: the client sends what openpipe-art 0.5 sends, and is tested
// against our own server. docs/wandb-training.md has the details.
package wandb

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"net/url"
	"os"
	"slices"

	"time"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/driver"
	"github.com/goart-dev/art/backend/server"
	"github.com/goart-dev/art/internal/callid"
	"github.com/goart-dev/art/internal/client"
	"github.com/goart-dev/art/internal/secret"
	"github.com/goart-dev/art/internal/wandbwire"
)

// ErrService is returned when the service fails, or answers what cannot be used.
var ErrService = errors.New("the training service failed")

// defaultURL is where W&B's own service is.
const defaultURL = "https://api.training.wandb.ai/v1"

// Options of a backend. Zero values are the defaults.
type Options struct {
	// BaseURL is where the service is, with the version. Default: W&B's own, https://api.training.wandb.ai/v1.
	BaseURL string
	// Key authenticates. Default: $WANDB_API_KEY. It does not appear in errors, logs and run directories.
	Key string
	// Entity owns the models. Default: that of the key, which the service knows.
	Entity string
	// Dir is the root of the run directories. Default ".art".
	Dir string
	// PollTime is the time between two looks at a training. Default 1 second, as ART's.
	PollTime time.Duration
	// RetryTime bounds the time for which a request that changes nothing, or a reply, is asked for again while the service
	// cannot be reached or is overloaded. Default 5 minutes. A training is never sent twice.
	RetryTime time.Duration
	// PutDataset stores the data of supervised training as an artifact, and returns its URL,
	// wandb-artifact:///ENTITY/PROJECT/NAME:v0. Default: at the service itself, which `art serve` offers. W&B's own needs
	// an upload by W&B's SDK, for which this is the place.
	PutDataset func(ctx context.Context, project, name string, jsonl []byte) (url string, err error)
	// HTTPClient sends the requests. It is copied: a request with the key follows no redirect to another host. Default:
	// a client without a timeout; each request has one.
	HTTPClient *http.Client
	// Logger receives retries and warnings. nil discards.
	Logger *slog.Logger
}

// Backend is an [art.Backend] on W&B Training.
type Backend struct {
	opts    Options
	address *url.URL
	http    *http.Client // for requests with the key

	life context.Context // ends with Close
	quit context.CancelFunc

	models *client.Models[*entry]
}

var (
	_ art.Backend             = (*Backend)(nil)
	_ driver.SFTTrainer       = (*Backend)(nil)
	_ driver.TrainChecker     = (*Backend)(nil)
	_ driver.Logger           = (*Backend)(nil)
	_ driver.CheckpointKeeper = (*Backend)(nil)
	_ driver.StepPinner       = (*Backend)(nil)
	_ driver.HTTPServer       = (*Backend)(nil)
)

// Open prepares the connection; nothing is sent before a model is registered. opts may be nil.
func Open(_ context.Context, opts *Options) (*Backend, error) {
	b := &Backend{models: client.NewModels[*entry]()}
	if opts != nil {
		b.opts = *opts
	}
	if err := b.complete(); err != nil {
		return nil, err
	}
	b.life, b.quit = context.WithCancel(context.Background())
	return b, nil
}

// complete fills in defaults and checks the options.
func (b *Backend) complete() (err error) {
	o := &b.opts
	o.BaseURL, o.Key = cmp.Or(o.BaseURL, defaultURL), cmp.Or(o.Key, os.Getenv("WANDB_API_KEY"))
	o.Dir = cmp.Or(o.Dir, ".art")
	o.PollTime, o.RetryTime = cmp.Or(o.PollTime, time.Second), cmp.Or(o.RetryTime, 5*time.Minute)
	b.http = secret.Client(o.HTTPClient)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.PutDataset == nil {
		o.PutDataset = b.putDataset
	}
	b.address, err = client.Address(o.BaseURL)
	switch {
	case err != nil:
	case o.Key == "" && o.BaseURL == defaultURL:
		err = fmt.Errorf("%w: there is no key; set Key or $WANDB_API_KEY", art.ErrInvalid)
	case o.PollTime < 0 || o.RetryTime < 0:
		err = fmt.Errorf("%w: PollTime or RetryTime is negative", art.ErrInvalid)
	}
	if err != nil {
		return &art.Error{Op: "open W&B Training", Err: err, Hint: "correct wandb.Options"}
	}
	return nil
}

// Close releases the run directories. A training that runs at the service goes on there.
func (b *Backend) Close() error {
	entries, first := b.models.Close()
	if !first {
		return nil
	}
	b.quit()
	var errs []error
	for _, e := range entries {
		e.training.Lock() // the training that was cut off has returned
		errs = append(errs, e.run.Close())
		e.training.Unlock()
	}
	return errors.Join(errs...)
}

// stepKey is the context key of the step that answers for a model.
type stepKey struct{ m *art.Model }

// PinStep returns what makes a context with which a stored step answers.
func (b *Backend) PinStep(
	ctx context.Context, m *art.Model, step int,
) (func(context.Context) context.Context, error) {
	steps, err := b.Checkpoints(ctx, m)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(steps, step) {
		return nil, &art.Error{Op: "pin step", Err: fmt.Errorf("%w: step %d has no checkpoint", art.ErrInvalid, step)}
	}
	return func(ctx context.Context) context.Context { return context.WithValue(ctx, stepKey{m}, step) }, nil
}

// Complete asks the service, with the name of the step. The reply has a Sample when the service tells its tokens: ours
// does, with all that training needs, and so does a vLLM with return_token_ids.
func (b *Backend) Complete(ctx context.Context, m *art.Model, req *art.ChatRequest) (*art.ChatResponse, error) {
	e, err := b.models.Get("complete", m)
	if err != nil {
		return nil, err
	}
	step := int(e.step.Load())
	if pinned, ok := ctx.Value(stepKey{m}).(int); ok {
		step = pinned
	}
	body, err := newRequest(e.artifact(step), req)
	if err != nil {
		return nil, err
	}
	if e.base == "" {
		body["logprobs"], body["return_token_ids"] = true, true
	}
	var answer wandbwire.Completion
	err = b.do(ctx, &call{method: http.MethodPost, path: "chat/completions", body: body, out: &answer})
	if err != nil {
		return nil, err
	}
	out, err := answer.Response(req.Settings, step)
	if err != nil {
		return nil, &art.Error{Op: "complete", Err: fmt.Errorf("%w: %w", ErrService, err),
			Hint: "the service answers what cannot be trained on"}
	}
	callid.Complete(out.Message.ToolCalls, req)
	if e.base != "" {
		out.Message.Sample = nil
	}
	if s := out.Message.Sample; s != nil {
		step = s.Step
	}
	out.Model = fmt.Sprintf("%s@%d", m.Name(), step)
	return out, nil
}

// newRequest is the body of a request for a reply: the settings have the names that OpenAI's API and vLLM's have.
func newRequest(model string, req *art.ChatRequest) (map[string]any, error) {
	s := req.Settings
	if s.ResponseFormat != nil || s.ToolChoice != nil || s.TopLogprobs > 0 || s.PromptLogprobs != nil {
		return nil, &art.Error{
			Op: "complete", Hint: "leave them out of the ChatOptions",
			Err: fmt.Errorf("%w: ResponseFormat, ToolChoice, TopLogprobs or PromptLogprobs", art.ErrUnsupported),
		}
	}
	body := map[string]any{}
	data, err := json.Marshal(s)
	if err == nil {
		err = json.Unmarshal(data, &body)
	}
	if err != nil {
		return nil, &art.Error{Op: "complete", Err: fmt.Errorf("%w: %w", art.ErrInvalid, err)}
	}
	if s.MaxTokens == 0 {
		delete(body, "max_tokens")
	}
	if s.TopK == 0 {
		delete(body, "top_k")
	}
	body["seed"] = s.Seed & math.MaxInt64
	body["model"], body["messages"] = model, outgoing(req.Messages)
	if len(req.Tools) > 0 {
		body["tools"] = req.Tools
	}
	if len(req.TemplateArgs) > 0 {
		body["chat_template_kwargs"] = req.TemplateArgs
	}
	return body, nil
}

// outgoing returns messages as they are sent: replies lose the unknown fields that services return and do not accept.
func outgoing(messages []art.Message) []art.Message {
	out := make([]art.Message, len(messages))
	for i, m := range messages {
		if m.Role == art.RoleAssistant {
			m = art.Message{Role: m.Role, Content: m.Content, Reasoning: m.Reasoning, ToolCalls: m.ToolCalls, Name: m.Name}
		}
		out[i] = m
	}
	return out
}

// Handler serves all registered models under their names; see [server.Handler].
func (b *Backend) Handler(opts *art.HandlerOptions) (http.Handler, error) {
	return server.Handler(b.models.All, &server.Config{Logger: b.opts.Logger}, opts)
}

// Transport answers as m, whatever model a request names.
func (b *Backend) Transport(m *art.Model) http.RoundTripper {
	only := func() []*art.Model { return []*art.Model{m} }
	return server.Transport(server.Routes(only, &server.Config{Logger: b.opts.Logger}), m.Name())
}
