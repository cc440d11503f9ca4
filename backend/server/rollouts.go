package server

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/goart-dev/art"
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
		return nil, &art.Error{
			Op: "record", Err: fmt.Errorf("%w: %s", art.ErrInvalid, strings.Join(p, "; ")), Hint: "correct the RolloutOptions",
		}
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
	for _, g := range s.oldestGroups() {
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
