package openaigo

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/server"
	client "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/shared"
)

// backend answers with a fixed reply, or fails.
type backend struct {
	art.Backend // the methods that are not called stay nil
	reply       art.Message
	err         error
	last        *art.ChatRequest
}

func (b *backend) Register(context.Context, *art.Model) (int, error) { return 3, nil }

func (b *backend) Complete(_ context.Context, m *art.Model, req *art.ChatRequest) (*art.ChatResponse, error) {
	b.last = req
	if b.err != nil {
		return nil, b.err
	}
	reply := b.reply
	reply.Role = art.RoleAssistant
	reply.Sample = &art.Sample{PromptIDs: []int32{7}, IDs: []int32{72, 105}, Logprobs: []float32{-0.25, -0.5}, Step: 3}
	return &art.ChatResponse{
		ID: "chatcmpl-1", Model: m.Name() + "@3", Message: reply, Finish: finish(reply),
		Usage: art.Usage{PromptTokens: 1, CompletionTokens: 2},
	}, nil
}

// finish returns why a reply ended.
func finish(m art.Message) string {
	if len(m.ToolCalls) > 0 {
		return art.FinishToolCalls
	}
	return art.FinishStop
}

// Handler implements [art.HTTPServer].
func (b *backend) Handler(*art.HandlerOptions) (http.Handler, error) { return nil, art.ErrUnsupported }

// Transport implements [art.HTTPServer].
func (b *backend) Transport(m *art.Model) http.RoundTripper {
	return server.Transport(server.Routes(func() []*art.Model { return []*art.Model{m} }, nil), m.Name())
}

// newClient returns OpenAI's client, answered by b in process.
func newClient(t *testing.T, b *backend) client.Client {
	t.Helper()
	m := art.NewModel("player", nil)
	if err := m.Register(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	h := server.Routes(func() []*art.Model { return []*art.Model{m} }, &server.Config{
		Tokens: func(_ *art.Model, id int32) []byte { return []byte{byte(id)} },
	})
	return client.NewClient(
		option.WithHTTPClient(&http.Client{Transport: server.Transport(h, "player")}),
		option.WithAPIKey("any"),
	)
}

// params is a request that names another model.
func params() client.ChatCompletionNewParams {
	return client.ChatCompletionNewParams{
		Model:    "gpt-4o",
		Messages: []client.ChatCompletionMessageParamUnion{client.SystemMessage("Be brief."), client.UserMessage("Hello")},
	}
}

// look is a tool.
var look = client.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{
	Name: "look",
	Parameters: shared.FunctionParameters{
		"type": "object", "properties": map[string]any{"at": map[string]any{"type": "integer"}},
	},
})

func TestClient_Plain(t *testing.T) {
	b := &backend{reply: art.Message{Content: "Hi"}}
	c := newClient(t, b)
	p := params()
	p.Temperature, p.Seed, p.MaxCompletionTokens = client.Float(0.5), client.Int(9), client.Int(20)
	p.Stop = client.ChatCompletionNewParamsStopUnion{OfStringArray: []string{"END"}}
	p.Logprobs = client.Bool(true)
	got, err := c.Chat.Completions.New(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	choice := got.Choices[0]
	if got.Model != "player@3" || choice.Message.Content != "Hi" || choice.FinishReason != "stop" ||
		got.Usage.TotalTokens != 3 {
		t.Errorf("got %s", got.RawJSON())
	}
	if tokens := choice.Logprobs.Content; len(tokens) != 2 || tokens[0].Token != "H" || tokens[1].Logprob != -0.5 {
		t.Errorf("logprobs: %+v", tokens)
	}
	want := art.Sampling{Temperature: 0.5, TopP: 1, MaxTokens: 20, Seed: 9}
	settings := b.last.Settings
	if len(settings.Stop) != 1 || settings.Stop[0] != "END" {
		t.Errorf("stop strings are %q", settings.Stop)
	}
	if settings.Temperature != want.Temperature || settings.MaxTokens != want.MaxTokens || settings.Seed != want.Seed {
		t.Errorf("settings are %+v, want %+v", settings, want)
	}
	if len(b.last.Messages) != 2 || b.last.Messages[0].Role != art.RoleSystem || b.last.Messages[1].Content != "Hello" {
		t.Errorf("messages are %+v", b.last.Messages)
	}
}

func TestClient_Tools(t *testing.T) {
	b := &backend{reply: art.Message{ToolCalls: []art.ToolCall{{ID: "c1", Name: "look", Arguments: `{"at":1}`}}}}
	c := newClient(t, b)
	p := params()
	p.Tools = []client.ChatCompletionToolUnionParam{look}
	got, err := c.Chat.Completions.New(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	if len(b.last.Tools) != 1 || b.last.Tools[0].Name != "look" {
		t.Errorf("tools are %+v", b.last.Tools)
	}
	choice := got.Choices[0]
	if choice.FinishReason != "tool_calls" || len(choice.Message.ToolCalls) != 1 {
		t.Fatalf("got %s", got.RawJSON())
	}
	if call := choice.Message.ToolCalls[0]; call.ID != "c1" || call.Function.Name != "look" ||
		call.Function.Arguments != `{"at":1}` {
		t.Errorf("call is %+v", call)
	}

	// The second turn sends the call and its result back.
	p.Messages = append(p.Messages, choice.Message.ToParam(), client.ToolMessage("a wall", "c1"))
	b.reply = art.Message{Content: "A wall."}
	if _, err := c.Chat.Completions.New(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	m := b.last.Messages
	if len(m) != 4 || m[2].ToolCalls[0].Arguments != `{"at":1}` || m[3].ToolCallID != "c1" || m[3].Content != "a wall" {
		t.Errorf("messages are %+v", m)
	}
}

func TestClient_Streaming(t *testing.T) {
	calls := []art.ToolCall{
		{ID: "c1", Name: "look", Arguments: `{"at":1}`}, {ID: "c2", Name: "look", Arguments: `{"at":2}`},
	}
	c := newClient(t, &backend{reply: art.Message{Content: "Looking.", ToolCalls: calls}})
	p := params()
	p.Tools = []client.ChatCompletionToolUnionParam{look}
	p.StreamOptions = client.ChatCompletionStreamOptionsParam{IncludeUsage: client.Bool(true)}
	stream := c.Chat.Completions.NewStreaming(t.Context(), p)
	var all client.ChatCompletionAccumulator
	for stream.Next() {
		if chunk := stream.Current(); !all.AddChunk(chunk) {
			t.Errorf("the accumulator refused %s", chunk.RawJSON())
		}
	}
	if err := stream.Err(); err != nil {
		t.Fatal(err)
	}
	choice := all.Choices[0]
	if choice.Message.Content != "Looking." || choice.FinishReason != "tool_calls" || all.Usage.TotalTokens != 3 {
		t.Errorf("got %+v", all.ChatCompletion)
	}
	if got := choice.Message.ToolCalls; len(got) != 2 || got[0].ID != "c1" || got[1].Function.Arguments != `{"at":2}` {
		t.Errorf("calls are %+v", got)
	}
}

func TestClient_Errors(t *testing.T) {
	cases := []struct {
		err    error
		status int
		code   string
	}{
		{art.ErrContextLength, http.StatusBadRequest, "context_length_exceeded"},
		{art.ErrClosed, http.StatusServiceUnavailable, "backend_closed"},
	}
	for _, c := range cases {
		cl := newClient(t, &backend{err: c.err})
		_, err := cl.Chat.Completions.New(t.Context(), params())
		var got *client.Error
		if !errors.As(err, &got) || got.StatusCode != c.status || got.Code != c.code || got.Message != c.err.Error() {
			t.Errorf("%v: got %v", c.err, err)
		}
	}
}

// TestClient_FailureTellsTheAnswer: the client's error says only "400 Bad Request", but a Failure says why.
func TestClient_FailureTellsTheAnswer(t *testing.T) {
	m := art.NewModel("player", nil)
	if err := m.Register(t.Context(), &backend{}); err != nil {
		t.Fatal(err)
	}
	c := client.NewClient(option.WithHTTPClient(m.HTTPClient()), option.WithAPIKey("any"))
	groups, err := art.GatherGroups(t.Context(), []int{0}, func(ctx context.Context, _ int) (*art.Trajectory, error) {
		return art.Record(ctx, func(ctx context.Context) error {
			p := params()
			p.Verbosity = client.ChatCompletionNewParamsVerbosityHigh
			_, err := c.Chat.Completions.New(ctx, p)
			return err
		})
	}, &art.GatherOptions{GroupSize: 1, MaxFailures: 1})
	if err != nil {
		t.Fatal(err)
	}
	f := groups[0].Failures[0]
	const why = `verbosity is supported only as "medium"`
	if !strings.Contains(f.Message, why) || strings.Count(f.Message, "last answer") != 1 ||
		f.Type != "*apierror.Error" {
		t.Errorf("type %s, message %s", f.Type, f.Message)
	}
	t.Log(f.Message)
}

func TestClient_Canceled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c := newClient(t, &backend{reply: art.Message{Content: "Hi"}})
	if _, err := c.Chat.Completions.New(ctx, params()); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestClient_Models(t *testing.T) {
	c := newClient(t, &backend{})
	page, err := c.Models.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(page.Data) != 1 || page.Data[0].ID != "player" {
		t.Errorf("got %s", page.RawJSON())
	}
}

// TestClient_JSONSchema checks that a strict schema reaches the backend as the client sends it, and that its reply is
// parsed.
func TestClient_JSONSchema(t *testing.T) {
	b := &backend{reply: art.Message{Content: `{"city": "Rome", "people": 3}`}}
	c := newClient(t, b)
	p := params()
	schema := map[string]any{
		"type": "object", "required": []string{"city"}, "additionalProperties": false,
		"properties": map[string]any{"city": map[string]any{"type": "string"}, "people": map[string]any{"type": "integer"}},
	}
	p.ResponseFormat.OfJSONSchema = &shared.ResponseFormatJSONSchemaParam{
		JSONSchema: shared.ResponseFormatJSONSchemaJSONSchemaParam{Name: "place", Schema: schema, Strict: client.Bool(true)},
	}
	got, err := c.Chat.Completions.New(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	var place struct {
		City   string
		People int
	}
	if err := json.Unmarshal([]byte(got.Choices[0].Message.Content), &place); err != nil || place.City != "Rome" {
		t.Errorf("%v: got %s", err, got.RawJSON())
	}
	f := b.last.Settings.ResponseFormat
	want, _ := json.Marshal(schema)
	if f == nil || f.Type != art.FormatJSONSchema || f.Name != "place" || string(f.Schema) != string(want) {
		t.Errorf("got %+v, want %s", f, want)
	}
}
