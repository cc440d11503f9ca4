package loop_test

import (
	"context"
	"fmt"
	"log"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/loop"
	"github.com/goart-dev/art/grpo/credit"
	"github.com/goart-dev/art/internal/dev/arttest"
)

// One update on two tokens, which becomes a step. The fake backend has the primitives of backend/local.
func Example() {
	ctx := context.Background()
	model := art.NewModel("mine", &art.ModelOptions{Base: "tiny"})
	if err := model.Register(ctx, &arttest.Backend{}); err != nil {
		log.Fatal(err)
	}
	data := []loop.Datum{{Input: []int32{1, 2}, Targets: []int32{loop.NoTarget, 3}}}
	if _, err := loop.ForwardBackward(ctx, model, data, credit.CrossEntropy, nil); err != nil {
		log.Fatal(err)
	}
	result, err := loop.OptimStep(ctx, model, loop.DefaultAdamW())
	if err != nil {
		log.Fatal(err)
	}
	step, err := model.Publish(ctx, nil, nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("updates", result.Updates, "step", step)
	// Output: updates 1 step 1
}
