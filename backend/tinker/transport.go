package tinker

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"time"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/client"
	"github.com/goart-dev/art/internal/secret"
	"github.com/goart-dev/art/internal/tinkerwire"
)

type (
	request = tinkerwire.Request
	result  = tinkerwire.Result
)

// sdkVersion is the version of the protocol that is spoken, as services know it from the Python SDK.
const sdkVersion = "0.24.1"

// Limits of one request, and of a response.
const (
	requestTime = time.Minute
	maxAnswer   = 1 << 30
)

// encode writes a JSON body of our own types, which can always be encoded.
func encode(v any) []byte {
	data, _ := json.Marshal(v)
	return data
}

// statusError is an answer with another status than success.
type statusError struct {
	status int
	detail string
}

func (e *statusError) Error() string { return fmt.Sprintf("status %d: %s", e.status, e.detail) }

// older reports whether the service has no such route. A router that knows a route answers otherwise.
func (e *statusError) older() bool {
	return e.status == http.StatusMethodNotAllowed || e.status == http.StatusNotImplemented ||
		e.status == http.StatusNotFound && (e.detail == "Not Found" || strings.HasSuffix(e.detail, " is not served"))
}

// dropped reports whether SkyRL's engine has forgotten a training run: it was started again, or was without heartbeats.
func (e *statusError) dropped() bool {
	return e.status == http.StatusBadRequest && strings.HasPrefix(e.detail, "Model ") &&
		strings.HasSuffix(e.detail, " not loaded")
}

// exists reports whether weights of that name are saved already, which does not change when the request is sent again.
func (e *statusError) exists() bool {
	return e.status == http.StatusConflict && strings.Contains(e.detail, "already exists")
}

// refuses reports whether the service has not begun an operation of that path, and still knows the training run.
func (e *statusError) refuses(path string) bool {
	switch e.status {
	case http.StatusBadRequest, http.StatusUnprocessableEntity:
		return !e.dropped()
	case http.StatusNotFound:
		return path == "load_weights" // of the weights, most likely
	}
	return e.exists()
}

// failure is the error of an operation that the service has answered, so that others can follow.
type failure struct {
	error
	begun bool // else its number is free
}

func (f *failure) Unwrap() error { return f.error }

// dropped is the hint of what the service does not know any longer.
const dropped = "the service has dropped it; register the model again, which continues at its newest step"

// errNaN is the error of a logprob that is no number.
var errNaN = errors.New("a logprob is NaN")

// broken is the error of a service.
func (b *Backend) broken(op string, err error) error {
	hint := "see what the service says"
	err = b.hide(err)
	base := ErrService
	var s *statusError
	switch {
	case errors.Is(err, errNaN):
		hint = "the weights at the service may have diverged: go on from an earlier step with a lower learning rate"
	case errors.Is(err, errNegative):
		base, hint = art.ErrUnsupported, "use a policy loss with negative advantages, or another service"
	case !errors.As(err, &s):
	case s.dropped():
		hint = dropped
	case s.exists():
		base, hint = art.ErrInvalid, "choose another name"
	case s.older():
		hint = "the service is older than this client, and has no such route: update it, or do without"
	case s.status == http.StatusUnsupportedMediaType,
		s.status == http.StatusUnprocessableEntity && op == "forward_backward" && !b.opts.JSON:
		hint = "the service may be older than this client, and read no protobuf: set Options.JSON"
	case s.status == http.StatusUnauthorized, s.status == http.StatusForbidden:
		hint = "check Options.Key, or $TINKER_API_KEY"
	case s.status == http.StatusPaymentRequired:
		hint = "the service wants to be paid; the run goes on from its newest step when it is registered again"
	case s.status == http.StatusNotFound && op == "create_session":
		hint = "check Options.BaseURL: there may be no Tinker service, or one that is older than this client"
	case s.status == http.StatusNotFound, s.status == http.StatusGone:
		hint = dropped
	case s.status == http.StatusBadRequest, s.status == http.StatusUnprocessableEntity:
		base, hint = art.ErrInvalid, "correct what the service refuses"
	}
	return &art.Error{Op: op, Err: fmt.Errorf("%w: %w", base, err), Hint: hint}
}

// hide removes the key from an error: an answer that is a success may repeat it too.
func (b *Backend) hide(err error) error { return secret.HideError(err, []string{b.opts.Key}) }

// send sends a request once. The error is a [statusError] when the service answered.
func (b *Backend) send(
	ctx context.Context, method, path string, body []byte, id string,
) (status int, a *answer, err error) {
	a = &answer{}
	media := tinkerwire.JSONType
	if strings.HasPrefix(path, protoPath) {
		path, media = strings.TrimPrefix(path, protoPath), tinkerwire.ProtoType
	}
	r, err := http.NewRequestWithContext(ctx, method, b.address.JoinPath("api/v1/", path).String(), bytes.NewReader(body))
	if err != nil {
		return 0, a, err
	}
	r.Header.Set("X-API-Key", b.opts.Key)
	r.Header.Set("Content-Type", media)
	r.Header.Set("Accept", tinkerwire.ProtoType+", "+tinkerwire.JSONType)
	if id != "" {
		r.Header.Set("X-Idempotency-Key", id)
	}
	w, err := b.http.Do(r)
	if err != nil {
		return 0, a, err
	}
	defer w.Body.Close()
	data, err := io.ReadAll(io.LimitReader(w.Body, maxAnswer))
	if err != nil {
		return 0, a, fmt.Errorf("the answer broke off: %w", err)
	}
	a.header, a.data = w.Header, data
	if w.StatusCode >= 300 {
		err = &statusError{w.StatusCode, detail(data)}
	}
	return w.StatusCode, a, err
}

// protoPath marks a path whose body is protobuf.
const protoPath = "proto:"

// answer is a response; it has no header where there was none.
type answer struct {
	header http.Header
	data   []byte
}

func (a *answer) proto() bool {
	return strings.HasPrefix(a.header.Get("Content-Type"), tinkerwire.ProtoType)
}

// detail is what an error says, in one line. FastAPI lists what is wrong with a body, beside the body itself.
func detail(data []byte) string {
	var list struct {
		Detail []struct {
			Loc []any
			Msg string
		}
	}
	if json.Unmarshal(data, &list) == nil && len(list.Detail) > 0 {
		first := list.Detail[0]
		return fmt.Sprintf("%v: %s", first.Loc, first.Msg)
	}
	var body struct{ Detail string }
	if json.Unmarshal(data, &body) == nil && body.Detail != "" {
		return body.Detail
	}
	return strings.Join(strings.Fields(string(data[:min(len(data), 500)])), " ")
}

// retried reports whether a request may succeed when it is sent again.
func retried(status int, err error) bool {
	if status == 0 {
		return !errors.As(err, new(*secret.RedirectError))
	}
	return status == http.StatusRequestTimeout || status == http.StatusConflict ||
		status == http.StatusTooManyRequests || status >= 500
}

// call sends a request until there is an answer. A repeated one has the same idempotency key.
func (b *Backend) call(ctx context.Context, method, path string, body []byte) (*answer, error) {
	id := "art-" + rand.Text()
	began := time.Now()
	for attempt := 0; ; attempt++ {
		once, cancel := context.WithTimeout(ctx, requestTime)
		status, a, err := b.send(once, method, path, body, id)
		cancel()
		if err == nil {
			return a, nil
		}
		pause := client.Wait(attempt, client.RetryAfter(a.header))
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if b.life.Err() != nil {
			return nil, &art.Error{Op: path, Err: art.ErrClosed}
		}
		var s *statusError
		answered := errors.As(err, &s)
		if !retried(status, err) || answered && s.exists() || time.Since(began)+pause > b.opts.RetryTime {
			err = b.broken(strings.TrimPrefix(path, protoPath), err)
			if attempt == 0 && answered && s.refuses(path) { // what was sent before may have been taken
				err = &failure{err, false}
			}
			return nil, err
		}
		b.opts.Logger.Debug("request is sent again", "path", path, "error", err, "wait", pause)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-b.life.Done():
		}
	}
}

// post sends JSON and reads JSON.
func (b *Backend) post(ctx context.Context, path string, body, out any) error {
	a, err := b.call(ctx, http.MethodPost, path, encode(body))
	if err != nil {
		return err
	}
	return b.read(path, a, out)
}

// read reads an answer in JSON.
func (b *Backend) read(op string, a *answer, out any) error {
	if err := json.Unmarshal(a.data, out); err != nil {
		return b.broken(op, fmt.Errorf("the answer cannot be read: %w", err))
	}
	return nil
}

// await polls a future. A poll that is not answered in time is repeated.
func (b *Backend) await(ctx context.Context, op, id string) (*answer, error) {
	body := encode(request{RequestID: id})
	failing := time.Time{}
	for attempt := 0; ; {
		once, cancel := context.WithTimeout(ctx, requestTime)
		status, a, err := b.send(once, http.MethodPost, "retrieve_future", body, "")
		cancel()
		beaten := b.beaten.Load()
		alive := beaten != nil && time.Since(*beaten) < requestTime
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case b.life.Err() != nil:
			return nil, &art.Error{Op: op, Err: art.ErrClosed}
		case err == nil:
			out, again, err := b.finished(op, a)
			if !again {
				return out, err
			}
			failing, attempt = time.Time{}, 0
			continue
		case status == http.StatusRequestTimeout, errors.Is(err, context.DeadlineExceeded) && alive:
			failing, attempt = time.Time{}, 0
			continue // the result is not there yet
		case status == http.StatusBadRequest: // of SkyRL: the operation has failed
			return nil, &failure{b.broken(op, err), true}
		case !retried(status, err):
			return nil, b.broken(op, err)
		}
		if failing.IsZero() {
			failing = time.Now()
		}
		if time.Since(failing) > b.opts.RetryTime {
			return nil, b.broken(op, err)
		}
		select {
		case <-time.After(client.Wait(attempt, client.RetryAfter(a.header))):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		attempt++
	}
}

// finished reads the answer to a poll.
func (b *Backend) finished(op string, a *answer) (out *answer, again bool, err error) {
	if a.proto() {
		return a, false, nil
	}
	var head result
	if err := b.read(op, a, &head); err != nil {
		return nil, false, err
	}
	if head.Type == tinkerwire.TryAgain {
		return nil, true, nil
	}
	if head.Error == "" {
		return a, false, nil
	}
	if head.Category == tinkerwire.CategoryUser {
		err := b.hide(fmt.Errorf("%w: the service says: %s", art.ErrInvalid, head.Error))
		return nil, false, &failure{&art.Error{Op: op, Err: err, Hint: "correct the arguments"}, true}
	}
	return nil, false, &failure{b.broken(op, errors.New(head.Error)), true}
}

// operation submits a request and returns its result.
func (b *Backend) operation(ctx context.Context, path string, body []byte) (*answer, error) {
	a, err := b.call(ctx, http.MethodPost, path, body)
	if err != nil {
		return nil, err
	}
	op := strings.TrimPrefix(path, protoPath)
	var submitted result
	if err := json.Unmarshal(a.data, &submitted); err != nil || submitted.RequestID == "" {
		said := secret.Hide(string(a.data[:min(len(a.data), 4<<10)]), []string{b.opts.Key})
		return nil, b.broken(op, fmt.Errorf("the answer has no request_id: %.200q", said))
	}
	return b.await(ctx, op, submitted.RequestID)
}

// small is operation for requests and results in JSON.
func (b *Backend) small(ctx context.Context, path string, body request) (out result, err error) {
	a, err := b.operation(ctx, path, encode(body))
	if err != nil {
		return out, err
	}
	return out, b.read(path, a, &out)
}

// limits are what a service says of itself when a session begins.
type limits struct {
	Datums int `json:"fwdbwd_max_chunk_len"`         // of a request
	Bytes  int `json:"fwdbwd_max_chunk_bytes_count"` // of a request, about
	// PolicyWeights says that policy losses take weights. It is our own server's: others have them in advantages.
	PolicyWeights bool `json:"policy_weights"`
	// NoTarget says that a target may be none, as our own server does.
	NoTarget bool `json:"no_target"`

	contexts map[string]int // most tokens of a sequence, by base model
}

// The limits of the SDKs, for services that do not tell.
const (
	defaultDatums = 1024
	defaultBytes  = 5_000_000
)

// ask reads the limits. Older services have no such routes.
func (l *limits) ask(ctx context.Context, b *Backend) error {
	req := request{SDKVersion: sdkVersion, Extensions: []string{tinkerwire.PolicyWeights, tinkerwire.NoTarget}}
	if err := b.optional(b.post(ctx, "client/config", req, l)); err != nil {
		return err
	}
	l.Datums, l.Bytes = cmp.Or(max(l.Datums, 0), defaultDatums), cmp.Or(max(l.Bytes, 0), defaultBytes)
	var models tinkerwire.Capabilities
	a, err := b.call(ctx, http.MethodGet, "get_server_capabilities", nil)
	if err == nil {
		err = b.read("get_server_capabilities", a, &models)
	}
	if err = b.optional(err); err != nil {
		return err
	}
	l.contexts = map[string]int{}
	for _, m := range models.Models {
		l.contexts[m.Name] = m.MaxContext
	}
	return nil
}

// optional drops the error of a route that does not exist.
func (b *Backend) optional(err error) error {
	var s *statusError
	if errors.As(err, &s) && (s.status == http.StatusNotFound || s.status == http.StatusMethodNotAllowed) {
		return nil
	}
	return err
}

// seed writes a seed. Our server takes all bits; SkyRL's takes 31.
func (l *limits) seed(x uint64) int64 {
	if l.PolicyWeights || x <= math.MaxInt32 {
		return int64(x)
	}
	return int64((x ^ x>>32) & math.MaxInt32)
}

// context is the greatest number of tokens that a base model reads.
func (b *Backend) context(base string) int {
	if n := b.limits.contexts[base]; n > 0 {
		return n
	}
	return math.MaxInt
}

// chunk returns the end of the data of one request, which has at least one datum.
func (l *limits) chunk(data []tinkerwire.Datum, from int) (to int) {
	size := 0
	for to = from; to < len(data) && to-from < l.Datums; to++ {
		size += data[to].Size()
		if size > l.Bytes && to > from {
			break
		}
	}
	return to
}

// mergeMetrics adds the metrics of a request over n of the first total data, by the reduction in their names.
func mergeMetrics(all, part map[string]float64, n, total int) {
	for name, x := range part {
		had, ok := all[name]
		_, reduction, _ := strings.Cut(name, ":")
		switch {
		case !ok:
			all[name] = x
		case reduction == "sum":
			all[name] = had + x
		case reduction == "min":
			all[name] = min(had, x)
		case reduction == "max":
			all[name] = max(had, x)
		case reduction == "mean":
			all[name] = had + (x-had)*float64(n)/float64(total)
		default:
			delete(all, name) // it cannot be merged
		}
	}
}
