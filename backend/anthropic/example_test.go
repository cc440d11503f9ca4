package anthropic_test

import (
	"context"
	"fmt"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/anthropic"
)

// The key comes from the environment.
func Example() {
	ctx := context.Background()
	backend, err := anthropic.Open(ctx, &anthropic.Options{MaxSpend: 5, RequestsPerMinute: 60})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer backend.Close()

	judge := art.NewModel("judge", &art.ModelOptions{Base: "claude-haiku-4-5", Frozen: true})
	if err := judge.Register(ctx, backend); err != nil {
		fmt.Println(err)
		return
	}
	reply, err := judge.Chat(ctx, art.NewTrajectory(art.User("Which answer is better?")), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(reply.Content, backend.Usage().Cost)
}
