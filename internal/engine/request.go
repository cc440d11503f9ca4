package engine

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/goart-dev/art/model"
)

// ErrTooLong is wrapped by the error of a prompt that leaves no room for a reply.
var ErrTooLong = errors.New("engine: the prompt is too long")

// ErrNotFinite is wrapped by the error of logprobs that are NaN or infinite: a spoilt model or a training that diverged.
var ErrNotFinite = errors.New("numbers of the model or of the adapter are not finite, or too large")

// checkFinite refuses the logprob of a token, the one with the given index, that tells nothing.
func checkFinite(i int, logprob float32) error {
	if x := float64(logprob); math.IsNaN(x) || math.IsInf(x, 0) {
		return fmt.Errorf("engine: logprob %d is %v: %w", i, x, ErrNotFinite)
	}
	return nil
}

// Request asks for one completion.
type Request struct {
	Prompt    []int32 // at least one token
	End       []int32 // ids that end the reply; the one sampled is its last
	Stop      Stopper // ends the reply otherwise; the token that it ends with belongs to the ids; may be nil
	Sampling  model.Sampling
	MaxTokens int // 0 is the rest of the context
	Seed      uint64
	Adapter   *Adapter // nil is the base model
}

// Result is a completion.
type Result struct {
	IDs      []int32
	Logprobs []float32 // of IDs, under the model
	Sampled  []float32 // of IDs, under the reshaped distribution; nil when Sampling does not reshape
	Reason   Reason
	Cached   int // prompt tokens that were not computed again
}

// Reason says why a completion ended.
type Reason int

// Reasons.
const (
	End     Reason = iota // an end id
	Stopped               // a stop string
	Length                // MaxTokens or the context
)

func (r *Request) check(opts Options) error {
	if len(r.Prompt) == 0 {
		return errors.New("engine: the prompt has no tokens")
	}
	if len(r.Prompt) >= opts.Context {
		return fmt.Errorf("%w: %d tokens, and the context of %d must hold a reply too", ErrTooLong, len(r.Prompt), opts.Context)
	}
	for _, id := range r.Prompt {
		if id < 0 || int(id) >= opts.Config.VocabSize {
			return fmt.Errorf("engine: token %d is not in the vocabulary of %d", id, opts.Config.VocabSize)
		}
	}
	return nil
}

// job is a request on its way.
type job struct {
	Request
	ctx    context.Context
	reply  chan outcome // buffered: the loop never waits for a caller
	result Result
}

type outcome struct {
	result *Result
	err    error
}

// accept takes the token that was drawn and reports whether the completion is done.
func (j *job) accept(id int32, logprob, sampled float32, room int) bool {
	r := &j.result
	r.IDs = append(r.IDs, id)
	r.Logprobs = append(r.Logprobs, logprob)
	if j.Sampling.Reshapes() {
		r.Sampled = append(r.Sampled, sampled)
	}
	for _, end := range j.End {
		if id == end {
			r.Reason = End
			return true
		}
	}
	if j.Stop != nil {
		if why, done := j.Stop(id); done {
			r.Reason = why
			return true
		}
	}
	if len(r.IDs) == j.MaxTokens || room == 0 {
		r.Reason = Length
		return true
	}
	return false
}
