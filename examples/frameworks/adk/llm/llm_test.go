package llm_test

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"testing"

	"google.golang.org/adk/v2/model"
	"google.golang.org/genai"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/examples/frameworks/adk/llm"
	"github.com/goart-dev/art/internal/dev/arttest"
)

// ask sends a request to a model that gives one reply, and returns what each side has seen.
func ask(t *testing.T, reply art.Message, req *model.LLMRequest) (
	seen *art.ChatRequest, got *model.LLMResponse, err error,
) {
	t.Helper()
	b := &arttest.Backend{Reply: func(_ context.Context, _ *art.Model, r *art.ChatRequest) (art.Message, error) {
		seen = r
		return reply, nil
	}}
	m := art.NewModel("m", nil)
	if err := m.Register(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	for response, responseErr := range llm.New(m, nil).GenerateContent(t.Context(), req, false) {
		got, err = response, responseErr
	}
	return seen, got, err
}

// All of a conversation arrives: instruction, texts, calls, results and the schema of a function in either form.
func TestLLM_Request(t *testing.T) {
	req := &model.LLMRequest{
		Config: &genai.GenerateContentConfig{
			SystemInstruction: genai.NewContentFromText("Be brief.", genai.RoleUser), MaxOutputTokens: 7,
			Temperature: new(float32(0.5)), StopSequences: []string{"END"},
			Tools: []*genai.Tool{{FunctionDeclarations: []*genai.FunctionDeclaration{
				{Name: "a", Parameters: &genai.Schema{Type: genai.TypeObject, Properties: map[string]*genai.Schema{
					"x": {Type: genai.TypeArray, Items: &genai.Schema{Type: genai.TypeInteger}},
				}, Required: []string{"x"}}},
				{Name: "b", ParametersJsonSchema: map[string]any{"type": "object"}},
			}}},
		},
		Contents: []*genai.Content{
			genai.NewContentFromText("Look.", genai.RoleUser),
			{Role: genai.RoleModel, Parts: []*genai.Part{
				{Text: "Hm", Thought: true}, {Text: "Looking."},
				{FunctionCall: &genai.FunctionCall{ID: "1", Name: "a", Args: map[string]any{"x": []int{1}}}},
			}},
			{Role: genai.RoleUser, Parts: []*genai.Part{
				{FunctionResponse: &genai.FunctionResponse{ID: "1", Response: map[string]any{"result": "a wall"}}},
				{FunctionResponse: &genai.FunctionResponse{ID: "2", Response: map[string]any{"error": "no"}}},
				{FunctionResponse: &genai.FunctionResponse{ID: "3", Response: map[string]any{"result": 1, "more": 2}}},
			}},
		},
	}
	seen, got, err := ask(t, art.Assistant("Yes."), req)
	if err != nil {
		t.Fatal(err)
	}
	want := []art.Message{
		art.System("Be brief."), art.User("Look."),
		{Role: art.RoleAssistant, Content: "Looking.", ToolCalls: []art.ToolCall{{ID: "1", Name: "a", Arguments: `{"x":[1]}`}}},
		art.ToolResult("1", "a wall"), art.ToolResult("2", "Error: no"), art.ToolResult("3", `{"more":2,"result":1}`),
	}
	if !reflect.DeepEqual(seen.Messages, want) {
		t.Errorf("%+v, want %+v", seen.Messages, want)
	}
	const schema = `{"properties":{"x":{"items":{"type":"integer"},"type":"array"}},"required":["x"],"type":"object"}`
	if len(seen.Tools) != 2 || string(seen.Tools[0].Parameters) != schema {
		t.Errorf("%s", seen.Tools[0].Parameters)
	}
	if s := seen.Settings; s.Temperature != 0.5 || s.MaxTokens != 7 || !reflect.DeepEqual(s.Stop, []string{"END"}) {
		t.Errorf("%+v", s)
	}
	if got.Content.Parts[0].Text != "Yes." || got.FinishReason != genai.FinishReasonStop || got.AvgLogprobs == 0 {
		t.Errorf("%+v", got)
	}
}

// A call comes back to the model as it wrote it, also when its arguments are no JSON, or large numbers.
func TestLLM_CallsReturnAsWritten(t *testing.T) {
	for _, arguments := range []string{`{"n": 12345678901234567890}`, `{"n": `, `[1]`, `{} {}`, ``} {
		reply := art.Message{Role: art.RoleAssistant, ToolCalls: []art.ToolCall{{ID: "1", Name: "a", Arguments: arguments}}}
		_, got, err := ask(t, reply, &model.LLMRequest{Contents: genai.Text("Go.")})
		if err != nil {
			t.Fatal(err)
		}
		seen, _, err := ask(t, art.Assistant("ok"), &model.LLMRequest{Contents: []*genai.Content{
			genai.NewContentFromText("Go.", genai.RoleUser), got.Content,
		}})
		if err != nil {
			t.Fatal(err)
		}
		back := seen.Messages[1].ToolCalls[0].Arguments
		var x, y json.RawMessage
		same := back == arguments
		if json.Unmarshal([]byte(arguments), &x) == nil && json.Unmarshal([]byte(back), &y) == nil {
			same = same || back == `{"n":12345678901234567890}`
		}
		if !same {
			t.Errorf("%q came back as %q", arguments, back)
		}
	}
}

// What a model of text cannot do is an error.
func TestLLM_Unsupported(t *testing.T) {
	image := &genai.Part{InlineData: &genai.Blob{MIMEType: "image/png", Data: []byte{1}}}
	for name, req := range map[string]*model.LLMRequest{
		"image":  {Contents: []*genai.Content{{Role: genai.RoleUser, Parts: []*genai.Part{image}}}},
		"schema": {Contents: genai.Text("Go."), Config: &genai.GenerateContentConfig{ResponseSchema: &genai.Schema{}}},
		"search": {Contents: genai.Text("Go."), Config: &genai.GenerateContentConfig{
			Tools: []*genai.Tool{{GoogleSearch: &genai.GoogleSearch{}}},
		}},
	} {
		if _, _, err := ask(t, art.Assistant("ok"), req); !errors.Is(err, art.ErrUnsupported) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
