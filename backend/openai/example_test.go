package openai_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"os"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/hosted"
	"github.com/goart-dev/art/backend/openai"
)

// A prompted baseline runs the rollout of the model that is trained.
func Example() {
	server := httptest.NewServer(said("Paris")) // a model behind an API
	defer server.Close()
	dir, _ := os.MkdirTemp("", "")
	defer os.RemoveAll(dir)

	ctx := context.Background()
	backend, err := openai.Open(ctx, &openai.Options{
		BaseURL:  server.URL + "/v1",
		Dir:      dir,
		Prices:   hosted.Prices{"some-model": {Prompt: 0.5, Completion: 2}}, // for a million tokens
		MaxSpend: 5,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer backend.Close()

	model := art.NewModel("baseline", &art.ModelOptions{Base: "some-model", Frozen: true})
	if err := model.Register(ctx, backend); err != nil {
		fmt.Println(err)
		return
	}
	rollout := func(ctx context.Context, country string) (*art.Trajectory, error) {
		t := art.NewTrajectory(art.User("What is the capital of " + country + "?"))
		reply, err := model.Chat(ctx, t, nil)
		if err == nil && reply.Content == "Paris" {
			t.Reward = 1
		}
		return t, err
	}
	groups, err := art.GatherGroups(ctx, []string{"France"}, rollout, &art.GatherOptions{GroupSize: 2})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := model.Log(ctx, "val", groups, nil); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("reward", art.Metrics(groups...)["reward"])
	fmt.Printf("%d requests, %.4f dollars\n", backend.Usage().Requests, backend.Usage().Cost)
	// Output:
	// reward 1
	// 2 requests, 0.0030 dollars
}
