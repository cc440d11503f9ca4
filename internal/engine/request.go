package engine

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/goart-dev/art/internal/engine/schedule"
	"github.com/goart-dev/art/internal/sampling"
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
	Sampling  sampling.Settings
	MaxTokens int // 0 is the rest of the context
	MinTokens int // before so many tokens, none of End is sampled, unless Mask allows no other
	Mask      Mask
	Top       int // the number of likeliest tokens that the result lists at each position
	Seed      uint64
	Adapter   *Adapter // nil is the base model
}

// Result is a completion.
type Result struct {
	IDs      []int32
	Logprobs []float32     // of IDs, under the model
	Sampled  []float32     // of IDs, under the reshaped distribution; nil if the request does not reshape
	Forced   []bool        // which of IDs were the only ones that Mask allowed; nil if none
	Top      [][]Candidate // for each of IDs the likeliest tokens; nil if Request.Top is 0
	Reason   Reason
	Cached   int // prompt tokens that were found in the KV cache
}

// Reason says why a completion ended.
type Reason int

// Reasons.
const (
	End     Reason = iota // an id of Request.End, or Mask is finished
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
	v := opts.Config.VocabSize
	for _, id := range r.Prompt {
		if id < 0 || int(id) >= v {
			return fmt.Errorf("engine: token %d is not in the vocabulary of %d", id, v)
		}
	}
	for id := range r.Sampling.Bias {
		if id < 0 || int(id) >= v {
			return fmt.Errorf("engine: token %d is not in the vocabulary of %d: it has a bias", id, v)
		}
	}
	if r.MinTokens > 0 && len(r.End) >= v {
		return fmt.Errorf("engine: no tokens are left before %d tokens: %d ids end the reply", r.MinTokens, len(r.End))
	}
	if r.Top < 0 || r.Top > v {
		return fmt.Errorf("engine: the %d likeliest tokens of %d", r.Top, v)
	}
	return nil
}

// reshapes reports whether tokens are drawn from another distribution than the model's.
func (r *Request) reshapes() bool { return r.Sampling.Reshapes() || r.MinTokens > 0 || r.Mask != nil }

// onHost reports whether the host must sample each token, because a graph cannot.
func (r *Request) onHost() bool {
	return r.Sampling.Adjusts() || r.Sampling.MinP > 0 || r.MinTokens > 0 || r.Mask != nil || r.Top > 0
}

// job is a request in the engine.
type job struct {
	Request
	task   schedule.Task
	ctx    context.Context
	reply  chan outcome // buffered: the loop never waits for a caller
	feed   *feed        // nil unless the caller takes tokens as they are sampled
	result Result
	counts *sampling.Counts // nil without penalties
	mask   *jobMask         // nil without a mask
}

// outcome is a result or an error.
type outcome struct {
	result *Result
	err    error
}

// newJob returns a job for a valid request.
func newJob(ctx context.Context, r Request, opts Options) *job {
	j := &job{
		Request: r,
		task:    schedule.Task{Prompt: r.Prompt, Adapter: r.Adapter.identity(), Limit: opts.Context, Single: r.onHost()},
		ctx:     ctx,
		reply:   make(chan outcome, 1),
	}
	if n := len(r.Prompt); r.MaxTokens > 0 {
		j.task.Limit = n + min(r.MaxTokens, opts.Context-n)
	}
	if r.Sampling.Adjusts() {
		j.counts = sampling.NewCounts(r.Prompt)
	}
	if r.Mask != nil {
		v := opts.Config.VocabSize
		j.mask = &jobMask{source: r.Mask, vocab: v, allowed: make([]uint32, (v+31)/32)}
	}
	return j
}

// accept adds a sampled token to the result and reports whether the reply ends with it. room is the number of tokens
// that may follow.
func (j *job) accept(t Token, room int) (done bool, err error) {
	r := &j.result
	r.add(t, j.reshapes(), j.Top > 0)
	if j.counts != nil {
		j.counts.Add(t.ID)
	}
	if j.mask != nil {
		err = j.mask.accept(t.ID)
	}
	return err == nil && j.ends(t.ID, room), err
}

// ends reports whether the reply ends with a token, and sets the reason.
func (j *job) ends(id int32, room int) bool {
	r := &j.result
	if slices.Contains(j.End, id) || j.mask != nil && j.mask.finished() {
		r.Reason = End
		return true
	}
	if j.Stop != nil {
		if why, stopped := j.Stop(id); stopped {
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
	c := decodeCall{
		token: row.Tokens[0], start: row.Start, blocks: row.Blocks, count: row.Samples, ends: j.End, sampling: j.Sampling,
	}
	for n := range c.count {
		c.uniform = append(c.uniform, sampling.Uniform(j.Seed, len(j.result.IDs)+n))
	}
	return c
}

// Stopper ends a reply at what the engine does not know of, such as a stop string. It is called with each token of one
// reply that is not in [Request].End, in order, by one goroutine, and returns whether the reply ends with that token,
// and why.
type Stopper func(id int32) (why Reason, done bool)

// StopText returns a [Stopper] for stop strings. add decodes a token and reports whether the text now contains one of
// them, as the Add method of a tokenizer's stream does.
func StopText(add func(id int32) (delta string, stopped bool)) Stopper {
	return func(id int32) (Reason, bool) {
		_, stopped := add(id)
		return Stopped, stopped
	}
}

// Token is a sampled token of a reply. See [Result] for what its numbers are.
type Token struct {
	ID               int32
	Logprob, Sampled float32
	Forced           bool
	Top              []Candidate
}

// Candidate is a token that might have been sampled.
type Candidate struct {
	ID      int32
	Logprob float32 // under the model
	Rank    int     // 1 for the likeliest; ties are in the order of ids
}

// add appends a token.
func (r *Result) add(t Token, reshaped, top bool) {
	if t.Forced && r.Forced == nil {
		r.Forced = make([]bool, len(r.IDs))
	}
	if r.Forced != nil {
		r.Forced = append(r.Forced, t.Forced)
	}
	r.IDs = append(r.IDs, t.ID)
	r.Logprobs = append(r.Logprobs, t.Logprob)
	if reshaped {
		r.Sampled = append(r.Sampled, t.Sampled)
	}
	if top {
		r.Top = append(r.Top, t.Top)
	}
}

// likeliest returns the n likeliest tokens in the order of their logprobs, ties in that of their ids.
func likeliest(logprobs []float32, n int) []Candidate {
	if n == 0 {
		return nil
	}
	best := make([]Candidate, 0, n+1)
	for i, lp := range logprobs {
		if len(best) == n && !(lp > best[n-1].Logprob) {
			continue
		}
		at, _ := slices.BinarySearchFunc(best, lp, func(c Candidate, lp float32) int {
			if c.Logprob >= lp {
				return -1
			}
			return 1
		})
		best = slices.Insert(best, at, Candidate{ID: int32(i), Logprob: lp})
		best = best[:min(len(best), n)]
	}
	for i := range best {
		best[i].Rank = i + 1
	}
	return best
}

// candidate returns a token with its rank.
func candidate(logprobs []float32, id int32) Candidate {
	lp, rank := logprobs[id], 1
	for i, other := range logprobs {
		if other > lp || other == lp && int32(i) < id {
			rank++
		}
	}
	return Candidate{id, lp, rank}
}
