package local_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"slices"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/local"
	"github.com/goart-dev/art/backend/loop"
	"github.com/goart-dev/art/grpo/credit"
)

// A loop of one's own: REINFORCE with a leave-one-out baseline, from the primitives of loop.Trainer. The same loop runs
// on every backend that has them.
func Example_ownLoop() {
	dir, err := os.MkdirTemp("", "art")
	must(err)
	defer os.RemoveAll(dir)
	ctx := context.Background()
	backend, err := local.Open(ctx, &local.Options{Dir: dir, Context: 64, Progress: io.Discard})
	must(err)
	defer backend.Close()
	model := art.NewModel("own", &art.ModelOptions{Base: "tiny", Chat: art.ChatOptions{MaxTokens: new(4)}})
	must(model.Register(ctx, backend))
	want := map[string]float64{"yes": 0.5, "no": 0.75, "maybe": 1}
	var means []float64
	for range 10 {
		groups, err := art.GatherGroups(ctx, []string{"maybe, yes or no?"},
			func(ctx context.Context, question string) (*art.Trajectory, error) {
				t := art.NewTrajectory(art.User(question))
				reply, err := model.Chat(ctx, t, nil)
				if err == nil {
					t.Reward = want[reply.Content]
				}
				return t, err
			}, &art.GatherOptions{GroupSize: 32})
		must(err)
		list := groups[0].Trajectories
		n, sum := float64(len(list)), 0.0
		for _, t := range list {
			sum += t.Reward
		}
		var data []loop.Datum
		for _, t := range list {
			advantage := t.Reward - (sum-t.Reward)/(n-1) // above the mean of the others
			data = append(data, datum(t.Samples()[0], float32(advantage/n)))
		}
		_, err = loop.ForwardBackward(ctx, model, data, credit.ImportanceSampling, nil)
		must(err)
		adamw := loop.DefaultAdamW()
		adamw.LearningRate = 2e-3
		_, err = loop.OptimStep(ctx, model, adamw)
		must(err)
		_, err = model.Publish(ctx, groups, nil)
		must(err)
		means = append(means, sum/n)
	}
	fmt.Println("better by a tenth:", means[9] > means[0]+0.1)
	// Output: better by a tenth: true
}

// datum makes a datum of what was sampled: the prompt has no targets.
func datum(s *art.Sample, advantage float32) loop.Datum {
	n := len(s.PromptIDs) - 1
	return loop.Datum{
		Input:      slices.Concat(s.PromptIDs, s.IDs[:len(s.IDs)-1]),
		Targets:    append(slices.Repeat([]int32{loop.NoTarget}, n), s.IDs...),
		Logprobs:   append(make([]float32, n), s.Logprobs...),
		Advantages: append(make([]float32, n), slices.Repeat([]float32{advantage}, len(s.IDs))...),
	}
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
