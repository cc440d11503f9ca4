package backend_test

import (
	"context"
	"fmt"
	"os"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/driver"
	"github.com/goart-dev/art/backend/local"
	"github.com/goart-dev/art/backend/openai"
)

// Every backend is an [art.Backend], so that a program changes one line to use another. What only some can do are
// further interfaces, which a program asks for.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "art") // a program leaves Dir out: .art
	check(err)
	defer os.RemoveAll(dir)

	here, err := local.Open(ctx, &local.Options{Dir: dir})
	check(err)
	ollama, err := openai.Open(ctx, &openai.Options{Dir: dir, BaseURL: "http://localhost:11434/v1"})
	check(err)
	for _, backend := range []art.Backend{here, ollama} {
		_, trains := backend.(driver.SFTTrainer)
		_, logs := backend.(driver.Logger)
		fmt.Printf("%T: trains %v, logs %v\n", backend, trains, logs)
		check(backend.Close())
	}
	// Output:
	// *local.Backend: trains true, logs true
	// *hosted.Backend: trains false, logs true
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
