package wandb_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"time"

	"github.com/goart-dev/art"
	server "github.com/goart-dev/art/backend/server/wandb"
	"github.com/goart-dev/art/backend/wandb"
	"github.com/goart-dev/art/internal/dev/arttest"
)

// A program trains on a service as it does in process, but for the line that opens the backend. The service is a fake
// one of the example.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "art")
	check(err)
	defer os.RemoveAll(dir)
	url, stop := fakeService(filepath.Join(dir, "service"))
	defer stop()

	backend, err := wandb.Open(ctx, &wandb.Options{
		BaseURL: url + "/v1", Key: "secret", Dir: filepath.Join(dir, "runs"), PollTime: 10 * time.Millisecond,
	})
	check(err)
	defer backend.Close()
	model := art.NewModel("player", &art.ModelOptions{Base: "tiny"})
	check(model.Register(ctx, backend))

	play := func(ctx context.Context, question string) (*art.Trajectory, error) {
		t := art.NewTrajectory(art.User(question))
		_, err := model.Chat(ctx, t, nil)
		t.Reward = art.Rand(ctx).Float64()
		return t, err
	}
	groups, err := art.GatherGroups(ctx, []string{"2+2"}, play, &art.GatherOptions{GroupSize: 4})
	check(err)
	result, err := model.Train(ctx, groups, &art.TrainConfig{LearningRate: 1e-4})
	check(err)
	fmt.Println("step", result.Step)
	// Output: step 1
}

// fakeService serves W&B Training over a fake backend.
func fakeService(dir string) (url string, stop func()) {
	s, err := server.New(&arttest.Backend{}, &server.Options{Dir: dir, Bases: []server.Base{{Name: "tiny"}}})
	check(err)
	handler, err := s.Handler(&art.HandlerOptions{Keys: []string{"secret"}})
	check(err)
	listening := httptest.NewServer(handler)
	return listening.URL, func() { listening.Close(); check(s.Close()) }
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
