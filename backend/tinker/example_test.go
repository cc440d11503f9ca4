package tinker_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/server/tinker"
	client "github.com/goart-dev/art/backend/tinker"
	"github.com/goart-dev/art/internal/dev/arttest"
)

// A program trains on a service as it does in process, but for the line that opens the backend. The service is a fake
// one of the example.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "art")
	check(err)
	defer os.RemoveAll(dir)
	url, stop := service(filepath.Join(dir, "service"))
	defer stop()

	backend, err := client.Open(ctx, &client.Options{
		BaseURL: url, Key: "tml-secret", Tokenizer: "../../model/tiny", Dir: filepath.Join(dir, "runs"),
	})
	check(err)
	defer backend.Close()
	model := art.NewModel("player", &art.ModelOptions{Base: "org/fake"})
	check(model.Register(ctx, backend))

	examples := []*art.Trajectory{art.NewTrajectory(art.User("2+2"), art.Assistant("4"))}
	result, err := model.TrainSFT(ctx, examples, nil)
	check(err)
	fmt.Println("step", result.Step)
	// Output: step 1
}

// service serves the Tinker API over a fake backend.
func service(dir string) (url string, stop func()) {
	s, err := tinker.New(&arttest.Backend{}, &tinker.Options{
		Dir: dir, Bases: []tinker.Base{{Name: "org/fake", Model: "tiny"}},
	})
	check(err)
	handler, err := s.Handler(&art.HandlerOptions{Keys: []string{"tml-secret"}})
	check(err)
	listening := httptest.NewServer(handler)
	return listening.URL, func() { listening.Close(); check(s.Close()) }
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
