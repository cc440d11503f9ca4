package wandb

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/client"
	"github.com/goart-dev/art/internal/secret"
)

const (
	requestTime = 20 * time.Minute // of a request, as ART's
	maxAnswer   = 256 << 20        // bytes
)

// statusError is an answer that is no success.
type statusError struct {
	status int
	wait   time.Duration // that the service asks for
	text   string
}

// Error has the status and what the service says.
func (e *statusError) Error() string { return fmt.Sprintf("status %d: %s", e.status, e.text) }

type call struct {
	method, path string
	body         any  // nil for none; []byte as it is
	once         bool // it is not sent again: it might be executed twice
	out          any  // may be nil
}

// do sends a request, again while that may help, and reads the answer.
func (b *Backend) do(ctx context.Context, c *call) error {
	body, ok := c.body.([]byte)
	if !ok && c.body != nil {
		var err error
		if body, err = json.Marshal(c.body); err != nil {
			return &art.Error{Op: c.path, Err: fmt.Errorf("%w: %w", art.ErrInvalid, err)}
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(b.life, cancel)()
	began := time.Now()
	for attempt := 0; ; attempt++ {
		data, err := b.send(ctx, c.method, c.path, body)
		if err == nil {
			if c.out == nil {
				return nil
			}
			if err := json.Unmarshal(data, c.out); err != nil {
				err = fmt.Errorf("%w: the answer cannot be read: %w", ErrService, err)
				return &art.Error{Op: c.path, Err: err, Hint: "the service speaks another version of the protocol"}
			}
			return nil
		}
		if b.life.Err() != nil {
			return &art.Error{Op: c.path, Err: art.ErrClosed, Hint: "open another backend"}
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		var s *statusError
		wait := client.Wait(attempt, 0)
		if errors.As(err, &s) {
			wait = client.Wait(attempt, s.wait)
		}
		if c.once || !retried(err) || time.Since(began)+wait > b.opts.RetryTime {
			return b.failed(c.path, err)
		}
		b.opts.Logger.Debug("request is sent again", "path", c.path, "error", err, "wait", wait)
		select {
		case <-time.After(wait):
		case <-ctx.Done():
		}
	}
}

// send sends a request once, and returns the body of a success.
func (b *Backend) send(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	target := b.address.String() + "/" + path
	r, err := http.NewRequestWithContext(ctx, method, target, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", "application/json")
	r.Header.Set("Authorization", "Bearer "+b.opts.Key)
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	resp, err := b.http.Do(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if resp.StatusCode >= 300 {
		return nil, &statusError{resp.StatusCode, client.RetryAfter(resp.Header), message(data)}
	}
	return data, err
}

// message is what an error says, in one line.
func message(data []byte) string {
	var body struct {
		Error  struct{ Message string }
		Detail any
	}
	if json.Unmarshal(data, &body) == nil && body.Error.Message != "" {
		return body.Error.Message
	}
	if body.Detail != nil {
		return fmt.Sprint(body.Detail)
	}
	return strings.Join(strings.Fields(string(data[:min(len(data), 500)])), " ")
}

// retried reports whether a request may succeed when it is sent again.
func retried(err error) bool {
	var e *statusError
	if !errors.As(err, &e) {
		return !errors.As(err, new(*secret.RedirectError))
	}
	return e.status == http.StatusRequestTimeout || e.status == http.StatusTooManyRequests || e.status >= 500
}

// hints say what to do about a status.
var hints = map[int]string{
	http.StatusUnauthorized:     "Options.Key is not a key of the service",
	http.StatusPaymentRequired:  "the account has no credit left",
	http.StatusForbidden:        "the key may not do this: check Options.Entity",
	http.StatusNotFound:         "the service does not know the model, or is older than this client",
	http.StatusMethodNotAllowed: "the service is older than this client, or BaseURL lacks its version",
	http.StatusConflict:         "use another model name, or the same base model",
	http.StatusGone:             "the service has dropped it: register the model again",
}

// hide removes the key from an error: an answer that is a success may repeat it too.
func (b *Backend) hide(err error) error { return secret.HideError(err, []string{b.opts.Key}) }

// failed is the error of a request.
func (b *Backend) failed(path string, err error) error {
	var e *statusError
	err = b.hide(err)
	out := &art.Error{Op: path, Err: fmt.Errorf("%w: %w", ErrService, err), Hint: "check that the service can be reached"}
	if !errors.As(err, &e) {
		return out
	}
	if out.Hint = hints[e.status]; out.Hint == "" {
		out.Hint = "see what the service says"
	}
	if e.status == http.StatusBadRequest || e.status == http.StatusConflict || e.status == 422 {
		out.Err = fmt.Errorf("%w: %w", art.ErrInvalid, err)
	}
	return out
}
