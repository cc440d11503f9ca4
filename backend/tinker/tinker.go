// Package tinker trains and samples on a service with the Tinker API: Thinking Machines', an open server, or
// `art serve --train`. Chat templates, exact tokens, parsing and recording stay here, and so does the run directory,
// with metrics, trajectories and the name of the checkpoint of each step: a program that trains in process changes one
// line.
//
//	backend, err := tinker.Open(ctx, &tinker.Options{BaseURL: "http://127.0.0.1:8000", Tokenizer: "models/qwen3"})
//	model := art.NewModel("player-1", &art.ModelOptions{Base: "Qwen/Qwen3-8B"})
//	err = model.Register(ctx, backend)
//
// A registered model is a training run of the service. [art.Model.Publish] saves its state there under the name of
// the step and notes the path in the run directory, from which another process goes on: weights and optimizer.
// [art.Model.Train], [art.Model.TrainSFT] and [art.Model.TrainDPO] are made of the same operations, and publish.
//
// A request that may have been lost is sent again, and services execute it once, since it carries its number.
// docs/tinker.md has the details.
package tinker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"

	"sync"
	"sync/atomic"
	"time"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/driver"
	"github.com/goart-dev/art/backend/loop"
	"github.com/goart-dev/art/backend/server"
	"github.com/goart-dev/art/internal/client"
	"github.com/goart-dev/art/internal/secret"
)

// ErrService is returned when a service fails, or answers what cannot be used.
var ErrService = errors.New("the training service failed")

// Options of a backend. Zero values are the defaults.
type Options struct {
	// BaseURL is where the service is. Default: $TINKER_BASE_URL. Required if that is empty.
	BaseURL string
	// Key authenticates. Default: $TINKER_API_KEY. It does not appear in errors, logs and run directories.
	Key string
	// Tokenizer is a folder with the tokenizer of the base model: tokenizer.json, tokenizer_config.json and, if it is a
	// file, the chat template. Required: services have none.
	Tokenizer string
	// Dir is the root of the run directories. Default ".art".
	Dir string
	// JSON sends training data in the JSON dialect, for services that do not read protobuf. It is larger and slower.
	JSON bool
	// RetryTime bounds the time for which a request is sent again while the service cannot be reached or is overloaded.
	// Default 5 minutes.
	RetryTime time.Duration
	// HTTPClient sends the requests. It is copied: a request with the key follows no redirect to another host. Default:
	// a client without a timeout; each request has one.
	HTTPClient *http.Client
	// Logger receives retries and warnings. nil discards.
	Logger *slog.Logger
}

// Backend is an [art.Backend] on a Tinker service.
type Backend struct {
	opts    Options
	address *url.URL
	http    *http.Client // for requests with the key
	session string
	limits  limits

	life context.Context // ends with Close
	quit context.CancelFunc
	busy sync.WaitGroup

	beaten atomic.Pointer[time.Time] // when the newest heartbeat was answered; nil for none

	models            *client.Models[*entry]
	created, samplers atomic.Int64 // training runs and sampling sessions of the session
}

var (
	_ art.Backend         = (*Backend)(nil)
	_ driver.SFTTrainer   = (*Backend)(nil)
	_ driver.GroupChecker = (*Backend)(nil)
	_ driver.TrainChecker = (*Backend)(nil)
	_ driver.DPOTrainer   = (*Backend)(nil)
	_ loop.Trainer        = (*Backend)(nil)
	_ driver.Sampler      = (*Backend)(nil)
	_ driver.Tokenizer    = (*Backend)(nil)
	_ driver.Logger       = (*Backend)(nil)
	_ driver.HTTPServer   = (*Backend)(nil)
)

// Open begins a session of a service. opts may be nil.
func Open(ctx context.Context, opts *Options) (*Backend, error) {
	b := &Backend{models: client.NewModels[*entry]()}
	if opts != nil {
		b.opts = *opts
	}
	if err := b.complete(); err != nil {
		return nil, err
	}
	b.life, b.quit = context.WithCancel(context.Background())
	if err := b.limits.ask(ctx, b); err != nil {
		return nil, err
	}
	var out result
	begin := request{SDKVersion: sdkVersion, Type: "create_session", Tags: []string{}} // SkyRL requires tags
	if err := b.post(ctx, "create_session", begin, &out); err != nil {
		return nil, err
	}
	if out.SessionID == "" {
		return nil, b.broken("create_session", errors.New("the answer has no session_id"))
	}
	b.session = out.SessionID
	b.busy.Go(b.beat)
	return b, nil
}

// complete fills in defaults and checks the options.
func (b *Backend) complete() (err error) {
	o := &b.opts
	o.BaseURL = cmp.Or(o.BaseURL, os.Getenv("TINKER_BASE_URL"))
	o.Key = cmp.Or(o.Key, os.Getenv("TINKER_API_KEY"))
	o.Dir = cmp.Or(o.Dir, ".art")
	o.RetryTime = cmp.Or(o.RetryTime, 5*time.Minute)
	if o.HTTPClient == nil {
		o.HTTPClient = &http.Client{}
	}
	b.http = secret.Client(o.HTTPClient)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	b.address, err = client.Address(o.BaseURL)
	if err == nil && o.Tokenizer == "" {
		err = fmt.Errorf("%w: Tokenizer is empty", art.ErrInvalid)
	}
	if err != nil {
		return &art.Error{Op: "open tinker", Err: err, Hint: "correct tinker.Options"}
	}
	return nil
}

// beat keeps the session alive.
func (b *Backend) beat() {
	ticker := time.NewTicker(10 * time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-b.life.Done():
			return
		case <-ticker.C:
		}
		ctx, cancel := context.WithTimeout(b.life, 10*time.Second)
		status, _, err := b.send(ctx, http.MethodPost, "session_heartbeat", encode(request{SessionID: b.session}), "")
		cancel()
		if status == http.StatusGone {
			b.opts.Logger.Warn("the service has ended the session")
			return
		}
		switch {
		case err == nil:
			b.beaten.Store(new(time.Now()))
		case b.life.Err() == nil:
			b.opts.Logger.Warn("heartbeat failed", "error", err)
		}
	}
}

// Close ends the session and releases the run directories. What is not published or saved is lost.
func (b *Backend) Close() error {
	entries, first := b.models.Close()
	if !first {
		return nil
	}
	ctx, cancel := context.WithTimeout(b.life, 10*time.Second)
	_, _, err := b.send(ctx, http.MethodPost, "sessions/"+url.PathEscape(b.session)+"/finish",
		[]byte(`{"reason":{"type":"success"}}`), "")
	cancel()
	if err != nil {
		b.opts.Logger.Warn("the session could not be ended; the service will after a while", "error", err)
	}
	b.quit()
	b.busy.Wait()
	var errs []error
	for _, e := range entries {
		if e.run != nil {
			errs = append(errs, e.run.Close())
		}
	}
	return errors.Join(errs...)
}

// Log stores trajectories and metrics in the run directory.
func (b *Backend) Log(
	ctx context.Context, m *art.Model, split string, step int, groups []*art.TrajectoryGroup, metrics map[string]float64,
) error {
	e, err := b.trainable("log", m)
	if err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if len(groups) > 0 {
		if err := e.run.WriteTrajectories(split, step, groups); err != nil {
			return err
		}
	}
	return e.run.Log(split, step, metrics)
}

// History returns the logged rows, after Close too.
func (b *Backend) History(_ context.Context, m *art.Model) ([]art.HistoryRow, error) {
	const op = "history"
	e, err := b.models.Known(op, m)
	if err == nil {
		err = e.learns(op)
	}
	if err != nil {
		return nil, err
	}
	return e.run.History()
}

// Dir returns the run directory of m.
func (b *Backend) Dir(m *art.Model) (string, error) {
	e, err := b.trainable("dir", m)
	if err != nil {
		return "", err
	}
	return e.run.Dir(), nil
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
