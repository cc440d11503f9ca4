package openaigo

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	"github.com/goart-dev/art/internal/dev/servertest"
	client "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
)

// newRolloutClient returns OpenAI's client, pointed at a rollout.
func newRolloutClient(r *servertest.Rollout) client.Client {
	return client.NewClient(option.WithBaseURL(r.Base+"/v1"), option.WithAPIKey(servertest.Key), option.WithMaxRetries(10),
		option.WithMiddleware(withoutWaiting))
}

// withoutWaiting lets the client send a failed request again at once.
func withoutWaiting(r *http.Request, next option.MiddlewareNext) (*http.Response, error) {
	response, err := next(r)
	if err == nil && response.StatusCode >= 500 {
		response.Header.Set("Retry-After-Ms", "1")
	}
	return response, err
}

// insist asks until there is a reply. It gives up a request at random.
func insist[T any](ctx context.Context, rng *rand.Rand, ask func(ctx context.Context) (T, error)) (reply T) {
	for ctx.Err() == nil {
		limited, cancel := ctx, context.CancelFunc(func() {})
		if rng.IntN(10) == 0 {
			limited, cancel = context.WithTimeout(ctx, time.Duration(rng.IntN(1500))*time.Microsecond)
		}
		got, err := ask(limited)
		cancel()
		if err == nil {
			return got
		}
	}
	return reply
}

// chatAgent plays a rollout by chat completions, streamed or not.
func chatAgent(ctx context.Context, r *servertest.Rollout, turns int) (received []string) {
	c, p := newRolloutClient(r), params()
	p.Tools = []client.ChatCompletionToolUnionParam{look}
	for turn := range turns {
		reply := insist(ctx, r.Rand, func(ctx context.Context) (client.ChatCompletionMessage, error) {
			return ask(ctx, c, p, r.Rand.IntN(2) == 0)
		})
		received = append(received, reply.Content)
		p.Messages = append(p.Messages, reply.ToParam())
		for _, call := range reply.ToolCalls {
			p.Messages = append(p.Messages, client.ToolMessage("a wall", call.ID))
		}
		p.Messages = append(p.Messages, client.UserMessage(fmt.Sprint("turn ", turn)))
	}
	return received
}

// ask asks for one reply.
func ask(
	ctx context.Context, c client.Client, p client.ChatCompletionNewParams, stream bool,
) (client.ChatCompletionMessage, error) {
	if !stream {
		got, err := c.Chat.Completions.New(ctx, p)
		if err != nil {
			return client.ChatCompletionMessage{}, err
		}
		return got.Choices[0].Message, nil
	}
	var all client.ChatCompletionAccumulator
	events := c.Chat.Completions.NewStreaming(ctx, p)
	for events.Next() {
		all.AddChunk(events.Current())
	}
	if err := events.Err(); err != nil {
		return client.ChatCompletionMessage{}, err
	}
	if len(all.Choices) == 0 || all.Choices[0].FinishReason == "" { // the connection was cut between two events
		return client.ChatCompletionMessage{}, fmt.Errorf("the stream was cut: %w", ctx.Err())
	}
	return all.Choices[0].Message, nil
}

// responsesAgent plays a rollout by the Responses API, streamed or not.
func responsesAgent(ctx context.Context, r *servertest.Rollout, turns int) (received []string) {
	c, p := newRolloutClient(r), responseParams()
	input := responses.ResponseInputParam{responses.ResponseInputItemParamOfMessage("Hello", "user")}
	for turn := range turns {
		p.Input = responses.ResponseNewParamsInputUnion{OfInputItemList: input}
		reply := insist(ctx, r.Rand, func(ctx context.Context) (*responses.Response, error) {
			return respond(ctx, c, p, r.Rand.IntN(2) == 0)
		})
		received = append(received, reply.OutputText())
		for _, item := range reply.Output {
			switch item.Type {
			case "message":
				input = append(input, responses.ResponseInputItemParamOfMessage(reply.OutputText(), "assistant"))
			case "function_call":
				call := item.AsFunctionCall()
				result := responses.ResponseInputItemParamOfFunctionCallOutput("a wall")
				result.OfFunctionCallOutput.CallID = client.String(call.CallID)
				input = append(input,
					responses.ResponseInputItemParamOfFunctionCall(call.Arguments, call.CallID, call.Name), result)
			}
		}
		input = append(input, responses.ResponseInputItemParamOfMessage(fmt.Sprint("turn ", turn), "user"))
	}
	return received
}

// respond asks for one response.
func respond(
	ctx context.Context, c client.Client, p responses.ResponseNewParams, stream bool,
) (*responses.Response, error) {
	if !stream {
		return c.Responses.New(ctx, p)
	}
	events := c.Responses.NewStreaming(ctx, p)
	for events.Next() {
		if e := events.Current(); e.Type == "response.completed" {
			return &e.Response, events.Close()
		}
	}
	if err := events.Err(); err != nil {
		return nil, err
	}
	return nil, fmt.Errorf("the stream was cut: %w", ctx.Err())
}

// Requests that fail, are cancelled and are sent again leave every sampled token in exactly one sample.
func TestRollouts_EveryTokenInOneSample(t *testing.T) {
	for name, agent := range map[string]servertest.Agent{"chat": chatAgent, "responses": responsesAgent} {
		t.Run(name, func(t *testing.T) {
			seed := uint64(time.Now().UnixNano())
			rollouts, turns := servertest.Settings(t)
			servertest.New(t, seed).Play(rollouts, turns, seed, agent)
		})
	}
}
