package server

import (
	"fmt"
	"net/http"

	"github.com/goart-dev/art/internal/wire"
)

// unknownRollout is the error of an id that does not exist, or belongs to another key.
func unknownRollout(id string) error {
	return &wire.Error{
		Status: http.StatusNotFound,
		Message: fmt.Sprintf("there is no rollout %s for this key; POST /v1/rollouts opens one, "+
			"and it is forgotten once its group is taken", wire.Quote(id)),
		Type: wire.TypeInvalid,
		Code: "rollout_not_found",
	}
}

// errRolloutClosed is the cause of the end of requests that are under way when their rollout is closed.
var errRolloutClosed = &wire.Error{
	Status: http.StatusGone, Message: "the rollout was closed meanwhile", Type: wire.TypeInvalid, Code: "rollout_closed",
}

// rolloutClosed is the error of using a closed rollout. Its status is one that clients do not retry.
func rolloutClosed(r *rollout) error {
	message := "the rollout is closed; open another one"
	if r.failed != nil {
		message = fmt.Sprintf("the rollout has failed (%s: %s); open another one", r.failed.kind, r.failed.message)
	}
	return &wire.Error{Status: http.StatusGone, Message: message, Type: wire.TypeInvalid, Code: "rollout_closed"}
}

// nothingRecorded is the error of a reward without completions: most often the client had another base URL.
func nothingRecorded(r *rollout) error {
	return &wire.Error{
		Status: http.StatusConflict,
		Message: fmt.Sprintf("no completion of this rollout was recorded; the base URL of the agent's client must end in "+
			`%s%s/v1 (without /v1 for Anthropic's); close a rollout that has none with {"failure": "why"}`, rolloutBase, r.id),
		Type: wire.TypeInvalid,
		Code: "nothing_recorded",
	}
}

// recordingClosed is the error of a server that records no more.
func recordingClosed() error {
	return &wire.Error{
		Status:  http.StatusServiceUnavailable,
		Message: "rollouts are no longer recorded: the server is closing",
		Type:    wire.TypeInternal,
		Code:    "recording_closed",
	}
}

// tooManyTurns is the error of a rollout that goes on and on.
func tooManyTurns(limit int) error {
	return &wire.Error{
		Status: http.StatusBadRequest,
		Message: fmt.Sprintf("the rollout has %d completions, finished or under way; close it, "+
			"or raise RolloutOptions.MaxTurns", limit),
		Type: wire.TypeInvalid,
		Code: "too_many_turns",
	}
}

// hasBytes returns an error when too much is recorded. s.mu is held.
func (s *Rollouts) hasBytes() error {
	if s.bytes < s.opts.MaxBytes {
		return nil
	}
	return tooMuch("too_many_bytes", fmt.Sprintf("recorded rollouts hold %d bytes; "+
		"close rollouts, take groups with Next, or raise RolloutOptions.MaxBytes, which is %d", s.bytes, s.opts.MaxBytes))
}

// tooMuch is the error of a bound that the clients can wait for.
func tooMuch(code, message string) error {
	return &wire.Error{
		Status: http.StatusTooManyRequests, Message: message, Type: wire.TypeInternal, Code: code, RetryAfter: retryAfter,
	}
}
