package server

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"maps"
	"net/http"
	"time"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/wire"
)

// rollout is one run of an agent in another process. Its fields are guarded by the mutex of [Rollouts], except those
// that never change.
type rollout struct {
	id       string
	owner    owner
	model    *art.Model
	pin      *art.Pin       // nil: the newest step answers
	labels   map[string]any // metadata of the trajectory
	group    *group         // nil for none
	recorder *art.Recorder
	ctx      context.Context // ends when the rollout is closed
	cancel   context.CancelCauseFunc

	active int // requests under way
	used   time.Time
	timer  *time.Timer // ends or drops the rollout when it is idle
	bytes  int64
	result *closeRequest   // what the client says at the end, nil when it does not
	closed *art.Trajectory // nil while the rollout is open
	failed *failure        // set when it is closed and has no reward
}

// failure says why a rollout has no reward.
type failure struct{ kind, message string }

// trajectory returns a copy of what is recorded. The mutex of [Rollouts] is held.
func (r *rollout) trajectory() *art.Trajectory {
	if r.closed != nil {
		return r.closed.Clone()
	}
	t := r.recorder.Snapshot()
	t.Metadata = maps.Clone(r.labels)
	return t
}

// status is "open", "closed" or "failed". The mutex of [Rollouts] is held.
func (r *rollout) status() string {
	switch {
	case r.closed == nil:
		return "open"
	case r.failed != nil:
		return "failed"
	}
	return "closed"
}

func (s *Rollouts) open(by owner, m *art.Model, req *openRequest) (rolloutInfo, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return rolloutInfo{}, recordingClosed()
	}
	if err := s.hasBytes(); err != nil {
		return rolloutInfo{}, err
	}
	g, err := s.join(by, m, req)
	if err != nil {
		return rolloutInfo{}, err
	}
	r := &rollout{
		id: rand.Text(), owner: by, model: m, pin: req.pin, labels: map[string]any{}, recorder: art.NewRecorder(),
	}
	r.ctx, r.cancel = context.WithCancelCause(context.Background())
	maps.Copy(r.labels, req.Metadata.values())
	r.labels["rollout"] = r.id
	if req.Scenario != "" {
		r.labels["scenario"] = req.Scenario
	}
	if req.Group != "" {
		r.labels["group"] = req.Group
	}
	if r.group = g; g != nil {
		g.members = append(g.members, r)
	}
	s.rollouts[r.id] = r
	s.touch(r)
	return r.info(), nil
}

func (s *Rollouts) show(by owner, id string) (*art.Trajectory, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.find(by, id)
	if err != nil {
		return nil, err
	}
	return r.trajectory(), nil
}

func (s *Rollouts) close(by owner, id string, req *closeRequest) (rolloutInfo, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.find(by, id)
	switch {
	case err != nil:
		return rolloutInfo{}, err
	case r.closed != nil:
		return rolloutInfo{}, rolloutClosed(r)
	case req.Failure == "" && r.recorder.Completions() == 0:
		// Most often the client had another base URL.
		return rolloutInfo{}, refused(http.StatusConflict, "nothing_recorded",
			"no completion of this rollout was recorded; the base URL of the agent's client must end in %s%s/v1 (without /v1 "+
				`for Anthropic's); close a rollout that has none with {"failure": "why"}`, rolloutBase, r.id)
	}
	r.result = req
	var failed *failure
	if req.Failure != "" {
		failed = &failure{"failed", req.Failure}
	}
	s.end(r, failed)
	return r.info(), nil
}

// find returns a rollout of the owner of a key: with another key its id does not exist. s.mu is held.
func (s *Rollouts) find(by owner, id string) (*rollout, error) {
	if r := s.rollouts[id]; r != nil && r.owner == by {
		return r, nil
	}
	return nil, refused(http.StatusNotFound, "rollout_not_found", "there is no rollout %s for this key; "+
		"POST /v1/rollouts opens one, and it is forgotten once its group is taken", wire.Quote(id))
}

// begin admits a request to a rollout.
func (s *Rollouts) begin(by owner, id string) (*rollout, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.find(by, id)
	switch {
	case err != nil:
		return nil, err
	case s.closed:
		return nil, recordingClosed()
	case r.closed != nil:
		return nil, rolloutClosed(r)
	case r.recorder.Completions()+r.active >= s.opts.MaxTurns:
		return nil, refused(http.StatusBadRequest, "too_many_turns", "the rollout has %d completions, finished or under "+
			"way; close it, or raise RolloutOptions.MaxTurns", s.opts.MaxTurns)
	}
	if err := s.hasBytes(); err != nil {
		return nil, err
	}
	r.active++
	r.timer.Stop()
	return r, nil
}

// finish ends a request of a rollout that begin has admitted.
func (s *Rollouts) finish(r *rollout) {
	size := sizeOf(r.recorder.Snapshot())
	s.mu.Lock()
	defer s.mu.Unlock()
	r.active--
	if s.rollouts[r.id] != r { // dropped meanwhile
		return
	}
	s.charge(r, max(size-r.bytes, 0))
	if r.closed == nil || r.group == nil {
		s.touch(r)
	}
}

// touch notes that a rollout was used, and restarts its timer unless a request is under way. s.mu is held.
func (s *Rollouts) touch(r *rollout) {
	r.used = time.Now()
	if r.active > 0 {
		return
	}
	if r.timer != nil {
		r.timer.Reset(s.opts.IdleTimeout)
		return
	}
	r.timer = time.AfterFunc(s.opts.IdleTimeout, func() { s.expire(r) })
}

// expire fails an open rollout that is idle, and drops a closed one that has no group.
func (s *Rollouts) expire(r *rollout) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.active > 0 || time.Since(r.used) < s.opts.IdleTimeout || s.rollouts[r.id] != r {
		return // used between the alarm and the lock
	}
	if r.closed == nil {
		s.end(r, &failure{"idle_timeout", "no request for " + s.opts.IdleTimeout.String() +
			"; see RolloutOptions.IdleTimeout"})
	}
	if r.group == nil {
		s.drop(r)
	}
}

// end closes a rollout, unless it is closed; failed is nil for one that has a reward. s.mu is held.
func (s *Rollouts) end(r *rollout, failed *failure) {
	if r.closed != nil {
		return
	}
	r.cancel(errRolloutClosed)
	t := r.recorder.Close().Clone() // a request that is still under way reads the original
	t.Metadata = r.labels
	r.result.apply(t)
	r.closed, r.failed = t, failed
	if r.group != nil {
		r.timer.Stop()
		if r.group.closed++; r.group.closed == r.group.size {
			s.finishGroup(r.group, failure{}) // nothing is open
		}
		return
	}
	s.touch(r)
}

// drop forgets a rollout. s.mu is held.
func (s *Rollouts) drop(r *rollout) {
	r.timer.Stop()
	delete(s.rollouts, r.id)
	s.charge(r, -r.bytes)
	if r.group == nil {
		s.held--
	}
}

// charge adds bytes to what a rollout holds. s.mu is held.
func (s *Rollouts) charge(r *rollout, bytes int64) {
	r.bytes += bytes
	s.bytes += bytes
}

// sizeOf estimates the bytes of a trajectory: its messages as JSON, and 4 for each token id and logprob.
func sizeOf(t *art.Trajectory) (n int64) {
	for _, h := range t.Histories() {
		for i := range h.Messages {
			text, _ := json.Marshal(h.Messages[i]) // what was decoded from a request encodes
			n += int64(len(text))
		}
		for i := range h.Tools {
			n += int64(len(h.Tools[i].Description) + len(h.Tools[i].Parameters))
		}
	}
	for _, s := range t.Samples() {
		n += 4 * int64(len(s.PromptIDs)+len(s.IDs)+len(s.Logprobs)+len(s.Sampled))
	}
	return n
}

// errRolloutClosed is the cause of the end of requests that are under way when their rollout is closed.
var errRolloutClosed = refused(http.StatusGone, "rollout_closed", "the rollout was closed meanwhile")

// rolloutClosed is the error of using a closed rollout. Its status is one that clients do not retry.
func rolloutClosed(r *rollout) error {
	if r.failed != nil {
		return refused(http.StatusGone, "rollout_closed", "the rollout has failed (%s: %s); open another one",
			r.failed.kind, r.failed.message)
	}
	return refused(http.StatusGone, "rollout_closed", "the rollout is closed; open another one")
}

// recordingClosed is the error of a server that records no more.
func recordingClosed() error {
	return unavailable(http.StatusServiceUnavailable, "recording_closed", 0,
		"rollouts are no longer recorded: the server is closing")
}

// hasBytes returns an error when too much is recorded. s.mu is held.
func (s *Rollouts) hasBytes() error {
	if s.bytes < s.opts.MaxBytes {
		return nil
	}
	return unavailable(http.StatusTooManyRequests, "too_many_bytes", retryAfter, "recorded rollouts hold %d bytes; "+
		"close rollouts, take groups with Next, or raise RolloutOptions.MaxBytes, which is %d", s.bytes, s.opts.MaxBytes)
}
