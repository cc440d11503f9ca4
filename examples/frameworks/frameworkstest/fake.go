package frameworkstest

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/server"
)

// modelName is the name of the model.
const modelName = "player"

// fake is a backend whose n-th reply is sampled as the token n, and says so. Replies call tools at random, some of them
// wrongly, until there are enough results; in some conversations without end.
type fake struct {
	art.Backend // the methods that are not called stay nil
	seed        uint64
	rollouts    *server.Rollouts
	models      func() []*art.Model

	mu  sync.Mutex
	ids []int32
}

// Register implements [art.Backend].
func (f *fake) Register(_ context.Context, m *art.Model) (int, error) {
	f.models = func() []*art.Model { return []*art.Model{m} }
	return 3, nil
}

// Transport implements driver.HTTPServer.
func (f *fake) Transport(m *art.Model) http.RoundTripper {
	return server.Transport(server.Routes(f.models, nil), m.Name())
}

// Handler implements driver.HTTPServer.
func (f *fake) Handler(opts *art.HandlerOptions) (http.Handler, error) {
	return server.Handler(f.models, &server.Config{Rollouts: f.rollouts}, opts)
}

// Complete implements [art.Backend].
func (f *fake) Complete(_ context.Context, m *art.Model, req *art.ChatRequest) (*art.ChatResponse, error) {
	f.mu.Lock()
	n := int32(len(f.ids) + 1)
	f.ids = append(f.ids, n)
	f.mu.Unlock()
	reply, finish := f.reply(n, req), art.FinishStop
	if len(reply.ToolCalls) > 0 {
		finish = art.FinishToolCalls
	}
	reply.Sample = &art.Sample{
		PromptIDs: []int32{0}, IDs: []int32{n}, Logprobs: []float32{-float32(n) / 7}, Settings: req.Settings, Step: 3,
		Finish: finish,
	}
	return &art.ChatResponse{
		ID: fmt.Sprint("chatcmpl-", n), Model: m.Name() + "@3", Message: reply, Finish: finish,
		Usage: art.Usage{PromptTokens: 1, CompletionTokens: 1},
	}, nil
}

// reply writes the n-th reply.
func (f *fake) reply(n int32, req *art.ChatRequest) art.Message {
	rng := rand.New(rand.NewPCG(f.seed, uint64(n)))
	results := 0
	for i := range req.Messages {
		if req.Messages[i].Role == art.RoleTool {
			results++
		}
	}
	if results > 0 && rng.Float64() < 0.3 || results >= 4 {
		if !endless(req.Messages) {
			return art.Assistant(fmt.Sprintf("Answer %d", n))
		}
	}
	m := art.Message{Role: art.RoleAssistant}
	if rng.Float64() < 0.3 {
		m.Content = fmt.Sprintf("Looking (%d).", n)
	}
	for i := range 1 + rng.IntN(5)/4 {
		m.ToolCalls = append(m.ToolCalls, call(fmt.Sprintf("call-%d-%d", n, i), req.Tools, rng))
	}
	return m
}

// endless tells whether a conversation, one of eight, does not end.
func endless(messages []art.Message) bool {
	at := slices.IndexFunc(messages, func(m art.Message) bool { return m.Role == art.RoleUser })
	h := fnv.New32a()
	_, _ = h.Write([]byte(messages[at].Content)) // a hash does not fail
	return h.Sum32()%8 == 0
}

// call calls a tool. One call of twenty is of a tool that does not exist, and one has arguments that are no JSON.
func call(id string, tools []art.Tool, rng *rand.Rand) art.ToolCall {
	tool := tools[rng.IntN(len(tools))]
	var schema struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	c := art.ToolCall{ID: id, Name: tool.Name, Arguments: "{}"}
	if err := json.Unmarshal(tool.Parameters, &schema); err == nil {
		for name := range schema.Properties {
			c.Arguments = fmt.Sprintf(`{%q: "%d"}`, name, 1000+rng.IntN(9000))
		}
	}
	switch luck := rng.Float64(); {
	case luck < 0.05:
		c.Name = "no_such_tool"
	case luck < 0.1:
		c.Arguments = strings.TrimSuffix(c.Arguments, "}")
	}
	return c
}

// sampled returns the ids of all replies.
func (f *fake) sampled() []int32 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.ids)
}
