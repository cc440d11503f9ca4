package publish_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/local"
	"github.com/goart-dev/art/backend/publish"
)

// The checkpoint with the best validation so far is copied to a folder, here that of step 0 before any training.
func Example() {
	ctx := context.Background()
	root, err := os.MkdirTemp("", "art")
	check(err)
	defer os.RemoveAll(root)
	backend, err := local.Open(ctx, &local.Options{Dir: filepath.Join(root, "runs")})
	check(err)
	defer backend.Close()

	to := publish.New(publish.Folder(filepath.Join(root, "models")), &publish.Options{Best: "val/reward"})
	model := art.NewModel("player", &art.ModelOptions{Project: "games", Base: "tiny", Events: to.Events()})
	check(model.Register(ctx, backend))
	check(model.Log(ctx, "val", nil, map[string]float64{"reward": 0.25}))

	check(to.Close(ctx)) // waits for what is not sent yet
	files, err := filepath.Glob(filepath.Join(root, "models", "games", "player", "*", "adapter_config.json"))
	check(err)
	fmt.Println(to.Sent(), "sent:", filepath.Base(filepath.Dir(files[0])))
	// Output: 1 sent: step0
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
