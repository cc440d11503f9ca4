package hosted_test

import (
	"context"
	"fmt"
	"os"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/hosted"
)

// echo is the API of a service that repeats the last message. That of a real one sends requests with c.Client.
type echo struct{ c *hosted.Connection }

// Complete implements [hosted.Service].
func (echo) Complete(_ context.Context, _ string, req *art.ChatRequest) (*hosted.Reply, error) {
	said := req.Messages[len(req.Messages)-1].Content
	usage := &art.Usage{PromptTokens: len(said), CompletionTokens: len(said)}
	return &hosted.Reply{Message: art.Assistant(said), Finish: art.FinishStop, Usage: usage}, nil
}

// Models implements [hosted.Service].
func (echo) Models(context.Context) ([]string, error) { return []string{"echo-1"}, nil }

// A backend for another service is its requests; retries, limits, costs and the run directory are those of this
// package. Programs that use OpenAI's, Anthropic's or Google's models open backend/openai, backend/anthropic or
// backend/gemini.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "art")
	check(err)
	defer os.RemoveAll(dir)
	backend, err := hosted.New(hosted.About{Name: "echo", BaseURL: "http://localhost:8080"}, &hosted.Options{
		Dir: dir, Key: "secret", Prices: hosted.Prices{"echo-1": {Prompt: 1, Completion: 2}}, // dollars for a million tokens
	}, func(c *hosted.Connection) (hosted.Service, error) { return echo{c}, nil })
	check(err)
	defer backend.Close()

	model := art.NewModel("parrot", &art.ModelOptions{Base: "echo-1", Frozen: true})
	check(model.Register(ctx, backend))
	reply, err := model.Chat(ctx, art.NewTrajectory(art.User("Hello!")), nil)
	check(err)
	fmt.Printf("%s It cost %.6f dollars.\n", reply.Content, backend.Usage().Cost)
	// Output: Hello! It cost 0.000018 dollars.
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
