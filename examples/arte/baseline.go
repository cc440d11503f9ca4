package main

import (
	"context"
	"strings"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/openai"
)

// prompted returns a model behind an OpenAI-compatible URL, which runs the same rollouts as the trained one. Its
// backend stays open until the program ends.
func prompted(ctx context.Context, url, name string) (*art.Model, error) {
	backend, err := openai.Open(ctx, &openai.Options{BaseURL: url, Dir: *dir})
	if err != nil {
		return nil, err
	}
	run := strings.NewReplacer("/", "-", ":", "-", "@", "-").Replace(name)
	m := art.NewModel("hosted-"+run, &art.ModelOptions{Project: "arte", Base: name, Frozen: true,
		Chat: art.ChatOptions{MaxTokens: new(512)}})
	return m, m.Register(ctx, backend)
}
