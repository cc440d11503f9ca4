package anthropicgo

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	client "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/goart-dev/art/internal/dev/servertest"
)

// agent plays a rollout with Anthropic's client, streamed or not. It gives up a request at random, and asks again.
func agent(ctx context.Context, r *servertest.Rollout, turns int) (received []string) {
	c := client.NewClient(option.WithBaseURL(r.Base), option.WithAPIKey(servertest.Key), option.WithMaxRetries(10),
		option.WithMiddleware(withoutWaiting))
	p := client.MessageNewParams{
		Model: "any", MaxTokens: 50, Messages: []client.MessageParam{client.NewUserMessage(client.NewTextBlock("Hello"))},
		Tools: []client.ToolUnionParam{{OfTool: &client.ToolParam{Name: "look"}}},
	}
	for turn := range turns {
		reply := insist(ctx, c, p, r)
		p.Messages = append(p.Messages, reply.ToParam())
		var next []client.ContentBlockParamUnion
		for _, block := range reply.Content {
			switch block.Type {
			case "text":
				received = append(received, block.Text)
			case "tool_use":
				next = append(next, client.NewToolResultBlock(block.ID, "a wall", false))
			}
		}
		next = append(next, client.NewTextBlock(fmt.Sprint("turn ", turn)))
		p.Messages = append(p.Messages, client.NewUserMessage(next...))
	}
	return received
}

// withoutWaiting lets the client send a failed request again at once.
func withoutWaiting(r *http.Request, next option.MiddlewareNext) (*http.Response, error) {
	response, err := next(r)
	if err == nil && response.StatusCode >= 500 {
		response.Header.Set("Retry-After-Ms", "1")
	}
	return response, err
}

// insist asks until there is a reply.
func insist(ctx context.Context, c client.Client, p client.MessageNewParams, r *servertest.Rollout) *client.Message {
	for ctx.Err() == nil {
		limited, cancel := ctx, context.CancelFunc(func() {})
		if r.Rand.IntN(10) == 0 {
			limited, cancel = context.WithTimeout(ctx, time.Duration(r.Rand.IntN(1500))*time.Microsecond)
		}
		reply, err := ask(limited, c, p, r.Rand.IntN(2) == 0)
		cancel()
		if err == nil {
			return reply
		}
	}
	return &client.Message{}
}

// ask asks for one reply.
func ask(ctx context.Context, c client.Client, p client.MessageNewParams, stream bool) (*client.Message, error) {
	if !stream {
		return c.Messages.New(ctx, p)
	}
	all, ended := &client.Message{}, false
	events := c.Messages.NewStreaming(ctx, p)
	for events.Next() {
		e := events.Current()
		if err := all.Accumulate(e); err != nil {
			return nil, err
		}
		ended = ended || e.Type == "message_stop"
	}
	if err := events.Err(); err != nil {
		return nil, err
	}
	if !ended {
		return nil, errors.New("the stream was cut")
	}
	return all, nil
}

// Requests that fail, are cancelled and are sent again leave every sampled token in exactly one sample.
func TestRollouts_EveryTokenInOneSample(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	rollouts, turns := servertest.Settings(t)
	servertest.New(t, seed).Play(rollouts, turns, seed, agent)
}
