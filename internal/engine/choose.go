package engine

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/goart-dev/art/internal/sampling"
)

// choose samples the next token of a reply from the logprobs of a row, which it does not change. scratch is memory for
// scores that differ from them.
func (j *job) choose(logprobs []float32, normalizer float32, scratch *[]float32) (Token, error) {
	if !j.reshapes() {
		id := sampling.Plain(logprobs, j.Seed, len(j.result.IDs))
		return Token{ID: id, Logprob: logprobs[id], Sampled: logprobs[id], Top: likeliest(logprobs, j.Top)}, nil
	}
	scores, allowed := logprobs, len(logprobs)
	early := len(j.result.IDs) < j.MinTokens
	if j.counts != nil || j.mask != nil || early {
		scores = append((*scratch)[:0], logprobs...)
		*scratch = scores
		if j.counts != nil {
			j.Sampling.Adjust(scores, float64(normalizer), j.counts)
		}
		if j.mask != nil {
			if early { // the reply must not end yet
				j.mask.bar(j.End)
			}
			allowed = j.mask.apply(scores)
		} else if early {
			for _, id := range j.End { // some may not be in the vocabulary
				if id >= 0 && int(id) < len(scores) {
					scores[id] = float32(math.Inf(-1))
				}
			}
		}
	}
	if allowed == 0 {
		return Token{}, ErrMask
	}
	id, sampled := sampling.Sample(scores, j.Sampling, j.Seed, len(j.result.IDs))
	return Token{
		ID: id, Logprob: logprobs[id], Sampled: sampled, Forced: j.mask != nil && allowed == 1,
		Top: likeliest(logprobs, j.Top),
	}, nil
}

// ErrMask is the error of a request whose [Mask] allows no token.
var ErrMask = errors.New("engine: the mask of the request allows no token, and the reply has not ended")

// Mask restricts which tokens a reply may have: a grammar. Tokens that it does not allow have probability zero; the
// distribution over the others is renormalised. It belongs to one request, and is called by one goroutine at a time.
type Mask interface {
	// Mask overwrites dst with the tokens that may come next: bit id%32 of dst[id/32] is 1 for them. dst has the words
	// that the vocabulary of the model needs. A reply may end here where tokens of [Request].End are among them.
	Mask(dst []uint32)
	// Accept is told which token was sampled, of those that the last Mask allowed, end tokens among them. An error fails
	// the request.
	Accept(id int32) error
	// Finished reports whether the reply may end here. It does if moreover Mask allows no token.
	Finished() bool
}

// jobMask is the mask of a request and what it allows next.
type jobMask struct {
	source  Mask
	vocab   int
	allowed []uint32
	current bool // allowed is up to date
}

// compute brings allowed up to date.
func (m *jobMask) compute() {
	if m.current {
		return
	}
	m.source.Mask(m.allowed)
	if tail := m.vocab % 32; tail > 0 {
		m.allowed[len(m.allowed)-1] &= 1<<tail - 1
	}
	m.current = true
}

// accept tells the source of a token.
func (m *jobMask) accept(id int32) error {
	m.current = false
	if err := m.source.Accept(id); err != nil {
		return fmt.Errorf("engine: mask: %w", err)
	}
	return nil
}

// finished reports whether nothing may follow.
func (m *jobMask) finished() bool {
	if !m.source.Finished() {
		return false
	}
	m.compute()
	return count(m.allowed) == 0
}

// bar forbids tokens, unless no other is allowed.
func (m *jobMask) bar(ids []int32) {
	without := slices.Clone(m.allowed)
	for _, id := range ids { // some may be too large
		if id >= 0 && int(id/32) < len(without) {
			without[id/32] &^= 1 << (id % 32)
		}
	}
	if count(without) > 0 {
		m.allowed = without
	}
}

// apply sets the scores of tokens that are not allowed to minus infinity, and returns how many are allowed.
func (m *jobMask) apply(scores []float32) int {
	never := float32(math.Inf(-1))
	for i, word := range m.allowed {
		for block := ^word; block != 0; block &= block - 1 {
			if id := 32*i + bits.TrailingZeros32(block); id < len(scores) {
				scores[id] = never
			}
		}
	}
	return count(m.allowed)
}

// count returns the number of bits.
func count(set []uint32) (n int) {
	for _, word := range set {
		n += bits.OnesCount32(word)
	}
	return n
}
