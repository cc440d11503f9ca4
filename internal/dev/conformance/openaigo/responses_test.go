package openaigo

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/server"
	client "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
)

// thoughtful is a reply with all that one can have.
var thoughtful = art.Message{
	Reasoning: "Hm", Content: "Looking.",
	ToolCalls: []art.ToolCall{{ID: "c1", Name: "look", Arguments: `{"at":1}`}},
}

// responseParams is a request with a tool.
func responseParams() responses.ResponseNewParams {
	return responses.ResponseNewParams{
		Model: "gpt-4o", Instructions: client.String("Be brief."),
		Input: responses.ResponseNewParamsInputUnion{OfString: client.String("Hello")},
		Tools: []responses.ToolUnionParam{{OfFunction: &responses.FunctionToolParam{
			Name: "look", Parameters: map[string]any{"type": "object"}, Strict: client.Bool(true),
		}}},
	}
}

// checkResponse checks that a response is thoughtful.
func checkResponse(t *testing.T, got *responses.Response) {
	t.Helper()
	if got.Model != "player@3" || got.Status != "completed" || got.OutputText() != "Looking." || len(got.Output) != 3 {
		t.Fatalf("got %s", got.RawJSON())
	}
	if o := got.Output; o[0].Type != "reasoning" || o[2].CallID != "c1" || o[2].Name != "look" {
		t.Errorf("output is %+v", o)
	}
	if got.Usage.TotalTokens != 3 {
		t.Errorf("usage is %+v", got.Usage)
	}
}

// A conversation with a tool, over two turns, is recorded as one history.
func TestResponses_Tools(t *testing.T) {
	b := &backend{reply: thoughtful}
	m := art.NewModel("player", nil)
	if err := m.Register(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	h := server.Routes(func() []*art.Model { return []*art.Model{m} }, nil)
	c := client.NewClient(option.WithHTTPClient(&http.Client{Transport: server.Transport(h, "player")}),
		option.WithAPIKey("any"))
	recorded, err := art.Record(t.Context(), func(ctx context.Context) error {
		p := responseParams()
		got, err := c.Responses.New(ctx, p)
		if err != nil {
			return err
		}
		checkResponse(t, got)
		input := responses.ResponseInputParam{responses.ResponseInputItemParamOfMessage("Hello", "user")}
		for _, item := range got.Output { // as it came
			var param responses.ResponseInputItemUnionParam
			if err := json.Unmarshal([]byte(item.RawJSON()), &param); err != nil {
				return err
			}
			input = append(input, param)
		}
		output := responses.ResponseInputItemParamOfFunctionCallOutput("a wall")
		output.OfFunctionCallOutput.CallID = client.String("c1")
		input = append(input, output)
		p.Input = responses.ResponseNewParamsInputUnion{OfInputItemList: input}
		b.reply = art.Message{Content: "A wall."}
		_, err = c.Responses.New(ctx, p)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	roles := ""
	for _, m := range recorded.Messages {
		roles += string(m.Role) + " "
	}
	if roles != "system user assistant tool assistant " || len(recorded.AdditionalHistories) != 0 {
		t.Errorf("recorded %s and %d more histories", roles, len(recorded.AdditionalHistories))
	}
}

func TestResponses_Streaming(t *testing.T) {
	c := newClient(t, &backend{reply: thoughtful})
	stream := c.Responses.NewStreaming(t.Context(), responseParams())
	text, arguments := "", ""
	var last responses.ResponseStreamEventUnion
	for stream.Next() {
		switch last = stream.Current(); last.Type {
		case "response.output_text.delta":
			text += last.Delta
		case "response.function_call_arguments.delta":
			arguments += last.Delta
		}
	}
	if err := stream.Err(); err != nil {
		t.Fatal(err)
	}
	if text != "Looking." || arguments != `{"at":1}` || last.Type != "response.completed" {
		t.Errorf("text %q, arguments %q, last event %s", text, arguments, last.Type)
	}
	checkResponse(t, &last.Response)
}
