package server

import (
	"context"
	"io"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/wire"
)

// Defaults of [RolloutOptions].
const (
	defaultMaxRollouts  = 1024
	defaultMaxTurns     = 200
	defaultMaxRecorded  = 1 << 30
	defaultIdleTimeout  = 10 * time.Minute
	defaultGroupTimeout = time.Hour
)

// RolloutOptions bound what [Rollouts] keeps. Fields that are 0 have the defaults. Errors of requests that exceed a
// bound name its field.
type RolloutOptions struct {
	// MaxRollouts bounds the rollouts in memory: open ones, and closed ones until Next has returned their group. A group
	// counts its declared size from its first rollout on, so that it can always be completed. Beyond the bound no rollout
	// can be opened (status 429): take groups, or train faster. Default 1024.
	MaxRollouts int
	// MaxTurns bounds the completions of a rollout; further requests have status 400. Default 200.
	MaxTurns int
	// MaxBytes bounds the messages and samples of all rollouts in memory. Beyond it no rollout can be opened and none
	// continued (status 429). The requests that are under way may exceed it. Default 1 GiB.
	MaxBytes int64
	// IdleTimeout is how long an open rollout may be without a request; then it has failed. A closed one without a group
	// can be read as long. Default 10 minutes.
	IdleTimeout time.Duration
	// GroupTimeout completes a group this long after its first rollout was opened. Rollouts that are open then have
	// failed. Default 1 hour.
	GroupTimeout time.Duration
}

// Rollouts records what clients in other processes do, and is the [art.GroupSource] of it. It is given to the routes in
// [Config].Rollouts, which then serve:
//
//	POST /v1/rollouts                       opens a rollout: {"model", "scenario"?, "metadata"?, "group"?, "group_size"?,
//	                                        "pin"?} -> status 201, {"id": ID, "base": "/r/ID", "status": "open", ...}
//	     /r/ID/v1/...                       the routes of the server, recorded: the base URL of an OpenAI client
//	     /r/ID/inference/v1/generate        the same for token ids
//	GET  /v1/rollouts/ID                    the trajectory so far, as art.Trajectory.MarshalJSON writes it
//	POST /v1/rollouts/ID/close              ends it: {"reward", "metrics"?, "metadata"?, "logs"?} or {"failure": "why"}
//	POST /v1/rollouts/groups/GROUP/close    completes a group as it is
//
// A client that cannot change its base URL names the rollout in the header X-Rollout-ID. Every model name is answered
// by the model of the rollout: its newest step, or with "pin": true the one that was the newest when the rollout was
// opened. Requests are recorded by an [art.Recorder], also when several arrive at once, and prompts
// of texts and token ids too; those under way when the rollout is closed are cancelled. A rollout without a group can
// be read and is not trained on.
//
// A group is complete, and returned by Next, when it has as many closed rollouts as group_size says, when it is closed,
// or after a timeout; then its name can be used again. A rollout that failed, by its own account or by a timeout, is a
// [art.Failure] of its group, whose Type is "failed", "idle_timeout", "group_timeout", "group_closed" or
// "server_closed".
//
// A rollout belongs to the key of [art.HandlerOptions] that opened it: with another key its id does not exist, and the
// names of groups are those of the key.
type Rollouts struct {
	opts RolloutOptions

	mu       sync.Mutex
	closed   bool
	rollouts map[string]*rollout // by id
	groups   map[groupKey]*group // those that are not complete
	complete []*group            // to be taken, the oldest first
	held     int                 // rollouts, with those that groups may still open
	bytes    int64               // of what is recorded
	changed  chan struct{}       // closed, and replaced, when complete or closed changes
}

var _ art.GroupSource = (*Rollouts)(nil)

// NewRollouts returns a recording without rollouts. opts may be nil. Invalid options are an [art.ErrInvalid] that lists
// all problems.
func NewRollouts(opts *RolloutOptions) (*Rollouts, error) {
	var o RolloutOptions
	if opts != nil {
		o = *opts
	}
	var p []string
	o.MaxRollouts = int(positive(&p, "MaxRollouts", int64(o.MaxRollouts), defaultMaxRollouts))
	o.MaxTurns = int(positive(&p, "MaxTurns", int64(o.MaxTurns), defaultMaxTurns))
	o.MaxBytes = positive(&p, "MaxBytes", o.MaxBytes, defaultMaxRecorded)
	o.IdleTimeout = positive(&p, "IdleTimeout", o.IdleTimeout, defaultIdleTimeout)
	o.GroupTimeout = positive(&p, "GroupTimeout", o.GroupTimeout, defaultGroupTimeout)
	if len(p) > 0 {
		return nil, invalidOptions("record", "RolloutOptions", p)
	}
	return &Rollouts{
		opts: o, rollouts: map[string]*rollout{}, groups: map[groupKey]*group{}, changed: make(chan struct{}),
	}, nil
}

// Close refuses new rollouts and requests, and completes all groups as they are; rollouts that are open have failed.
// Next returns these groups, and then [io.EOF].
func (s *Rollouts) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.closed = true
	why := failure{"server_closed", "the server was closed before the rollout"}
	oldest := func(a, b *group) int { return a.began.Compare(b.began) }
	for _, g := range slices.SortedFunc(maps.Values(s.groups), oldest) {
		s.finishGroup(g, why)
	}
	for _, r := range s.rollouts {
		if r.group == nil {
			s.end(r, &why)
			s.drop(r)
		}
	}
	s.signal()
}

// signal wakes those who wait for a change. s.mu is held.
func (s *Rollouts) signal() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// groupKey names a group.
type groupKey struct {
	owner owner
	name  string
}

// group is a group of rollouts. Its fields are guarded by the mutex of [Rollouts].
type group struct {
	key     groupKey
	model   *art.Model
	size    int // declared; 0 is unknown
	members []*rollout
	closed  int // of members
	began   time.Time
	timer   *time.Timer
}

// join returns the group for a rollout that is to be opened, a new one if there is none of that name, and counts the
// rollout. s.mu is held.
func (s *Rollouts) join(by owner, m *art.Model, req *openRequest) (*group, error) {
	if req.Group == "" {
		return nil, s.reserve(1)
	}
	key := groupKey{by, req.Group}
	g := s.groups[key]
	if g == nil {
		if req.GroupSize > s.opts.MaxRollouts {
			return nil, wire.FieldError("group_size",
				"is %d, more than RolloutOptions.MaxRollouts, which is %d", req.GroupSize, s.opts.MaxRollouts)
		}
		if err := s.reserve(max(req.GroupSize, 1)); err != nil {
			return nil, err
		}
		g := &group{key: key, model: m, size: req.GroupSize, began: time.Now()}
		g.timer = time.AfterFunc(s.opts.GroupTimeout, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.finishGroup(g, failure{"group_timeout", "the group was not complete after " + s.opts.GroupTimeout.String() +
				"; see RolloutOptions.GroupTimeout"})
		})
		s.groups[key] = g
		return g, nil
	}
	if g.model != m {
		return nil, wire.FieldError("group", "is a group of the model %q", g.model.Name())
	}
	if req.GroupSize != 0 && req.GroupSize != g.size {
		return nil, wire.FieldError("group_size", "is %d, and the group was begun with %d; 0 is none", req.GroupSize, g.size)
	}
	if g.size == 0 {
		return g, s.reserve(1)
	}
	if len(g.members) == g.size {
		return nil, wire.FieldError("group", "has all of its %d rollouts; use another name", g.size)
	}
	return g, nil // counted when the group was begun
}

// reserve counts n rollouts that are or may be opened, if there is room. s.mu is held.
func (s *Rollouts) reserve(n int) error {
	if s.held+n > s.opts.MaxRollouts {
		open, waiting := 0, 0
		for _, r := range s.rollouts {
			if r.closed == nil {
				open++
			}
		}
		for _, g := range s.complete {
			waiting += len(g.members)
		}
		return unavailable(http.StatusTooManyRequests, "too_many_rollouts", retryAfter,
			"there is no room for more rollouts: %d are open, and %d are in complete groups that nobody has taken; close "+
				"rollouts, take groups with Next, or raise RolloutOptions.MaxRollouts, which is %d",
			open, waiting, s.opts.MaxRollouts)
	}
	s.held += n
	return nil
}

// closeGroup completes a group of the owner of a key.
func (s *Rollouts) closeGroup(by owner, name string) (groupInfo, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.groups[groupKey{by, name}]
	if g == nil {
		return groupInfo{}, refused(http.StatusNotFound, "group_not_found",
			"there is no group %s that is not complete; rollouts are opened with its name in group",
			wire.Quote(name))
	}
	s.finishGroup(g, failure{"group_closed", "the group was closed before the rollout"})
	return g.info(), nil
}

// finishGroup completes a group. Its open members fail. s.mu is held.
func (s *Rollouts) finishGroup(g *group, why failure) {
	if s.groups[g.key] != g {
		return
	}
	delete(s.groups, g.key) // first: the last member to end would finish it again
	g.timer.Stop()
	for _, r := range g.members {
		s.end(r, &why)
	}
	s.held -= max(g.size-len(g.members), 0) // those that were never opened
	s.complete = append(s.complete, g)
	s.signal()
}

// Next returns the group, of any model, that was complete first; see [art.GroupSource]. Metadata of the group has its
// name as "group"; that of each trajectory has the id as "rollout", and what it was opened with. Trajectories are in
// the order in which they were opened.
func (s *Rollouts) Next(ctx context.Context) (*art.TrajectoryGroup, error) { return s.next(ctx, nil) }

// Groups is the source of the groups of one model, where a server has several. Groups of others stay.
func (s *Rollouts) Groups(m *art.Model) art.GroupSource { return modelGroups{s, m} }

// modelGroups is the source of the groups of one model.
type modelGroups struct {
	rollouts *Rollouts
	model    *art.Model
}

func (g modelGroups) Next(ctx context.Context) (*art.TrajectoryGroup, error) {
	return g.rollouts.next(ctx, g.model)
}

// next waits for a group of a model, of any if m is nil.
func (s *Rollouts) next(ctx context.Context, m *art.Model) (*art.TrajectoryGroup, error) {
	for {
		g, changed, ended := s.take(m)
		if g != nil {
			return g.collect(), nil
		}
		if ended {
			return nil, io.EOF
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, &art.Error{Op: "next group", Err: ctx.Err(), Hint: "the context ended before a group was complete"}
		}
	}
}

// take removes the first complete group of a model. Without one it returns what tells of a change, and whether there
// will be none.
func (s *Rollouts) take(m *art.Model) (g *group, changed <-chan struct{}, ended bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.complete, func(g *group) bool { return m == nil || g.model == m })
	if i < 0 {
		return nil, s.changed, s.closed
	}
	g = s.complete[i]
	s.complete = slices.Delete(s.complete, i, i+1)
	for _, r := range g.members {
		s.drop(r)
	}
	s.held -= len(g.members)
	return g, nil, false
}

// collect returns the rollouts of a group that was taken.
func (g *group) collect() *art.TrajectoryGroup {
	out := &art.TrajectoryGroup{Metrics: map[string]float64{}, Metadata: map[string]any{"group": g.key.name}}
	for i, r := range g.members {
		if r.failed == nil {
			out.Trajectories = append(out.Trajectories, r.closed)
			continue
		}
		out.Failures = append(out.Failures, art.Failure{
			Attempt: i, Tries: 1, Type: r.failed.kind, Message: r.failed.message,
		})
	}
	return out
}
