package langchaingo

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/dev/arttest"
	"github.com/goart-dev/art/internal/dev/servertest"
	"github.com/tmc/langchaingo/agents"
	"github.com/tmc/langchaingo/chains"
	"github.com/tmc/langchaingo/llms"
	"github.com/tmc/langchaingo/llms/openai"
	"github.com/tmc/langchaingo/tools"
)

// look is a tool.
type look struct{}

// Name implements [tools.Tool].
func (look) Name() string { return "look" }

// Description implements [tools.Tool].
func (look) Description() string { return "Looks around." }

// Call implements [tools.Tool].
func (look) Call(context.Context, string) (string, error) { return "a wall", nil }

// A run of the agent with a tool is recorded. The agent replaces what the model said beside a call by a text of its
// own: the reply to it is a history of its own, which says so.
func TestAgent_Recorded(t *testing.T) {
	backend := &arttest.Backend{Reply: func(_ context.Context, _ *art.Model, req *art.ChatRequest) (art.Message, error) {
		if req.Messages[len(req.Messages)-1].Role == art.RoleTool {
			return art.Assistant("There is a wall."), nil
		}
		m := art.Message{Role: art.RoleAssistant, Content: "Looking."}
		m.ToolCalls = []art.ToolCall{{ID: "c1", Name: "look", Arguments: `{"__arg1": "ahead"}`}}
		return m, nil
	}}
	m := art.NewModel(servertest.Model, nil)
	if err := m.Register(t.Context(), backend); err != nil {
		t.Fatal(err)
	}
	llm, err := openai.New(openai.WithBaseURL("http://art/v1"), openai.WithToken(servertest.Key),
		openai.WithModel("any"), openai.WithHTTPClient(m.HTTPClient()))
	if err != nil {
		t.Fatal(err)
	}
	executor := agents.NewExecutor(agents.NewOpenAIFunctionsAgent(llm, []tools.Tool{look{}}))
	recorded, err := art.Record(t.Context(), func(ctx context.Context) error {
		got, err := chains.Run(ctx, executor, "What is there?")
		if err == nil && got != "There is a wall." {
			err = fmt.Errorf("the answer is %q", got)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(recorded.Samples()); n != 2 {
		t.Errorf("%d samples", n)
	}
	const why = "differs from that of the main history in its content"
	if len(recorded.Logs) != 1 || !strings.Contains(recorded.Logs[0], why) {
		t.Errorf("logs %q", recorded.Logs)
	}
}

// lookTool is look for a model that is called without an agent.
var lookTool = llms.Tool{Type: "function", Function: &llms.FunctionDefinition{
	Name: "look", Description: "Looks around.", Parameters: map[string]any{"type": "object"},
}}

// agent plays a rollout with langchaingo's model. It gives up a request at random, and sends it again.
func agent(t *testing.T) servertest.Agent {
	return func(ctx context.Context, r *servertest.Rollout, turns int) (received []string) {
		llm, err := openai.New(openai.WithBaseURL(r.Base+"/v1"), openai.WithToken(servertest.Key), openai.WithModel("any"))
		if err != nil {
			t.Error(err)
			return nil
		}
		var messages []llms.MessageContent
		for turn := range turns {
			messages = append(messages, llms.TextParts(llms.ChatMessageTypeHuman, fmt.Sprint("turn ", turn)))
			var reply *llms.ContentChoice
			for reply == nil && ctx.Err() == nil {
				limited, cancel := ctx, context.CancelFunc(func() {})
				if r.Rand.IntN(10) == 0 {
					limited, cancel = context.WithTimeout(ctx, time.Duration(r.Rand.IntN(1500))*time.Microsecond)
				}
				if got, err := ask(limited, llm, messages, r.Rand.IntN(2) == 0); err == nil {
					reply = got
				}
				cancel()
			}
			received = append(received, reply.Content)
			messages = append(messages, said(reply)...)
		}
		return received
	}
}

// ask asks for one reply, streamed or not.
func ask(
	ctx context.Context, llm llms.Model, messages []llms.MessageContent, stream bool,
) (*llms.ContentChoice, error) {
	opts := []llms.CallOption{llms.WithTools([]llms.Tool{lookTool})}
	if stream {
		opts = append(opts, llms.WithStreamingFunc(func(context.Context, []byte) error { return nil }))
	}
	got, err := llm.GenerateContent(ctx, messages, opts...)
	if err != nil {
		return nil, err
	}
	if len(got.Choices) == 0 || got.Choices[0].StopReason == "" {
		return nil, errors.New("the stream was cut")
	}
	return got.Choices[0], nil
}

// said returns the messages of a reply and of the results of its calls.
func said(reply *llms.ContentChoice) []llms.MessageContent {
	message := llms.TextParts(llms.ChatMessageTypeAI, reply.Content)
	var results []llms.MessageContent
	for _, call := range reply.ToolCalls {
		message.Parts = append(message.Parts, call)
		results = append(results, llms.MessageContent{Role: llms.ChatMessageTypeTool, Parts: []llms.ContentPart{
			llms.ToolCallResponse{ToolCallID: call.ID, Name: call.FunctionCall.Name, Content: "a wall"},
		}})
	}
	return append([]llms.MessageContent{message}, results...)
}

// Requests that fail, are cancelled and are sent again leave every sampled token in exactly one sample.
func TestRollouts_EveryTokenInOneSample(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	rollouts, turns := servertest.Settings(t)
	servertest.New(t, seed).Play(rollouts, turns, seed, agent(t))
}
