package tinker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/tinkerwire"
	"github.com/goart-dev/art/tokenizer/chat"
)

// Complete renders the messages, samples at the service, and parses the reply.
func (b *Backend) Complete(ctx context.Context, m *art.Model, req *art.ChatRequest) (*art.ChatResponse, error) {
	const op = "complete"
	e, err := b.models.Get(op, m)
	if err != nil {
		return nil, err
	}
	template, prompt, err := e.render(ctx, op, req)
	if err != nil {
		return nil, err
	}
	read := func() *chat.ReplyReader {
		s := req.Settings
		reader := template.Read(prompt, req.Tools).Answering(req.Messages, s.Seed)
		return reader.Until(chat.Ends{IDs: s.StopTokenIDs, Text: s.Stop})
	}
	sample, err := b.draw(ctx, op, e, prompt, req.Settings, func() func(int32) bool {
		reader := read()
		return func(id int32) bool { reader.Add(id); return reader.Stopped() != "" }
	})
	if err != nil {
		return nil, err
	}
	reader := read()
	for _, id := range sample.IDs {
		reader.Add(id)
	}
	_, message, malformed := reader.Close()
	if sample.Finish == art.FinishStop && len(message.ToolCalls) > 0 {
		sample.Finish = art.FinishToolCalls
	}
	message.Sample = sample
	r := response(m, message)
	r.Malformed, r.Stopped = malformed, reader.Stopped()
	return r, nil
}

func (e *entry) render(ctx context.Context, op string, req *art.ChatRequest) (*chat.Template, []int32, error) {
	template, err := e.template.With(chat.Options{Args: req.TemplateArgs})
	var prompt []int32
	if err == nil {
		prompt, err = template.PromptContext(ctx, req.Messages, req.Tools)
	}
	if ctx.Err() != nil {
		return nil, nil, context.Cause(ctx)
	}
	if err != nil {
		return nil, nil, &art.Error{Op: op, Err: fmt.Errorf("%w: %w", art.ErrInvalid, err)}
	}
	return template, prompt, nil
}

func response(m *art.Model, message art.Message) *art.ChatResponse {
	s := message.Sample
	return &art.ChatResponse{
		ID: fmt.Sprintf("tinker-%x", s.Settings.Seed), Model: fmt.Sprintf("%s@%d", m.Name(), s.Step),
		Message: message, Finish: s.Finish,
		Usage: art.Usage{PromptTokens: len(s.PromptIDs), CompletionTokens: len(s.IDs)},
	}
}

// Sample continues a prompt of token ids.
func (b *Backend) Sample(
	ctx context.Context, m *art.Model, prompt []int32, s art.Sampling, piece func(art.Piece) error,
) (*art.ChatResponse, error) {
	const op = "sample"
	e, err := b.models.Get(op, m)
	if err != nil {
		return nil, err
	}
	stream := func() func(int32) bool {
		text := e.tokenizer.Stream(true, s.Stop...)
		return func(id int32) bool { _, stopped := text.Add(id); return stopped }
	}
	sample, err := b.draw(ctx, op, e, prompt, s, stream)
	if err != nil {
		return nil, err
	}
	text, content := e.tokenizer.Stream(true, s.Stop...), ""
	for _, id := range sample.IDs {
		if !slices.Contains(s.StopTokenIDs, id) {
			delta, _ := text.Add(id)
			content += delta
		}
	}
	message := art.Assistant(content + text.Flush())
	message.Sample = sample
	r := response(m, message)
	r.Stopped = text.Stopped()
	return r, piece(art.Piece{
		ID: r.ID, Model: r.Model, PromptIDs: prompt, IDs: sample.IDs, Logprobs: sample.Logprobs, Content: message.Content,
	})
}

// draw samples at the service. Stop strings are looked for here, since a request has either strings or token ids to
// stop at: what was sampled beyond one is dropped.
func (b *Backend) draw(
	ctx context.Context, op string, e *entry, prompt []int32, s art.Sampling, stop func() func(int32) bool,
) (*art.Sample, error) {
	if err := checkSettings(op, s); err != nil {
		return nil, err
	}
	params := tinkerwire.SamplingParams{
		Seed: new(b.limits.seed(s.Seed)), Temperature: &s.Temperature, TopP: &s.TopP,
		Stop: tinkerwire.Stop{Set: true, Tokens: slices.Concat(e.template.EndOfTurn(), s.StopTokenIDs)},
	}
	if s.MaxTokens > 0 {
		params.MaxTokens = &s.MaxTokens
	}
	if s.TopK > 0 {
		params.TopK = &s.TopK
	}
	now := e.serving.Load()
	out, err := b.sample(ctx, op, now, &tinkerwire.SampleRequest{
		NumSamples: 1, Prompt: tinkerwire.NewInput(prompt), Type: "sample", Params: params,
	})
	if err != nil {
		return nil, err
	}
	seq := out.Sequences[0]
	sample := &art.Sample{
		PromptIDs: prompt, IDs: seq.Tokens, Logprobs: seq.Logprobs, Settings: s, Step: now.step, Finish: art.FinishStop,
	}
	if seq.StopReason == tinkerwire.StopLength {
		sample.Finish = art.FinishLength
	}
	if len(s.Stop) > 0 {
		stopped := stop()
		for i, id := range sample.IDs {
			if stopped(id) {
				sample.IDs, sample.Logprobs, sample.Finish = sample.IDs[:i+1], sample.Logprobs[:i+1], art.FinishStop
				break
			}
		}
	}
	return sample, nil
}

// checkSettings refuses what the protocol has no field for.
func checkSettings(op string, s art.Sampling) error {
	if s.MinP == 0 && (s.RepetitionPenalty == 0 || s.RepetitionPenalty == 1) && s.PresencePenalty == 0 &&
		s.FrequencyPenalty == 0 && len(s.LogitBias) == 0 && s.MinTokens == 0 && !s.Restricts() && s.TopLogprobs == 0 &&
		s.PromptLogprobs == nil && s.AllowedTokenIDs == nil && len(s.BadWords) == 0 && !s.IgnoreEOS {
		return nil
	}
	const what = "min-p, penalties, logit bias, MinTokens, AllowedTokenIDs, BadWords, IgnoreEOS, a response format, " +
		"a forced tool or lists of logprobs"
	return &art.Error{
		Op: op, Err: fmt.Errorf("%w: %s", art.ErrUnsupported, what),
		Hint: "a Tinker service samples with temperature, top-p, top-k and stops",
	}
}

// maxLost is how often a sample is asked for again that the service has lost.
const maxLost = 3

// sample asks a sampler for one sample, and checks that it is whole. A sample that the service has lost, as it does
// when it is started again, is asked for under a new number.
func (b *Backend) sample(
	ctx context.Context, op string, now *serving, req *tinkerwire.SampleRequest,
) (*tinkerwire.SampleOutput, error) {
	var a *answer
	var err error
	for range 1 + maxLost {
		req.SessionID, req.SeqID = now.sampler, new(now.seq.Add(1)-1)
		a, err = b.operation(ctx, "asample", encode(req))
		var s *statusError
		if !errors.As(err, &s) || s.status != http.StatusGone {
			break
		}
	}
	if err != nil {
		return nil, err
	}
	prompt := len(req.Prompt.Chunks[0].Tokens)
	out := &tinkerwire.SampleOutput{}
	if a.proto() {
		out, err = tinkerwire.ParseSampleOutput(a.data)
	} else {
		err = json.Unmarshal(a.data, out)
	}
	if req.PromptLogprobs && len(out.PromptLogprobs) == prompt-1 { // SkyRL leaves out that of the first token
		out.PromptLogprobs = slices.Insert(out.PromptLogprobs, 0, float32(math.NaN()))
	}
	switch {
	case err != nil:
	case len(out.Sequences) != 1:
		err = fmt.Errorf("the result has %d samples, want 1", len(out.Sequences))
	case len(out.Sequences[0].Logprobs) != len(out.Sequences[0].Tokens):
		err = errors.New("the sample does not have a logprob for each token")
	case slices.ContainsFunc(out.Sequences[0].Logprobs, func(x float32) bool { return x != x }):
		err = fmt.Errorf("the sample: %w", errNaN)
	case req.PromptLogprobs && len(out.PromptLogprobs) != prompt:
		err = fmt.Errorf("the result has %d logprobs for a prompt of %d tokens", len(out.PromptLogprobs), prompt)
	case req.PromptLogprobs && slices.ContainsFunc(out.PromptLogprobs[1:], func(x float32) bool { return x != x }):
		err = fmt.Errorf("the prompt: %w", errNaN) // that of the first token is: there is none
	}
	if err != nil {
		return nil, b.broken(op, err)
	}
	return out, nil
}

// Logprobs scores ids with the newest step.
func (b *Backend) Logprobs(ctx context.Context, m *art.Model, ids []int32) ([]float32, int, error) {
	const op = "logprobs"
	e, err := b.models.Get(op, m)
	if err != nil {
		return nil, 0, err
	}
	now := e.serving.Load()
	logprobs, err := b.promptLogprobs(ctx, op, now, ids)
	if err != nil {
		return nil, 0, err
	}
	return logprobs[1:], now.step, nil
}

// promptLogprobs scores ids with a sampler. The first of them has no logprob.
func (b *Backend) promptLogprobs(ctx context.Context, op string, now *serving, ids []int32) ([]float32, error) {
	out, err := b.sample(ctx, op, now, &tinkerwire.SampleRequest{
		NumSamples: 1, Prompt: tinkerwire.NewInput(ids), Type: "sample", PromptLogprobs: true,
		Params: tinkerwire.SamplingParams{MaxTokens: new(1)},
	})
	if err != nil {
		return nil, err
	}
	return out.PromptLogprobs, nil
}

// Tokenize returns the ids of a prompt, and of a reply to it.
func (b *Backend) Tokenize(
	ctx context.Context, m *art.Model, req *art.ChatRequest, reply *art.Message,
) (prompt, ids []int32, err error) {
	const op = "tokenize"
	e, err := b.models.Get(op, m)
	if err != nil {
		return nil, nil, err
	}
	template, prompt, err := e.render(ctx, op, req)
	if err != nil || reply == nil {
		return prompt, nil, err
	}
	all, mask, err := template.TargetFrom(len(req.Messages), append(slices.Clone(req.Messages), *reply), req.Tools)
	if err != nil {
		return nil, nil, &art.Error{Op: op, Err: fmt.Errorf("%w: %w", art.ErrInvalid, err)}
	}
	from := slices.Index(mask, true)
	if from < 0 {
		return all, nil, nil
	}
	return all[:from], all[from:], nil
}

// Encode returns the ids of a text.
func (b *Backend) Encode(_ context.Context, m *art.Model, text string, special bool) ([]int32, error) {
	e, err := b.models.Get("encode", m)
	if err != nil {
		return nil, err
	}
	return e.tokenizer.Encode(text, special), nil
}

// Decode returns the text of ids.
func (b *Backend) Decode(_ context.Context, m *art.Model, ids []int32) (string, error) {
	e, err := b.models.Get("decode", m)
	if err != nil {
		return "", err
	}
	if _, err := tokenBytes("decode", e, ids); err != nil {
		return "", err
	}
	return e.tokenizer.Decode(ids, false), nil
}

// TokenBytes returns the bytes of each of ids.
func (b *Backend) TokenBytes(_ context.Context, m *art.Model, ids []int32) ([][]byte, error) {
	e, err := b.models.Get("token bytes", m)
	if err != nil {
		return nil, err
	}
	return tokenBytes("token bytes", e, ids)
}

// tokenBytes returns the bytes of each of ids, all of which must be in the vocabulary.
func tokenBytes(op string, e *entry, ids []int32) ([][]byte, error) {
	list := make([][]byte, len(ids))
	for i, id := range ids {
		if list[i] = e.tokenizer.TokenBytes(id); list[i] == nil {
			err := fmt.Errorf("%w: the vocabulary has no token %d", art.ErrInvalid, id)
			return nil, &art.Error{Op: op, Err: err, Hint: "send ids of this model's own tokenizer"}
		}
	}
	return list, nil
}
