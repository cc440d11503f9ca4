// Package hosted holds what the backends of hosted models share: options, prices, limits, retries, and the run
// directory. Programs open backend/openai, backend/anthropic or backend/gemini, which return a [Backend] of this
// package:
//
//	judge, err := openai.Open(ctx, &openai.Options{MaxSpend: 5})
//	model := art.NewModel("judge", &art.ModelOptions{Base: "gpt-5-mini", Frozen: true})
//	err = model.Register(ctx, judge)
//
// From there on a hosted model is used as a trained one: [art.Model.Chat], tools, [art.Record], [art.Gather],
// [art.Model.HTTPClient]. It cannot be trained.
//
// # Failures
//
// A request is sent again after a connection that fails or breaks off, an attempt that takes longer than
// [Options].Timeout, an answer that is not whole, and the statuses 408, 409, 425, 429, 500, 502, 503, 504, 520 to
// 524 and 529; never after another status, a quota that is used up, or when the header x-should-retry says false.
// The wait before the n-th retry is what the server asks for in Retry-After (seconds or a date) or retry-after-ms,
// and otherwise a random time between half of [Options].Backoff x 2^(n-1) and all of it, at most [Options].MaxWait.
// A server that asks for more than MaxWait is not waited for. An attempt that fails after it was sent may have been
// charged, and is not in [Usage].
//
// # Costs
//
// The token counts are the server's. A model without a [Price] has an unknown cost: it is counted in
// [Usage].UnknownCost. With [Options].MaxSpend a call is refused with [ErrSpendingLimit], before it is sent, when
// what was spent, what the calls in flight may cost and what this one may cost exceed it together. What a call may
// cost is estimated: a token for 4 bytes of the messages and tools, and the MaxTokens of the reply, or
// 1024 tokens when it has no limit. What a call really costs can be more, so the last calls can pass the
// limit by the difference.
package hosted

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/driver"
	"github.com/goart-dev/art/backend/server"
	"github.com/goart-dev/art/internal/runs"
	"github.com/goart-dev/art/internal/secret"
)

// Errors of hosted models, beside those of package art.
var (
	// ErrSpendingLimit is returned for a call that could exceed [Options].MaxSpend.
	ErrSpendingLimit = errors.New("spending limit reached")
	// ErrService is returned when a service fails, is overloaded or answers what cannot be read, after all retries.
	ErrService = errors.New("the service of the model failed")
)

// Options of the backends of hosted models. Zero values are the defaults.
type Options struct {
	// BaseURL is where the service is. The default is that of the backend.
	BaseURL string
	// Key authenticates. Default: an environment variable, which the backend names, and which is only used for the
	// service that the variable is for. A server that needs none gets none.
	Key string
	// Headers are added to every request. They may hold secrets: their values do not appear in errors.
	Headers http.Header
	// HTTPClient sends the requests. It is copied: redirects to another host are always refused. Default: a client
	// without a timeout of its own; Timeout bounds each attempt.
	HTTPClient *http.Client
	// Extra is a JSON object of fields that each request has besides those that art sends, or instead of them:
	// {"reasoning_effort": "low"}. A field with the value null is left out.
	Extra []byte
	// Timeout bounds each attempt. Default 5 minutes.
	Timeout time.Duration
	// Retries is how often a failed request is sent again. Default 5; negative is never.
	Retries int
	// Backoff is the wait before the first retry, and doubles with each. Default half a second.
	Backoff time.Duration
	// MaxWait bounds the wait before a retry. Default 1 minute.
	MaxWait time.Duration
	// MaxConcurrent bounds the calls that are being answered, those that wait for a retry among them; others wait.
	// Default 16.
	MaxConcurrent int
	// RequestsPerMinute bounds the attempts in any 60 seconds; further ones wait. Default 0: no limit.
	RequestsPerMinute int
	// TokensPerMinute bounds the tokens of prompts and replies in any 60 seconds, with the estimates of package hosted
	// for those that are not answered yet. A single call that is larger is sent alone. Default 0: no limit.
	TokensPerMinute int
	// Prices are what models cost. They replace the default, the list prices of the backend's own service.
	Prices Prices
	// MaxSpend bounds the cost of all calls of the backend, in the currency of Prices. All models need a price then.
	// Default 0: no limit.
	MaxSpend float64
	// ContextLength is the context of the models, in tokens. A prompt that is longer is refused with
	// [art.ErrContextLength] before it is sent. Tokens are counted as a lower bound: exactly for texts whose encoding
	// is known, otherwise one for 16 bytes. Default: that of the model where the backend knows it; the server refuses
	// the prompts that are left.
	ContextLength int
	// Dir is the root of the run directories. Default ".art".
	Dir string
	// Logger receives retries and warnings. nil discards.
	Logger *slog.Logger
}

// Backend is an [art.Backend] that completes and logs. Its runs have no checkpoints, and their only step is 0.
type Backend struct {
	about   About
	opts    Options
	service Service
	address *url.URL
	secrets []string // that must not appear in an error

	slots  chan struct{} // one for each call that is being answered
	window window
	meter  meter

	mu     sync.RWMutex
	closed bool
	models map[*art.Model]*entry
	order  []*art.Model // of registration

	life context.Context // ends with Close
	quit context.CancelCauseFunc
	busy sync.WaitGroup // calls in progress
}

var (
	_ art.Backend         = (*Backend)(nil)
	_ driver.Logger       = (*Backend)(nil)
	_ driver.StateKeeper  = (*Backend)(nil)
	_ driver.HTTPServer   = (*Backend)(nil)
	_ driver.TrainChecker = (*Backend)(nil)
	_ driver.BaseChooser  = (*Backend)(nil)
)

// New makes a backend out of a service. connect is called once, with the connection that opts describe; opts may be
// nil. It returns an [art.ErrInvalid] that lists what is wrong with opts.
func New(about About, opts *Options, connect func(*Connection) (Service, error)) (*Backend, error) {
	b := &Backend{about: about, models: map[*art.Model]*entry{}}
	if opts != nil {
		b.opts = *opts
	}
	connection, err := b.opts.complete(&about)
	if err != nil {
		return nil, err
	}
	b.address, b.secrets = connection.BaseURL, append(secret.OfHeader(connection.Headers), connection.Key)
	b.slots = make(chan struct{}, b.opts.MaxConcurrent)
	b.window = newWindow(b.opts.RequestsPerMinute, b.opts.TokensPerMinute)
	b.meter.limit = b.opts.MaxSpend
	b.life, b.quit = context.WithCancelCause(context.Background())
	b.service, err = connect(connection)
	return b, err
}

// Close ends all calls and releases the run directories.
func (b *Backend) Close() error {
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return nil
	}
	b.closed = true
	b.mu.Unlock()
	b.quit(b.errClosed("complete"))
	b.busy.Wait()
	var errs []error
	for _, e := range b.models {
		if e.run != nil {
			errs = append(errs, e.run.Close())
		}
	}
	return errors.Join(errs...)
}

// CheckTrain returns [art.ErrUnsupported], and [art.ErrClosed] after Close.
func (b *Backend) CheckTrain(*art.TrainConfig) error {
	b.mu.RLock()
	defer b.mu.RUnlock()
	if b.closed {
		return b.errClosed("train")
	}
	return errTrain
}

var errTrain = &art.Error{
	Op: "train", Err: art.ErrUnsupported,
	Hint: "a model behind an API answers and cannot be trained; train one of backend/local on what it recorded",
}

// Train returns [art.ErrUnsupported].
func (b *Backend) Train(
	ctx context.Context, m *art.Model, _ []*art.TrajectoryGroup, _ *art.TrainConfig,
) (*art.TrainResult, error) {
	if _, err := b.entry("train", m); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return nil, errTrain
}

func (b *Backend) errClosed(op string) error { return &art.Error{Op: op, Err: art.ErrClosed} }

type entry struct {
	model *art.Model
	base  string
	usage Usage // guarded by the meter

	mu     sync.Mutex // guards the fields below
	run    *runs.Run  // nil before something is stored
	before Usage      // of earlier processes, since the run is open
}

// Register notes m, and neither asks the service nor stores anything: a run directory is opened by the first Log or
// SaveState. ModelOptions.Base is the name of the model at the service, and the name of m without it. Options that
// only make sense for a model in process, Adapter, Fork, Full and ToolFormat, are an [art.ErrUnsupported]; LoRA is not
// looked at.
func (b *Backend) Register(ctx context.Context, m *art.Model) (int, error) {
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	opts := m.Options()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return 0, b.errClosed("register")
	}
	if opts.Adapter != "" || opts.Fork != "" || opts.ToolFormat != "" || opts.Full {
		err := fmt.Errorf("%w: Adapter, Fork, Full or ToolFormat of a model behind an API", art.ErrUnsupported)
		return 0, &art.Error{Op: "register", Err: err, Hint: "leave them out of ModelOptions"}
	}
	for other := range b.models {
		if other.Name() == m.Name() && other.Options().Project == opts.Project {
			err := fmt.Errorf("%w: a model %q of project %q is registered already", art.ErrInvalid, m.Name(), opts.Project)
			return 0, &art.Error{Op: "register", Err: err, Hint: "use that one, or another name"}
		}
	}
	e := &entry{model: m, base: cmp.Or(opts.Base, m.Name())}
	b.models[m] = e
	b.order = append(b.order, m)
	b.opts.Logger.Info("model registered", "model", m.Name(), "base", e.base)
	return 0, nil
}

// DefaultBase returns the name of m.
func (b *Backend) DefaultBase(m *art.Model) string { return m.Name() }

func (b *Backend) host() string { return b.address.Hostname() }

func (b *Backend) entry(op string, m *art.Model) (*entry, error) {
	e, err := b.begin(op, m)
	if err == nil {
		b.busy.Done()
	}
	return e, err
}

// begin is entry for what Close waits for. The caller calls busy.Done.
func (b *Backend) begin(op string, m *art.Model) (*entry, error) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	if b.closed {
		return nil, b.errClosed(op)
	}
	e, err := b.known(op, m)
	if err == nil {
		b.busy.Add(1)
	}
	return e, err
}

// known is entry of a backend that may be closed. mu is held.
func (b *Backend) known(op string, m *art.Model) (*entry, error) {
	if e := b.models[m]; e != nil {
		return e, nil
	}
	return nil, &art.Error{Op: op, Err: art.ErrNotRegistered, Hint: "call Register on this backend first"}
}

// Handler serves all registered models under their names; see [server.Handler]. Everyone who can reach it spends the
// money of the key: set the Keys of opts.
func (b *Backend) Handler(opts *art.HandlerOptions) (http.Handler, error) {
	return server.Handler(b.all, &server.Config{Logger: b.opts.Logger}, opts)
}

// Transport answers as m, whatever model a request names.
func (b *Backend) Transport(m *art.Model) http.RoundTripper {
	only := func() []*art.Model { return []*art.Model{m} }
	return server.Transport(server.Routes(only, &server.Config{Logger: b.opts.Logger}), m.Name())
}

func (b *Backend) all() []*art.Model {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return slices.Clone(b.order)
}
