package engine

import (
	"math"

	"github.com/goart-dev/art/model"
)

// choose samples the next token of a reply from the logprobs of a row, which it does not change. scratch is memory for
// scores that differ from them.
func (j *job) choose(logprobs []float32, normalizer float32, scratch *[]float32) (Token, error) {
	if !j.reshapes() {
		id := model.SamplePlain(logprobs, j.Seed, len(j.result.IDs))
		return Token{ID: id, Logprob: logprobs[id], Sampled: logprobs[id], Top: likeliest(logprobs, j.Top)}, nil
	}
	scores, allowed := logprobs, len(logprobs)
	early := len(j.result.IDs) < j.MinTokens
	if j.counts != nil || j.mask != nil || early {
		scores = append((*scratch)[:0], logprobs...)
		*scratch = scores
		allowed = j.edit(scores, normalizer, early)
	}
	if allowed == 0 {
		return Token{}, ErrMask
	}
	id, sampled := model.Sample(scores, j.Sampling, j.Seed, len(j.result.IDs))
	return Token{
		ID: id, Logprob: logprobs[id], Sampled: sampled, Forced: j.mask != nil && allowed == 1,
		Top: likeliest(logprobs, j.Top),
	}, nil
}

// edit changes the scores of single tokens, and returns how many tokens are allowed. early says that the reply must not
// end yet.
func (j *job) edit(scores []float32, normalizer float32, early bool) (allowed int) {
	if j.counts != nil {
		j.Sampling.Adjust(scores, float64(normalizer), j.counts)
	}
	if j.mask != nil {
		if early {
			j.mask.bar(j.End)
		}
		return j.mask.apply(scores)
	}
	if early {
		bar(scores, j.End)
	}
	return len(scores)
}

// bar gives tokens, of which some may not be in the vocabulary, probability zero.
func bar(scores []float32, ids []int32) {
	for _, id := range ids {
		if id >= 0 && int(id) < len(scores) {
			scores[id] = float32(math.Inf(-1))
		}
	}
}
