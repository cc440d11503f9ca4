package server

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/grpo/dataset"
)

// captureHeader says that a request may be captured, when its value is "yes".
const captureHeader = "X-Capture-Consent"

// CaptureOptions say which requests are captured, and where to.
type CaptureOptions struct {
	// Rate is the fraction of the requests with consent that is captured, 0 < Rate <= 1. It has no default.
	Rate float64
	// Consent reports whether a request may be captured. Default: it has the header "X-Capture-Consent: yes".
	Consent func(r *http.Request) bool
	// Redact removes from an example, in place, what must not be stored, and reports whether to keep it. A message keeps
	// unknown fields and images of the request: to be rid of them, replace it by one that is made of its texts. May be
	// nil. It is called by one request at a time.
	Redact func(e *art.Example) (keep bool)
	// Examples receives conversations with the reply of the model, for [art.Model.TrainSFT], and Scenarios the same
	// without the reply, as tasks for rollouts: JSONL of [art.Example]. Either may be nil.
	Examples, Scenarios io.Writer
}

// Capture writes down conversations of production traffic: those of requests that come from another process and belong
// to no rollout, one line for each. Texts and token ids that are continued without a conversation are left out. It is
// given to the routes in [Config].Capture. Failed requests are not captured. It is safe for concurrent use.
type Capture struct {
	opts CaptureOptions
	rand func() float64 // uniform in [0, 1)
	mu   sync.Mutex     // held to redact and write
}

// NewCapture validates the options. Invalid ones are an [art.ErrInvalid] that lists all problems.
func NewCapture(opts CaptureOptions) (*Capture, error) {
	var p []string
	if !(opts.Rate > 0 && opts.Rate <= 1) {
		p = append(p, fmt.Sprintf("Rate is %v, want 0 < Rate <= 1", opts.Rate))
	}
	if opts.Examples == nil && opts.Scenarios == nil {
		p = append(p, "Examples and Scenarios are both nil")
	}
	if len(p) > 0 {
		return nil, invalidOptions("capture", "CaptureOptions", p)
	}
	if opts.Consent == nil {
		opts.Consent = func(r *http.Request) bool { return strings.EqualFold(r.Header.Get(captureHeader), "yes") }
	}
	return &Capture{opts: opts, rand: rand.Float64}, nil
}

// captured serves a request, and writes down its completion if there is consent and the dice say so.
func (h *handler) captured(w http.ResponseWriter, r *http.Request, routes http.Handler) {
	c := h.Capture
	chat := slices.Contains(chatPaths, r.URL.Path)
	if c == nil || !chat || pinned(r.Context()) || !c.opts.Consent(r) || c.rand() >= c.opts.Rate {
		routes.ServeHTTP(w, r)
		return
	}
	recorder := art.NewRecorder()
	routes.ServeHTTP(w, r.WithContext(recorder.Context(r.Context())))
	c.write(r.Context(), recorder.Close(), h.Logger)
}

// write writes what a request has recorded. Who reads the log learns of an error; the client has its reply.
func (c *Capture) write(ctx context.Context, t *art.Trajectory, logger *slog.Logger) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, h := range t.Histories() { // several when the request asked for several replies
		e := art.Example{History: *h}
		if len(h.Messages) == 0 || c.opts.Redact != nil && !c.opts.Redact(&e) {
			continue
		}
		err := writeLine(c.opts.Examples, e)
		if i == 0 && err == nil {
			e.Messages = e.Messages[:max(len(e.Messages)-1, 0)] // without the reply; redacting may have left none
			err = writeLine(c.opts.Scenarios, e)
		}
		if err != nil {
			logger.ErrorContext(ctx, "a completion could not be captured", "error", err)
		}
	}
}

// writeLine writes an example, unless there is nowhere to write or nothing left.
func writeLine(w io.Writer, e art.Example) error {
	if w == nil || len(e.Messages) == 0 {
		return nil
	}
	return dataset.WriteJSONL(w, e)
}
