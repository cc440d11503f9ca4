package tinker

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/server"
	"github.com/goart-dev/art/backend/server/access"
	"github.com/goart-dev/art/backend/server/internal/tenancy"
	"github.com/goart-dev/art/internal/tinkerwire"
)

// future is a request whose result is polled.
type future struct {
	id      string
	tenant  *tenant
	key     string // name of the key that pays
	scope   access.Scope
	project string // of the run
	run     string // "" of samples of a base model
	base    string
	session string
	cost    int64             // bytes of its tenant's queue
	digest  [sha256.Size]byte // of the request
	answer  *tinkerwire.Result
	done    chan struct{}
	out     *outcome // once done is closed
	ended   time.Time
}

// outcome is a result. One of its parts is set.
type outcome struct {
	Result   *tinkerwire.Result       `json:",omitempty"`
	Forward  []byte                   `json:",omitempty"` // the message ForwardBackwardOutput
	Sample   *tinkerwire.SampleOutput `json:"-"`
	Err      string                   `json:",omitempty"`
	Category string                   `json:",omitempty"`
}

func failed(err error) *outcome {
	category := tinkerwire.CategoryServer
	var f *failure
	if errors.As(err, &f) && f.status < 500 || errors.Is(err, art.ErrInvalid) || errors.Is(err, art.ErrContextLength) ||
		errors.Is(err, art.ErrUnsupported) || errors.Is(err, art.ErrFrozen) || errors.Is(err, art.ErrBaseModel) {
		category = tinkerwire.CategoryUser
	}
	return &outcome{Err: detail(err), Category: category}
}

// failed logs an error that is not the client's, and makes an outcome of it.
func (s *Server) failed(what string, err error) *outcome {
	out := failed(err)
	if out.Category == tinkerwire.CategoryServer {
		s.log.Error("operation failed", "operation", what, "error", err)
	}
	return out
}

// detail is what a client reads of an error.
func detail(err error) string {
	var f *failure
	if errors.As(err, &f) {
		return f.detail
	}
	return tenancy.Public(err)
}

// size is about what a result takes in memory, in bytes.
func (o *outcome) size() int64 {
	n := len(o.Err) + len(o.Forward)
	if s := o.Sample; s != nil {
		tops := []*tinkerwire.TopLogprobs{s.TopPromptLogprobs}
		n += 4 * len(s.PromptLogprobs)
		for i := range s.Sequences {
			n += 8 * len(s.Sequences[i].Tokens)
			tops = append(tops, s.Sequences[i].TopLogprobs)
		}
		for _, top := range tops {
			if top != nil {
				n += 8 * len(top.IDs)
			}
		}
	}
	return int64(n) + queueEntry
}

// openFuture returns the future of a request, which is new if no request had the id before. A repeated request has
// the same content, or it is an error. turn says that others may wait for the request, as it is the next of its run.
func (s *Server) openFuture(f *future, turn bool) (old *future, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if old := s.futures[f.id]; old != nil {
		if old.digest != f.digest {
			return nil, fail(http.StatusBadRequest, "the seq_id of this request was used for another one; count on")
		}
		return old, nil
	}
	if err := f.tenant.begin(f.cost, turn, s.opts.MaxBody); err != nil {
		return nil, err
	}
	f.done = make(chan struct{})
	s.futures[f.id] = f
	return nil, nil
}

// spawnFuture makes the result of a future on a goroutine of its own.
func (s *Server) spawnFuture(what string, f *future, result func() *outcome) {
	s.spawn(what, func() {
		var out *outcome
		if err := s.protect(what, func() error { out = result(); return nil }); err != nil {
			out = s.failed(what, err)
		}
		s.complete(f, out)
	})
}

// complete sets the result, which can be read from now on, and drops the oldest ones of a tenant that has too many.
func (s *Server) complete(f *future, out *outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.out != nil {
		return
	}
	f.out, f.ended = out, time.Now()
	close(f.done)
	f.tenant.end(f.cost)
	t := f.tenant
	t.add(f)
	for len(t.results) > 1 && (len(t.results) > t.limits.Results || t.resultBytes > t.limits.ResultBytes) {
		s.dropOldest(t)
	}
}

// add counts a result. The server's mu is held.
func (t *tenant) add(f *future) {
	t.results = append(t.results, f)
	t.resultBytes += f.out.size()
}

// dropOldest forgets the oldest result of a tenant. mu is held.
func (s *Server) dropOldest(t *tenant) {
	f := t.results[0]
	t.results[0] = nil
	t.results = t.results[1:]
	t.resultBytes -= f.out.size()
	delete(s.futures, f.id)
}

// retrieve serves POST retrieve_future: it waits for a result, for a while.
func (s *Server) retrieve(w http.ResponseWriter, r *http.Request, t *user, req *tinkerwire.Request) error {
	s.mu.Lock()
	f := s.futures[req.RequestID]
	s.mu.Unlock()
	if f == nil || f.tenant != t.tenant {
		if strings.Contains(req.RequestID, samplerMark) { // clients submit samples again when they are gone
			return fail(http.StatusGone, "the result of this sample is gone; ask for it again")
		}
		return fail(http.StatusNotFound, "there is no request of this id, or its result has been dropped")
	}
	err := t.key.Needs("this result", f.scope)
	switch {
	case err != nil:
	case f.run == "":
		err = t.key.ReachesBase(f.base)
	default:
		err = t.key.Reaches(f.project, f.run)
	}
	if err != nil {
		return err
	}
	s.touch(f.session)
	done, err := t.poll(f)
	if err != nil {
		return err
	}
	defer done()
	server.Waits(r.Context())
	timer := time.NewTimer(s.opts.PollTime)
	defer timer.Stop()
	select {
	case <-f.done:
		if err := f.out.send(w, r); err != nil { // nothing was sent: JSON has no number for it
			return failed(fmt.Errorf("the result has no form in JSON: %w", err)).send(w, r)
		}
		return nil
	case <-timer.C:
	case <-r.Context().Done():
	case <-s.ctx.Done():
	}
	return sendJSON(w, http.StatusRequestTimeout, tinkerwire.Result{
		Type: tinkerwire.TryAgain, RequestID: f.id, QueueState: "active",
	})
}

// send writes a result in the dialect that the client accepts.
func (o *outcome) send(w http.ResponseWriter, r *http.Request) error {
	proto := strings.Contains(r.Header.Get("Accept"), tinkerwire.ProtoType)
	switch {
	case o.Err != "":
		return sendJSON(w, http.StatusOK, tinkerwire.Result{Error: o.Err, Category: o.Category})
	case o.Forward != nil && proto:
		send(w, http.StatusOK, tinkerwire.ProtoType, o.Forward)
		return nil
	case o.Forward != nil:
		parsed, err := tinkerwire.ParseForwardOutput(o.Forward)
		if err != nil {
			return err
		}
		return sendJSON(w, http.StatusOK, parsed)
	case o.Sample != nil && proto:
		send(w, http.StatusOK, tinkerwire.ProtoType, o.Sample.Proto())
		return nil
	case o.Sample != nil:
		return sendJSON(w, http.StatusOK, o.Sample)
	}
	return sendJSON(w, http.StatusOK, o.Result)
}

type failure struct {
	status int
	detail string
}

func (f *failure) Error() string { return f.detail }

func fail(status int, detail string) error { return &failure{status, detail} }

func failf(status int, format string, args ...any) error {
	return &failure{status, fmt.Sprintf(format, args...)}
}

func sendJSON(w http.ResponseWriter, status int, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	send(w, status, tinkerwire.JSONType, data)
	return nil
}

// send writes a complete response. If that fails the client has gone.
func send(w http.ResponseWriter, status int, mediaType string, data []byte) {
	w.Header().Set("Content-Type", mediaType)
	w.WriteHeader(status)
	_, _ = w.Write(data)
}
