package tinker

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"sync"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/server/access"
	"github.com/goart-dev/art/internal/tinkerwire"
)

type sampling struct {
	request *tinkerwire.SampleRequest
	prompt  []int32
	sampler *sampler
	future  *future
}

// asample serves POST asample.
func (s *Server) asample(w http.ResponseWriter, r *http.Request, t *user) error {
	body, err := s.readBody(w, r, t.limits.body(s.opts.MaxBody))
	if err != nil {
		return err
	}
	p, err := s.parseSample(t, body)
	if err != nil {
		return err
	}
	old, err := s.openFuture(p.future, false)
	if err != nil {
		return err
	}
	if old != nil {
		return sendJSON(w, http.StatusOK, old.answer)
	}
	s.touch(p.sampler.session)
	s.spawnFuture("a sample", p.future, func() *outcome { return s.sample(p) })
	return sendJSON(w, http.StatusOK, p.future.answer)
}

// parseSample reads a request and checks it against the limits.
func (s *Server) parseSample(t *user, body []byte) (*sampling, error) {
	if err := checkCounts(t.limits.sampleCounts(), body); err != nil {
		return nil, err
	}
	req := &tinkerwire.SampleRequest{}
	if err := json.Unmarshal(body, req); err != nil {
		return nil, fail(http.StatusBadRequest, "the body of asample cannot be read: "+err.Error())
	}
	p := &sampling{request: req}
	var err error
	if p.prompt, err = req.Prompt.Tokens(); err != nil {
		return nil, fail(http.StatusBadRequest, err.Error())
	}
	req.Prompt = tinkerwire.Input{} // held once
	if req.NumSamples == 0 {
		req.NumSamples = 1
	}
	if err := checkSample(req, len(p.prompt), &t.limits); err != nil {
		return nil, err
	}
	if p.sampler, err = s.samplerOf(t, req); err != nil {
		return nil, err
	}
	// A request without a seq_id is always a new one.
	from := &p.sampler.record
	id := from.ID + ":" + rand.Text()
	if req.SeqID != nil {
		id = fmt.Sprintf("%s:%d", from.ID, *req.SeqID)
	}
	p.future = &future{
		id: id, tenant: t.tenant, key: t.key.Key(), scope: access.Sample, project: from.Project, run: from.Run,
		base: from.Base, session: p.sampler.session, digest: sha256.Sum256(body), answer: &tinkerwire.Result{RequestID: id},
		cost: queueEntry*int64(1+req.NumSamples) + int64(len(body)),
	}
	for i := range req.NumSamples {
		p.future.answer.SampleSequenceIDs = append(p.future.answer.SampleSequenceIDs, fmt.Sprintf("%s:%d", id, i))
	}
	return p, nil
}

// samplerOf returns the sampler that a request names: a sampling session, a path or a base.
func (s *Server) samplerOf(t *user, req *tinkerwire.SampleRequest) (*sampler, error) {
	if req.SessionID != "" {
		return s.findSampler(t, req.SessionID)
	}
	rec, err := s.describeSampler(t, req.BaseModel, req.ModelPath)
	if err != nil {
		return nil, err
	}
	rec.ID = t.name + samplerMark + req.BaseModel + " " + req.ModelPath
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.samplers[rec.ID] == nil {
		s.samplers[rec.ID] = &sampler{tenant: t.tenant, record: rec}
	}
	return s.samplers[rec.ID], nil
}

// maxTop is how many of the likeliest tokens package art lists.
const maxTop = 20

// checkSample refuses what is not supported, and what is too much.
func checkSample(req *tinkerwire.SampleRequest, prompt int, limits *Limits) error {
	reply := 1
	if req.Params.MaxTokens != nil {
		reply = max(*req.Params.MaxTokens, 0)
	}
	switch {
	case req.TargetLogprobs != nil:
		return fail(http.StatusBadRequest, "target_prompt_logprobs is not supported; use forward with cross_entropy")
	case req.PromptAltTokens > 0:
		return fail(http.StatusBadRequest, "prompt_alt_tokens_k is not supported")
	case req.RecordStability:
		return fail(http.StatusBadRequest, "record_stability_info is not supported; use a loss other than stable_reinforce")
	case max(req.TopPromptLogprobs, req.TopSampleLogprobs) > maxTop,
		min(req.TopPromptLogprobs, req.TopSampleLogprobs) < 0:
		return failf(http.StatusBadRequest, "topk_prompt_logprobs and topk_sample_logprobs are at most %d", maxTop)
	case prompt == 0:
		return fail(http.StatusBadRequest, "the prompt has no tokens")
	case req.NumSamples < 0 || req.NumSamples > limits.Samples:
		return failf(http.StatusBadRequest, "num_samples is %d, want 1 to %d", req.NumSamples, limits.Samples)
	case reply > limits.Tokens || prompt > limits.Tokens || (prompt+reply) > limits.Tokens/max(req.NumSamples, 1):
		return failf(http.StatusBadRequest, "prompt and samples have more than %d tokens", limits.Tokens)
	}
	return nil
}

// sample draws the samples of a request, each in a slot of its own.
func (s *Server) sample(p *sampling) *outcome {
	out := &tinkerwire.SampleOutput{Sequences: make([]tinkerwire.Sequence, p.request.NumSamples)}
	errs := make([]error, p.request.NumSamples+1)
	err := p.sampler.use(s.ctx, s, func(m *art.Model) error {
		var all sync.WaitGroup
		for i := range out.Sequences {
			all.Go(func() { errs[i] = s.inSlot(p, func() error { return p.draw(s.ctx, m, i, out) }) })
		}
		if p.request.PromptLogprobs {
			all.Go(func() { errs[len(out.Sequences)] = s.inSlot(p, func() error { return p.score(s, m, out) }) })
		}
		all.Wait()
		return errors.Join(errs...)
	})
	if err != nil {
		return s.failed("a sample", err)
	}
	u := access.Usage{PromptTokens: int64(len(p.prompt))}
	for i := range out.Sequences {
		u.SampledTokens += int64(len(out.Sequences[i].Tokens))
	}
	s.users.Charge(p.future.tenant.name, p.future.key, u)
	return &outcome{Sample: out}
}

// inSlot runs a part of a request when it is the tenant's turn.
func (s *Server) inSlot(p *sampling, f func() error) (err error) {
	run := cmp.Or(p.sampler.record.Run, p.sampler.record.ID) // each step of a run has a sampler
	_, slotErr := s.sampling.do(s.ctx, p.future.tenant.name, run, func() { err = s.protect("a sample", f) })
	return errors.Join(slotErr, err)
}

func (p *sampling) draw(ctx context.Context, m *art.Model, i int, out *tinkerwire.SampleOutput) error {
	from := &p.request.Params
	opts := &art.ChatOptions{Temperature: from.Temperature, TopP: from.TopP, MaxTokens: from.MaxTokens, Seed: p.seed(i)}
	if from.TopK != nil && *from.TopK > 0 {
		opts.TopK = from.TopK
	}
	if k := p.request.TopSampleLogprobs; k > 0 {
		opts.TopLogprobs = &k
	}
	opts.Stop, opts.StopTokenIDs = from.Stop.Texts, from.Stop.Tokens
	if from.Stop.Set && len(opts.Stop)+len(opts.StopTokenIDs) == 0 {
		opts.MinTokens = from.MaxTokens // end tokens are not sampled
	}
	if i == 0 && p.request.TopPromptLogprobs > 0 {
		opts.PromptLogprobs = &p.request.TopPromptLogprobs
	}
	reply, err := m.Sample(ctx, p.prompt, opts, nil)
	if err != nil {
		return err
	}
	sample := reply.Message.Sample
	if sample == nil {
		return errors.New("the backend returns no token ids of this model")
	}
	seq := tinkerwire.Sequence{StopReason: tinkerwire.StopStop, Tokens: sample.IDs, Logprobs: sample.Logprobs}
	if sample.Finish == art.FinishLength {
		seq.StopReason = tinkerwire.StopLength
	}
	if k := p.request.TopSampleLogprobs; k > 0 {
		seq.TopLogprobs = topLogprobs(reply.TopLogprobs, k, len(sample.IDs))
	}
	out.Sequences[i] = seq
	if opts.PromptLogprobs != nil {
		out.TopPromptLogprobs = topLogprobs(reply.PromptLogprobs, p.request.TopPromptLogprobs, len(p.prompt))
	}
	return nil
}

// topLogprobs converts lists of likely tokens. Those of a prompt begin with the token that is there.
func topLogprobs(lists [][]art.TokenLogprob, k, rows int) *tinkerwire.TopLogprobs {
	top := tinkerwire.NewTopLogprobs(rows, k)
	for row, list := range lists[:min(len(lists), rows)] {
		for _, token := range list {
			if token.Rank >= 1 && token.Rank <= k {
				at := row*k + token.Rank - 1
				top.IDs[at], top.Logprobs[at] = token.ID, token.Logprob
			}
		}
	}
	return top
}

// score computes the logprobs of the prompt.
func (p *sampling) score(s *Server, m *art.Model, out *tinkerwire.SampleOutput) error {
	logprobs := make([]float32, len(p.prompt))
	if len(p.prompt) > 1 {
		list, _, err := s.backend.Logprobs(s.ctx, m, p.prompt)
		if err != nil {
			return err
		}
		copy(logprobs[1:], list)
	}
	undefined := 1
	if n := p.request.PromptLogprobsLastN; n != nil {
		undefined = max(undefined, len(logprobs)-*n)
	}
	for i := range min(undefined, len(logprobs)) {
		logprobs[i] = float32(math.NaN())
	}
	out.PromptLogprobs = logprobs
	return nil
}

// seed derives the seed of sample i from that of the request, or from the request's id: a repeated request has the same
// samples. The first sample has the seed itself.
func (p *sampling) seed(i int) *uint64 {
	var seed uint64
	if given := p.request.Params.Seed; given != nil {
		seed = uint64(*given)
	} else {
		seed = hash([]byte(p.future.id))
	}
	if i > 0 {
		seed = hash(binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, seed), uint64(i)))
	}
	return &seed
}

func hash(b []byte) uint64 {
	sum := sha256.Sum256(b)
	return binary.LittleEndian.Uint64(sum[:])
}
