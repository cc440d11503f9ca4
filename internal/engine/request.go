package engine

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/goart-dev/art/internal/engine/schedule"
	"github.com/goart-dev/art/model"
)

// ErrTooLong is wrapped by the error of a prompt that leaves no room for a reply.
var ErrTooLong = errors.New("engine: the prompt is too long")

// ErrNotFinite is wrapped by the error of a logprob that is NaN or infinite: the weights are damaged, or training has
// diverged.
var ErrNotFinite = errors.New("numbers of the model or of the adapter are not finite, or too large")

// checkFinite refuses the logprob of token i if it is NaN or infinite.
func checkFinite(i int, logprob float32) error {
	if x := float64(logprob); math.IsNaN(x) || math.IsInf(x, 0) {
		return fmt.Errorf("engine: logprob %d is %v: %w", i, x, ErrNotFinite)
	}
	return nil
}

// Request is a prompt to complete.
type Request struct {
	Prompt    []int32 // at least one token; not changed until the result is there
	End       []int32 // ids that end the reply; the one that does is the last id of the result
	Stop      Stopper // ends the reply otherwise; nil is none. The token that it ends with is the last of the result
	Sampling  model.Sampling
	MaxTokens int // 0 is the rest of the context
	Seed      uint64
	Adapter   *Adapter // nil is the base model
}

// Result is a completion.
type Result struct {
	IDs      []int32
	Logprobs []float32 // of IDs, under the model
	Sampled  []float32 // of IDs, under the reshaped distribution; nil if Sampling does not reshape
	Reason   Reason
	Cached   int // prompt tokens that were found in the KV cache
}

// Reason says why a completion ended.
type Reason int

// Reasons.
const (
	End     Reason = iota // an id of Request.End
	Stopped               // a stop string
	Length                // MaxTokens or the context
)

func (r *Request) check(opts Options) error {
	if len(r.Prompt) == 0 {
		return errors.New("engine: the prompt has no tokens")
	}
	if len(r.Prompt) >= opts.Context {
		return fmt.Errorf("%w: %d tokens, and the context of %d must hold a reply too",
			ErrTooLong, len(r.Prompt), opts.Context)
	}
	for _, id := range r.Prompt {
		if id < 0 || int(id) >= opts.Config.VocabSize {
			return fmt.Errorf("engine: token %d is not in the vocabulary of %d", id, opts.Config.VocabSize)
		}
	}
	return nil
}

// limit returns how many tokens prompt and reply may have together, in a slot of some capacity.
func (r *Request) limit(capacity int) int {
	if r.MaxTokens > 0 {
		return len(r.Prompt) + min(r.MaxTokens, capacity-len(r.Prompt))
	}
	return capacity
}

// job is a request in the engine.
type job struct {
	Request
	task   schedule.Task
	ctx    context.Context
	reply  chan outcome // buffered: the loop never waits for a caller
	result Result
}

// outcome is a result or an error.
type outcome struct {
	result *Result
	err    error
}

// newJob returns a job for a valid request, for slots of some capacity.
func newJob(ctx context.Context, r Request, capacity int) *job {
	return &job{
		Request: r,
		task:    schedule.Task{Prompt: r.Prompt, Adapter: r.Adapter, Limit: r.limit(capacity)},
		ctx:     ctx,
		reply:   make(chan outcome, 1),
	}
}

// sample is a sampled token.
type sample struct {
	id               int32
	logprob, sampled float32 // see Result
}

// accept adds a sampled token to the result and reports whether the reply ends with it. room is the number of tokens
// that may follow.
func (j *job) accept(s sample, room int) (done bool) {
	r := &j.result
	r.IDs = append(r.IDs, s.id)
	r.Logprobs = append(r.Logprobs, s.logprob)
	if j.Sampling.Reshapes() {
		r.Sampled = append(r.Sampled, s.sampled)
	}
	for _, end := range j.End {
		if s.id == end {
			r.Reason = End
			return true
		}
	}
	if j.Stop != nil {
		if why, stopped := j.Stop(s.id); stopped {
			r.Reason = why
			return true
		}
	}
	if room == 0 {
		r.Reason = Length
		return true
	}
	return false
}

// call returns what a decoding call does for the slot of the job.
func (j *job) call(row schedule.Row) decodeCall {
	c := decodeCall{token: row.Tokens[0], start: row.Start, count: row.Samples, ends: j.End, sampling: j.Sampling}
	for n := range c.count {
		c.uniform = append(c.uniform, model.Uniform(j.Seed, len(j.result.IDs)+n))
	}
	return c
}
