package engine

import (
	"slices"
)

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
