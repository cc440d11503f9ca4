package anthropicgo

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	client "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/server"
)

// backend answers with a fixed reply, letter by letter, or fails after some letters.
type backend struct {
	art.Backend // the methods that are not called stay nil
	reply       art.Message
	err         error
	after       int // letters before err
	last        *art.ChatRequest
}

func (b *backend) Register(context.Context, *art.Model) (int, error) { return 3, nil }

func (b *backend) Complete(_ context.Context, m *art.Model, req *art.ChatRequest) (*art.ChatResponse, error) {
	b.last = req
	if b.err != nil && b.after == 0 {
		return nil, b.err
	}
	reply := b.reply
	reply.Role = art.RoleAssistant
	ids := []int32(reply.Content + ".")
	reply.Sample = &art.Sample{PromptIDs: []int32{7}, IDs: ids, Logprobs: make([]float32, len(ids)), Step: 3}
	finish := art.FinishStop
	if len(reply.ToolCalls) > 0 {
		finish = art.FinishToolCalls
	}
	return &art.ChatResponse{
		ID: "chatcmpl-1", Model: m.Name() + "@3", Message: reply, Finish: finish,
		Usage: art.Usage{PromptTokens: 1, CompletionTokens: len(ids)},
	}, nil
}

// Stream implements [art.Streamer].
func (b *backend) Stream(
	ctx context.Context, m *art.Model, req *art.ChatRequest, piece func(art.Piece) error,
) (*art.ChatResponse, error) {
	r, err := b.Complete(ctx, m, req)
	if err != nil {
		return nil, err
	}
	pieces := []art.Piece{{Reasoning: r.Message.Reasoning, PromptIDs: r.Message.Sample.PromptIDs}}
	for i, letter := range r.Message.Content {
		pieces = append(pieces, art.Piece{Content: string(letter), IDs: r.Message.Sample.IDs[i : i+1]})
	}
	pieces = append(pieces, art.Piece{ToolCalls: r.Message.ToolCalls})
	for i, p := range pieces {
		if b.err != nil && i == b.after {
			return nil, b.err
		}
		p.ID, p.Model = r.ID, r.Model
		if err := piece(p); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// Tokenize implements [art.Tokenizer]: the letters of the messages.
func (b *backend) Tokenize(
	_ context.Context, _ *art.Model, req *art.ChatRequest, _ *art.Message,
) (prompt, ids []int32, err error) {
	for _, m := range req.Messages {
		prompt = append(prompt, []int32(m.Content)...)
	}
	return prompt, nil, nil
}

func (b *backend) Encode(context.Context, *art.Model, string, bool) ([]int32, error) {
	return nil, art.ErrUnsupported
}

func (b *backend) Decode(context.Context, *art.Model, []int32) (string, error) {
	return "", art.ErrUnsupported
}

// newClient returns Anthropic's client of a server with a key.
func newClient(t *testing.T, b *backend, key string) *client.Client {
	t.Helper()
	m := art.NewModel("player", nil)
	if err := m.Register(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	h, err := server.Handler(func() []*art.Model { return []*art.Model{m} }, &server.Config{
		Tokens: func(_ *art.Model, id int32) []byte { return []byte(string(id)) },
	}, &art.HandlerOptions{Keys: []string{"secret"}})
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	c := client.NewClient(option.WithBaseURL(s.URL), option.WithAPIKey(key), option.WithMaxRetries(0))
	return &c
}

// params is a request with a tool.
func params() client.MessageNewParams {
	return client.MessageNewParams{
		Model: "player", MaxTokens: 20, System: []client.TextBlockParam{{Text: "Be brief."}},
		Messages: []client.MessageParam{client.NewUserMessage(client.NewTextBlock("Hello"))},
		Tools: []client.ToolUnionParam{{OfTool: &client.ToolParam{
			Name: "look",
			InputSchema: client.ToolInputSchemaParam{
				Properties: map[string]any{"at": map[string]any{"type": "integer"}},
			},
		}}},
	}
}

// thoughtful is a reply with all that one can have.
var thoughtful = art.Message{
	Reasoning: "Hm", Content: "Looking.",
	ToolCalls: []art.ToolCall{
		{ID: "c1", Name: "look", Arguments: `{"at":1}`}, {ID: "c2", Name: "look", Arguments: `{"at":2}`},
	},
}

// checkThoughtful checks that a message is thoughtful.
func checkThoughtful(t *testing.T, got *client.Message) {
	t.Helper()
	if len(got.Content) != 4 || got.StopReason != "tool_use" || got.ID != "msg_1" || got.Model != "player@3" {
		t.Fatalf("got %+v", got)
	}
	if c := got.Content; c[0].Thinking != "Hm" || c[1].Text != "Looking." || c[2].ID != "c1" ||
		string(c[2].Input) != `{"at":1}` || c[3].Name != "look" || string(c[3].Input) != `{"at":2}` {
		t.Errorf("content is %+v", c)
	}
	if got.Usage.InputTokens != 1 || got.Usage.OutputTokens != 9 {
		t.Errorf("usage is %+v", got.Usage)
	}
}

// A conversation with tools, over two turns, is recorded as one history.
func TestClient_Tools(t *testing.T) {
	b := &backend{reply: thoughtful}
	m := art.NewModel("player", nil)
	if err := m.Register(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	h := server.Routes(func() []*art.Model { return []*art.Model{m} }, nil)
	c := client.NewClient(option.WithHTTPClient(&http.Client{Transport: server.Transport(h, "player")}),
		option.WithAPIKey("any"))
	recorded, err := art.Record(t.Context(), func(ctx context.Context) error {
		p := params()
		got, err := c.Messages.New(ctx, p)
		if err != nil {
			return err
		}
		checkThoughtful(t, got)
		p.Messages = append(p.Messages, got.ToParam(), client.NewUserMessage(
			client.NewToolResultBlock("c1", "a wall", false), client.NewToolResultBlock("c2", "a door", false)))
		b.reply = art.Message{Content: "A wall and a door."}
		_, err = c.Messages.New(ctx, p)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	roles := ""
	for _, m := range recorded.Messages {
		roles += string(m.Role) + " "
	}
	if roles != "system user assistant tool tool assistant " || len(recorded.AdditionalHistories) != 0 ||
		len(recorded.Samples()) != 2 {
		t.Errorf("recorded %s and %d more histories", roles, len(recorded.AdditionalHistories))
	}
	if tools := b.last.Tools; len(tools) != 1 || tools[0].Name != "look" {
		t.Errorf("tools are %+v", tools)
	}
}

func TestClient_Streaming(t *testing.T) {
	stream := newClient(t, &backend{reply: thoughtful}, "secret").Messages.NewStreaming(t.Context(), params())
	var all client.Message
	texts := 0
	for stream.Next() {
		e := stream.Current()
		if e.Delta.Type == "text_delta" {
			texts++
		}
		if err := all.Accumulate(e); err != nil {
			t.Fatalf("%v: %s", err, e.RawJSON())
		}
	}
	if err := stream.Err(); err != nil {
		t.Fatal(err)
	}
	checkThoughtful(t, &all)
	if texts != len("Looking.") {
		t.Errorf("%d deltas of text", texts)
	}
}

func TestClient_CountTokens(t *testing.T) {
	c := newClient(t, &backend{}, "secret")
	got, err := c.Messages.CountTokens(t.Context(), client.MessageCountTokensParams{
		Model: "player", Messages: params().Messages,
	})
	if err != nil || got.InputTokens != 5 {
		t.Errorf("got %+v, error %v", got, err)
	}
}

// errorType returns the type that the client reads of an error.
func errorType(t *testing.T, err error) (status int, kind string) {
	t.Helper()
	var e *client.Error
	if !errors.As(err, &e) {
		t.Fatalf("got %v", err)
	}
	var body struct{ Error struct{ Type string } }
	if err := json.Unmarshal([]byte(e.RawJSON()), &body); err != nil {
		t.Fatalf("%v: %s", err, e.RawJSON())
	}
	return e.StatusCode, body.Error.Type
}

func TestClient_Errors(t *testing.T) {
	_, err := newClient(t, &backend{}, "wrong").Messages.New(t.Context(), params())
	if status, kind := errorType(t, err); status != http.StatusUnauthorized || kind != "authentication_error" {
		t.Errorf("got %d %s", status, kind)
	}
	_, err = newClient(t, &backend{err: art.ErrContextLength}, "secret").Messages.New(t.Context(), params())
	if status, kind := errorType(t, err); status != http.StatusBadRequest || kind != "invalid_request_error" {
		t.Errorf("got %d %s", status, kind)
	}
	broken := &backend{reply: thoughtful, err: errors.New("no device"), after: 3}
	stream := newClient(t, broken, "secret").Messages.NewStreaming(t.Context(), params())
	for stream.Next() {
		t.Log(stream.Current().Type)
	}
	if err := stream.Err(); err == nil || !strings.Contains(err.Error(), "no device") {
		t.Errorf("a stream that breaks off has the error %v", err)
	}
}
