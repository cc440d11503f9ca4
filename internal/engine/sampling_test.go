package engine

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/internal/grammar"
	"github.com/goart-dev/art/internal/graphx/graphtest"
	"github.com/goart-dev/art/internal/sampling"
	"github.com/goart-dev/art/model"
)

// pattern is a mask that allows other tokens at each position, one alone at every fourth. It ends after length tokens,
// which is never if that is 0.
type pattern struct {
	vocab, length int

	ids []int32
}

func (p *pattern) allows(id int) bool {
	n := len(p.ids)
	if p.length > 0 && n == p.length {
		return false
	}
	if n%4 == 3 {
		return id == 10+n
	}
	return (id+n)%3 == 0
}

func (p *pattern) Mask(dst []uint32) {
	for i := range dst {
		dst[i] = 1 << 31 // must be overwritten, or not be in the vocabulary
	}
	for id := range 32 * len(dst) {
		dst[id/32] &^= 1 << (id % 32)
		if p.allows(id) {
			dst[id/32] |= 1 << (id % 32)
		}
	}
}

func (p *pattern) Accept(id int32) error {
	if !p.allows(int(id)) {
		return fmt.Errorf("token %d at %d", id, len(p.ids))
	}
	p.ids = append(p.ids, id)
	return nil
}

func (p *pattern) Finished() bool { return p.length > 0 && len(p.ids) == p.length }

// mixedRequest has any settings together.
func mixedRequest(rng *rand.Rand, a *Adapter) Request {
	r := randomRequest(rng, a)
	one := func(of ...float64) float64 { return of[rng.IntN(len(of))] }
	r.Sampling.MinP = one(0, 0, 0.1)
	r.Sampling.Penalties = sampling.Penalties{
		Repetition: one(0, 0, 1.2), Presence: one(0, 0, 0.6), Frequency: one(0, 0, 0.2),
	}
	if rng.IntN(4) == 0 {
		r.Sampling.Bias = map[int32]float64{int32(rng.IntN(300)): 4, r.End[0]: -2}
	}
	r.MinTokens, r.Top = rng.IntN(3)*rng.IntN(6), rng.IntN(2)*rng.IntN(5)
	r.End = append(r.End, int32(rng.IntN(300)), 1<<20)
	if rng.IntN(4) == 0 {
		r.Mask = &pattern{vocab: 301, length: rng.IntN(3) * 4}
	}
	return r
}

// again returns the request with a fresh mask.
func again(r Request) Request {
	if p, ok := r.Mask.(*pattern); ok {
		r.Mask = &pattern{vocab: p.vocab, length: p.length}
	}
	return r
}

// scorer computes all logprobs of sequences in one pass without a cache.
type scorer struct {
	exec    *Exec
	weights []any
	vocab   int
}

func newScorer(t *testing.T, a *Adapter) *scorer {
	device := graphtest.Device(t)
	params, err := testWeights(t).Params(device)
	require.NoError(t, err)
	r := &runner{config: testConfig(), params: params}
	exec, err := NewExec(device, func(in []*Node) *Node {
		f, rest := r.forward(a, in)
		hidden, _ := f.Hidden(model.Input{Tokens: rest[0]})
		return f.LogProbs(Reshape(hidden, -1, r.config.HiddenSize))
	})
	require.NoError(t, err)
	t.Cleanup(exec.Finalize)
	return &scorer{exec, r.weights(a), r.config.VocabSize}
}

// rows returns the logprobs after each of ids [T, V].
func (s *scorer) rows(t *testing.T, ids []int32) []float32 {
	padded := make([]int32, (len(ids)+31)/32*32)
	copy(padded, ids)
	out, err := s.exec.Call(append(slices.Clip(s.weights), tensors.FromFlatDataAndDimensions(padded, 1, len(padded)))...)
	require.NoError(t, err)
	defer out[0].MustFinalizeAll()
	return tensors.MustCopyFlatData[float32](out[0])
}

// checkReply compares a reply with a scoring pass, bit for bit, and with what its request asks for.
func checkReply(t *testing.T, s *scorer, r Request, got *Result, name string) {
	t.Helper()
	rows := s.rows(t, slices.Concat(r.Prompt, got.IDs))
	shown := pattern{}
	for i, id := range got.IDs {
		row := rows[(len(r.Prompt)+i-1)*s.vocab:][:s.vocab]
		sameLogprob(t, row[id], got.Logprobs[i], "%s, token %d", name, i)
		if r.Top > 0 {
			requireLikeliest(t, row, r.Top, got.Top[i])
		}
		if r.Mask != nil {
			require.True(t, shown.allows(int(id)))
			require.Equal(t, i%4 == 3, got.Forced != nil && got.Forced[i], "%s, token %d", name, i)
			shown.ids = append(shown.ids, id)
		} else if i < r.MinTokens {
			require.NotContains(t, r.End, id, "%s, token %d", name, i)
		}
	}
	if p, ok := r.Mask.(*pattern); ok && p.length > 0 {
		require.LessOrEqual(t, len(got.IDs), p.length)
	}
	require.Equal(t, r.Top > 0, got.Top != nil)
	require.Equal(t, r.reshapes(), got.Sampled != nil)
	require.True(t, got.Forced == nil || r.Mask != nil && len(got.Forced) == len(got.IDs))
}

// requireLikeliest compares with a sorted row.
func requireLikeliest(t *testing.T, row []float32, n int, got []Candidate) {
	t.Helper()
	var all []Candidate
	for i, lp := range row {
		all = append(all, Candidate{ID: int32(i), Logprob: lp})
	}
	slices.SortStableFunc(all, func(a, b Candidate) int {
		if a.Logprob > b.Logprob {
			return -1
		}
		return map[bool]int{true: 1}[a.Logprob < b.Logprob]
	})
	for i := range all {
		all[i].Rank = i + 1
	}
	sameCandidates(t, all[:n], got)
}

// TestComplete_SettingsIndependentOfBatch: a reply with any settings is that of an engine which has it alone, and that
// of one that decodes many tokens a call where it can.
func TestComplete_SettingsIndependentOfBatch(t *testing.T) {
	adapters := []*Adapter{nil, onDevice(t, testAdapter(t, 8))}
	rng := rand.New(rand.NewPCG(testSeed, 81))
	requests := make([]Request, 40)
	for i := range requests {
		requests[i] = mixedRequest(rng, adapters[rng.IntN(2)])
		if !requests[i].onHost() {
			requests[i].Sampling.TopK, requests[i].Sampling.TopP = 0, 1 // the CPU device lacks operations for these
		}
	}
	fresh := func() (list []Request) {
		for _, r := range requests {
			list = append(list, again(r))
		}
		return list
	}
	crowded := all(t, testEngine(t, 7), fresh())
	likeSteps(t, crowded, all(t, decodeEngine(t, graphtest.Device(t), 4, 5), fresh()), 0)
	alone := testEngine(t, 1)
	for i, r := range fresh() {
		got := all(t, alone, []Request{r})[0]
		sameReply(t, crowded[i], got, "request %d", i)
	}
}

// distribution is what the settings of a job make of logits, by their formulas in float64.
func distribution(logits []float64, j *job, reply []int32) []float64 {
	z := slices.Clone(logits)
	for i := range z {
		id, n := int32(i), 0.0
		for _, other := range reply {
			if other == id {
				n++
			}
		}
		z[i] += j.Sampling.Bias[id]
		if r := j.Sampling.Repetition; r != 0 && (n > 0 || slices.Contains(j.Prompt, id)) {
			z[i] = min(z[i]/r, z[i]*r) // r is above 1 here
		}
		z[i] -= j.Sampling.Frequency*n + j.Sampling.Presence*min(n, 1)
		forced := j.Mask != nil && len(reply)%4 == 3
		masked := j.Mask != nil && !j.Mask.(*pattern).allows(i)
		if masked || !forced && len(reply) < j.MinTokens && slices.Contains(j.End, id) {
			z[i] = math.Inf(-1)
		}
	}
	best, total := slices.Max(z), 0.0
	p := make([]float64, len(z))
	for i := range z {
		p[i] = math.Exp((z[i] - best) / j.Sampling.Temperature)
		if p[i] < j.Sampling.MinP {
			p[i] = 0
		}
		total += p[i]
	}
	for i := range p {
		p[i] /= total
	}
	return p
}

// TestChoose_MatchesFormulas: tokens are drawn as often as the formulas of all settings together say, by a chi-square
// test, and with those logprobs; the logprobs of the policy stay what they are.
func TestChoose_MatchesFormulas(t *testing.T) {
	rng := rand.New(rand.NewPCG(testSeed, 82))
	const vocab, draws = 40, 4000
	for round := range 60 {
		logits, logprobs := make([]float64, vocab), make([]float32, vocab)
		sum := 0.0
		for i := range logits {
			logits[i] = float64(float32(1.5 * rng.NormFloat64()))
			sum += math.Exp(logits[i])
		}
		for i := range logprobs {
			logprobs[i] = float32(logits[i] - math.Log(sum))
		}
		r := mixedRequest(rng, nil)
		r.Sampling.Temperature, r.Sampling.TopP, r.Sampling.TopK = []float64{1, 0.7}[round%2], 1, 0
		r.Prompt, r.End, r.Sampling.Bias = []int32{1, 2, 3}, []int32{5, 1 << 20}, map[int32]float64{7: 1, 8: -3}
		reply := []int32{9, 9, 6}[:rng.IntN(4)]
		j := newJob(context.Background(), r, Options{Config: &model.Config{VocabSize: vocab}, Context: 99})
		for _, id := range reply {
			j.counts.Add(id)
			if p, ok := r.Mask.(*pattern); ok {
				p.ids = append(p.ids, id) // whether or not it allows them
			}
		}
		j.result.IDs = reply
		want, counts := distribution(logits, j, reply), make([]float64, vocab)
		var scratch []float32
		for seed := range draws {
			j.Seed = uint64(seed)
			if j.mask != nil {
				j.mask.compute()
			}
			before := slices.Clone(logprobs)
			got, err := j.choose(logprobs, float32(math.Log(sum)), &scratch)
			require.NoError(t, err)
			require.Equal(t, before, logprobs)
			require.Equal(t, logprobs[got.ID], got.Logprob)
			require.InDelta(t, math.Log(want[got.ID]), got.Sampled, 1e-4, "%+v", r)
			counts[got.ID]++
		}
		require.Less(t, excess(counts, want, draws), 5.0, "%+v, seed %d", r, testSeed)
	}
}

// excess is Pearson's chi-square of counts, in standard deviations above its mean, over cells of at least 5.
func excess(counts, p []float64, n float64) float64 {
	chi, cells, rest := 0.0, 0.0, 0.0
	for i := range p {
		if p[i]*n < 5 {
			rest += counts[i] - p[i]*n
			continue
		}
		d := counts[i] - p[i]*n
		chi, cells = chi+d*d/(p[i]*n), cells+1
	}
	if cells < 2 {
		return 0
	}
	return (chi - (cells - 1)) / math.Sqrt(2*(cells-1))
}

// fixedMask allows always the same tokens.
type fixedMask []int32

func (m fixedMask) Mask(dst []uint32) {
	clear(dst)
	for _, id := range m {
		dst[id/32] |= 1 << (id % 32)
	}
}
func (fixedMask) Accept(id int32) error {
	if id == refused {
		return errors.New("refused")
	}
	return nil
}
func (fixedMask) Finished() bool { return true } // does not end the reply while tokens are allowed

// refused is not accepted by fixedMask.
const refused = 299

var _ Mask = (*grammar.Matcher)(nil)

// TestComplete_MaskAndEnds: MinTokens holds back the ends that a mask allows, unless there is nothing else, and a mask
// that allows nothing is an error.
func TestComplete_MaskAndEnds(t *testing.T) {
	e := testEngine(t, 2)
	ask := func(m Mask) (*Result, error) {
		return e.Complete(context.Background(), Request{
			Prompt: []int32{1, 2}, End: []int32{40, 41}, MinTokens: 3, MaxTokens: 9, Mask: m,
			Sampling: sampling.Settings{Temperature: 1, TopP: 1},
		})
	}
	r, err := ask(fixedMask{7, 40, 41})
	require.NoError(t, err)
	require.Equal(t, []int32{7, 7, 7}, r.IDs[:3])
	require.Equal(t, []bool{true, true, true}, r.Forced[:3])
	require.Equal(t, make([]float32, 3), r.Sampled[:3], "their probability is 1")
	r, err = ask(fixedMask{40, 41})
	require.NoError(t, err)
	require.Len(t, r.IDs, 1)
	require.Equal(t, End, r.Reason)
	require.Nil(t, r.Forced)
	_, err = ask(fixedMask{})
	require.ErrorIs(t, err, ErrMask)
	_, err = ask(fixedMask{refused})
	require.ErrorContains(t, err, "refused")
	_, err = ask(fixedMask{300})
	require.NoError(t, err, "the slot is free again")
}

// TestComplete_InvalidSettings: ids and numbers out of range are refused.
func TestComplete_InvalidSettings(t *testing.T) {
	e := testEngine(t, 1)
	for want, r := range map[string]Request{
		"token 301 is not in the vocabulary": {Sampling: sampling.Settings{Penalties: sampling.Penalties{Bias: map[int32]float64{301: 1}}}},
		"the 302 likeliest tokens of 301":    {Top: 302},
		"301 ids end the reply":              {MinTokens: 1, End: make([]int32, 301)},
	} {
		r.Prompt = []int32{1}
		_, err := e.Complete(context.Background(), r)
		require.ErrorContains(t, err, want)
	}
}
