package local_test

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/local"
)

// A loop of one's own: REINFORCE with a leave-one-out baseline, from the primitives of art.Trainer. The same loop runs
// on every backend that has them.
func Example_ownLoop() {
	dir, err := os.MkdirTemp("", "art")
	check(err)
	defer os.RemoveAll(dir)
	ctx := context.Background()
	backend, err := local.Open(ctx, &local.Options{Dir: dir, Context: 64, Progress: io.Discard})
	check(err)
	defer backend.Close()
	model := art.NewModel("own", &art.ModelOptions{Base: "tiny", Chat: art.ChatOptions{MaxTokens: new(4)}})
	check(model.Register(ctx, backend))

	want := map[string]float64{"yes": 0.5, "no": 0.75, "maybe": 1}
	var rewards []float64
	for step := range 10 {
		groups, err := art.GatherGroups(ctx, []string{"yes or no", "maybe, yes or no?"},
			func(ctx context.Context, question string) (*art.Trajectory, error) {
				t := art.NewTrajectory(art.User(question))
				reply, err := model.Chat(ctx, t, nil)
				if err != nil {
					return nil, err
				}
				t.Reward = want[reply.Content]
				return t, nil
			}, &art.GatherOptions{GroupSize: 16, Concurrency: 32, Seed: uint64(step)})
		check(err)
		var data []art.Datum
		for _, g := range groups {
			n, sum := float64(len(g.Trajectories)), 16*mean([]*art.TrajectoryGroup{g})
			for _, t := range g.Trajectories {
				advantage := t.Reward - (sum-t.Reward)/(n-1)
				data = append(data, datum(t.Samples()[0], float32(advantage/n)))
			}
		}
		_, err = model.ForwardBackward(ctx, data, art.LossImportanceSampling, nil)
		check(err)
		adamw := art.DefaultAdamW()
		adamw.LearningRate = 2e-3
		_, err = model.OptimStep(ctx, adamw)
		check(err)
		_, err = model.Publish(ctx, groups, nil)
		check(err)
		rewards = append(rewards, mean(groups))
	}
	fmt.Println("better by a tenth:", rewards[9] > rewards[0]+0.1)
	// Output:
	// better by a tenth: true
}

// datum makes a datum of what was sampled: the prompt has no targets.
func datum(s *art.Sample, advantage float32) art.Datum {
	ids := append(append([]int32{}, s.PromptIDs...), s.IDs...)
	n := len(ids) - 1
	d := art.Datum{Input: ids[:n], Targets: make([]int32, n), Logprobs: make([]float32, n), Advantages: make([]float32, n)}
	for i := range n {
		d.Targets[i] = art.NoTarget
		if k := i + 1 - len(s.PromptIDs); k >= 0 {
			d.Targets[i], d.Logprobs[i], d.Advantages[i] = s.IDs[k], s.Logprobs[k], advantage
		}
	}
	return d
}
