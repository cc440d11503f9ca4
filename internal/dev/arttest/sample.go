package arttest

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strings"

	"github.com/goart-dev/art"
)

// babble replies with 1 to 12 letters. Greedy ones do not depend on the seed.
func babble(_ context.Context, _ *art.Model, req *art.ChatRequest) (art.Message, error) {
	seed := req.Settings.Seed
	if req.Settings.Temperature == 0 {
		seed = 0
	}
	r := rand.New(rand.NewPCG(seed, hash(prompt(req))))
	letters := make([]byte, 1+r.IntN(12))
	for i := range letters {
		letters[i] = byte('a' + r.IntN(26))
	}
	return art.Assistant(string(letters)), nil
}

// respond cuts a reply to the request's limits and describes how it was made.
func respond(m *art.Model, step int, req *art.ChatRequest, reply art.Message) *art.ChatResponse {
	finish := art.FinishStop
	if len(reply.ToolCalls) > 0 {
		finish = art.FinishToolCalls
	}
	for _, stop := range req.Settings.Stop {
		reply.Content, _, _ = strings.Cut(reply.Content, stop)
	}
	text := []rune(reply.Content)
	if limit := req.Settings.MaxTokens; limit > 0 && len(text) > limit {
		text, finish = text[:limit], art.FinishLength
		reply.Content = string(text)
	}
	promptIDs, ids := tokens(prompt(req)), tokens(reply.Content)
	if !m.Options().Frozen {
		reply.Sample = &art.Sample{
			PromptIDs: promptIDs, IDs: ids, Logprobs: logprobs(ids), Settings: req.Settings, Step: step, Finish: finish,
		}
	}
	name := fmt.Sprintf("%s@%d", m.Name(), step)
	r := &art.ChatResponse{
		ID: fmt.Sprintf("fake-%x", hash(prompt(req)+reply.Content)), Model: name, Message: reply, Finish: finish,
		Usage: art.Usage{PromptTokens: len(promptIDs), CompletionTokens: len(ids)},
	}
	addLikeliest(r, req.Settings, promptIDs, ids)
	return r
}

// addLikeliest adds the logprobs that the settings ask for.
func addLikeliest(r *art.ChatResponse, s art.Sampling, promptIDs, ids []int32) {
	if r.TopLogprobs = nil; s.TopLogprobs > 0 {
		r.TopLogprobs = likeliest(ids, s.TopLogprobs)
	}
	if r.PromptLogprobs = nil; s.PromptLogprobs != nil {
		r.PromptLogprobs = append([][]art.TokenLogprob{nil}, likeliest(promptIDs[1:], *s.PromptLogprobs+1)...)
	}
}

// likeliest makes up n tokens for each position, the given one first: every next id is less likely by a factor of e.
func likeliest(ids []int32, n int) [][]art.TokenLogprob {
	out, own := make([][]art.TokenLogprob, len(ids)), logprobs(ids)
	for i, id := range ids {
		for k := range n {
			t := art.TokenLogprob{ID: id + int32(k), Logprob: own[i] - float32(k), Rank: k + 1}
			out[i] = append(out[i], t)
		}
	}
	return out
}

// prompt renders a request as text.
func prompt(req *art.ChatRequest) string {
	var b strings.Builder
	for i := range req.Tools {
		fmt.Fprintf(&b, "tool:%s\n", req.Tools[i].Name)
	}
	for i := range req.Messages {
		fmt.Fprintf(&b, "%s:%s\n", req.Messages[i].Role, req.Messages[i].Content)
	}
	return b.String()
}

// tokens returns the runes of s.
func tokens(s string) []int32 { return []int32(s) }

// logprobs makes up a logprob between -1 and 0 for each token.
func logprobs(ids []int32) []float32 {
	out := make([]float32, len(ids))
	for i, id := range ids {
		out[i] = -float32(id%16+1) / 16
	}
	return out
}

// hash returns a number for a text.
func hash(s string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(s))
	return h.Sum64()
}
