package local_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/local"
)

// An agent is trained inside go test, in seconds: the built-in model learns which of three answers is wanted.
func Example() {
	dir, err := os.MkdirTemp("", "art")
	check(err)
	defer os.RemoveAll(dir)
	ctx := context.Background()
	backend, err := local.Open(ctx, &local.Options{Dir: dir, Context: 64, Progress: io.Discard})
	check(err)
	defer backend.Close()

	model := art.NewModel("maybe", &art.ModelOptions{Base: "tiny", Chat: art.ChatOptions{MaxTokens: new(4)}})
	check(model.Register(ctx, backend))
	want := map[string]float64{"yes": 0.5, "no": 0.75, "maybe": 1}
	questions := []string{"yes or no", "maybe, yes or no?", "Answer with yes, no or maybe.", "no, maybe or yes"}

	var rewards []float64
	for step := model.Step(); step < 12; step++ {
		groups, err := art.GatherGroups(ctx, questions, func(ctx context.Context, question string) (*art.Trajectory, error) {
			t := art.NewTrajectory(art.User(question))
			reply, err := model.Chat(ctx, t, nil)
			if err != nil {
				return nil, err
			}
			t.Reward = want[reply.Content]
			return t, nil
		}, &art.GatherOptions{GroupSize: 16, Concurrency: 32, Seed: uint64(step)})
		check(err)
		result, err := model.Train(ctx, groups, &art.TrainConfig{LearningRate: 2e-3, MaxGradNorm: 1})
		check(err)
		check(model.Log(ctx, "train", groups, result.Metrics))
		rewards = append(rewards, mean(groups))
	}
	first, last := rewards[0], rewards[len(rewards)-1]
	fmt.Println("reward below 0.8 at first:", first < 0.8)
	fmt.Println("reward above 0.9 at last:", last > 0.9)
	// Output:
	// reward below 0.8 at first: true
	// reward above 0.9 at last: true
}

func mean(groups []*art.TrajectoryGroup) float64 {
	sum, n := 0.0, 0
	for _, g := range groups {
		for _, t := range g.Trajectories {
			sum, n = sum+t.Reward, n+1
		}
	}
	return sum / float64(n)
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
