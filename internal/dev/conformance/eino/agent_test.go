package eino

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/cloudwego/eino-ext/components/model/openai"
	"github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/compose"
	"github.com/cloudwego/eino/flow/agent/react"
	"github.com/cloudwego/eino/schema"
	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/server"
	"github.com/goart-dev/art/internal/dev/arttest"
	"github.com/goart-dev/art/internal/dev/servertest"
)

// look is a tool.
type look struct{}

// Info implements [tool.BaseTool].
func (look) Info(context.Context) (*schema.ToolInfo, error) {
	params := schema.NewParamsOneOfByParams(map[string]*schema.ParameterInfo{"at": {Type: schema.Integer, Required: true}})
	return &schema.ToolInfo{Name: "look", Desc: "Looks around.", ParamsOneOf: params}, nil
}

// InvokableRun implements [tool.InvokableTool].
func (look) InvokableRun(context.Context, string, ...tool.Option) (string, error) {
	return "a wall", nil
}

// newAgent returns eino's ReAct agent. A streamed reply calls tools if any part of it does.
func newAgent(ctx context.Context, base string, client *http.Client) (*react.Agent, error) {
	chat, err := openai.NewChatModel(ctx, &openai.ChatModelConfig{
		BaseURL: base + "/v1", APIKey: servertest.Key, Model: "any", HTTPClient: client,
	})
	if err != nil {
		return nil, err
	}
	return react.NewAgent(ctx, &react.AgentConfig{
		ToolCallingModel: chat, MaxStep: 100, ToolsConfig: compose.ToolsNodeConfig{Tools: []tool.BaseTool{look{}}},
		StreamToolCallChecker: func(_ context.Context, reply *schema.StreamReader[*schema.Message]) (bool, error) {
			defer reply.Close()
			calls := false
			for {
				part, err := reply.Recv()
				if errors.Is(err, io.EOF) {
					return calls, nil
				}
				if err != nil {
					return false, err
				}
				calls = calls || len(part.ToolCalls) > 0
			}
		},
	})
}

// run lets the agent answer, streamed or not.
func run(ctx context.Context, a *react.Agent, messages []*schema.Message, stream bool) (*schema.Message, error) {
	if !stream {
		return a.Generate(ctx, messages)
	}
	parts, err := a.Stream(ctx, messages)
	if err != nil {
		return nil, err
	}
	whole, err := schema.ConcatMessageStream(parts)
	if err == nil && (whole.ResponseMeta == nil || whole.ResponseMeta.FinishReason == "") {
		err = errors.New("the stream was cut")
	}
	return whole, err
}

// A run with a tool is recorded as one history, streamed or not.
func TestReAct_OneHistory(t *testing.T) {
	backend := &arttest.Backend{Reply: func(_ context.Context, _ *art.Model, req *art.ChatRequest) (art.Message, error) {
		if req.Messages[len(req.Messages)-1].Role == art.RoleTool {
			return art.Assistant("There is a wall."), nil
		}
		m := art.Message{Role: art.RoleAssistant, Reasoning: "Hm", Content: "Looking."}
		m.ToolCalls = []art.ToolCall{{ID: "c1", Name: "look", Arguments: `{"at": 1}`}}
		return m, nil
	}}
	m := art.NewModel(servertest.Model, nil)
	if err := m.Register(t.Context(), backend); err != nil {
		t.Fatal(err)
	}
	routes := server.Routes(func() []*art.Model { return []*art.Model{m} }, nil)
	inProcess := &http.Client{Transport: server.Transport(routes, servertest.Model)}
	for _, stream := range []bool{false, true} {
		a, err := newAgent(t.Context(), "http://art", inProcess)
		if err != nil {
			t.Fatal(err)
		}
		recorded, err := art.Record(t.Context(), func(ctx context.Context) error {
			got, err := run(ctx, a, []*schema.Message{schema.UserMessage("What is there?")}, stream)
			if err == nil && got.Content != "There is a wall." {
				err = fmt.Errorf("the answer is %q", got.Content)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if n := len(recorded.Messages); n != 4 || len(recorded.AdditionalHistories) > 0 || len(recorded.Samples()) != 2 {
			t.Errorf("stream %v: %d messages, logs %q", stream, n, recorded.Logs)
		}
	}
}

// agent plays a rollout with the ReAct agent. It gives up a run at random, and begins it again.
func agent(t *testing.T) servertest.Agent {
	return func(ctx context.Context, r *servertest.Rollout, turns int) (received []string) {
		a, err := newAgent(ctx, r.Base, nil)
		if err != nil {
			t.Error(err)
			return nil
		}
		var messages []*schema.Message
		for turn := range turns {
			messages = append(messages, schema.UserMessage(fmt.Sprint("turn ", turn)))
			var reply *schema.Message
			for reply == nil && ctx.Err() == nil {
				limited, cancel := ctx, context.CancelFunc(func() {})
				if r.Rand.IntN(10) == 0 {
					limited, cancel = context.WithTimeout(ctx, time.Duration(r.Rand.IntN(1500))*time.Microsecond)
				}
				if got, err := run(limited, a, messages, r.Rand.IntN(2) == 0); err == nil {
					reply = got
				}
				cancel()
			}
			received = append(received, reply.Content)
			messages = append(messages, schema.AssistantMessage(reply.Content, nil))
		}
		return received
	}
}

// Runs that fail, are cancelled and begun again leave every sampled token in exactly one sample.
func TestRollouts_EveryTokenInOneSample(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	rollouts, turns := servertest.Settings(t)
	servertest.New(t, seed).Play(rollouts, turns, seed, agent(t))
}
