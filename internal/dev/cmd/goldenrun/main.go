// Command goldenrun stores a small run, as one of the files that every later version has to open:
//
//	go run ./internal/dev/cmd/goldenrun backend/local/testdata/runs/v0.1.0
//
// It is run once for each version. Its argument is the root of the run, which must not exist: a stored run is never
// made again. The folder above gets base.gguf, the model that it is trained on, unless it is there.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/local"
	"github.com/goart-dev/art/backend/loop"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: goldenrun FOLDER")
		os.Exit(2)
	}
	if err := write(context.Background(), os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "goldenrun:", err)
		os.Exit(1)
	}
}

// write trains two steps, with everything else that a run stores.
func write(ctx context.Context, root string) error {
	if _, err := os.Stat(root); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s exists: a stored run is never made again", root)
	}
	base := filepath.Join(filepath.Dir(root), "base.gguf")
	if _, err := os.Stat(base); errors.Is(err, fs.ErrNotExist) {
		if err := errors.Join(os.MkdirAll(filepath.Dir(base), 0o755), writeBase(base)); err != nil {
			return err
		}
	}
	backend, err := local.Open(ctx, &local.Options{Dir: root, Context: 64, Slots: 4, Progress: io.Discard})
	if err != nil {
		return err
	}
	model := art.NewModel("golden", &art.ModelOptions{
		Project: "runs", Base: base, Seed: 1, Chat: art.ChatOptions{MaxTokens: new(4)},
		LoRA: art.LoRA{Rank: 1, Alpha: 2, Targets: []string{"o_proj"}},
	})
	err = model.Register(ctx, backend)
	for _, fill := range []func(context.Context, *art.Model) error{train, trainSFT, others} {
		if err == nil {
			err = fill(ctx, model)
		}
	}
	return errors.Join(err, backend.Close(), removeLocks(root))
}

// train makes step 1, with GRPO.
func train(ctx context.Context, model *art.Model) error {
	groups, err := art.GatherGroups(ctx, []string{"yes or no", "no or yes"}, func(
		ctx context.Context, question string,
	) (*art.Trajectory, error) {
		t := art.NewTrajectory(art.User(question))
		_, err := model.Chat(ctx, t, nil)
		t.Reward = art.Rand(ctx).Float64()
		t.Metrics["turns"], t.Metadata["question"] = 1, question
		return t, err
	}, &art.GatherOptions{GroupSize: 4, Seed: 1})
	if err != nil {
		return err
	}
	groups[0].Failures = append(groups[0].Failures, art.Failure{Type: "error", Message: "the game is over"})
	result, err := model.Train(ctx, groups, &art.TrainConfig{LearningRate: 1e-3})
	if err != nil {
		return err
	}
	return model.Log(ctx, "train", groups, result.Metrics)
}

// trainSFT makes step 2, with an example.
func trainSFT(ctx context.Context, model *art.Model) error {
	example := art.NewTrajectory(art.User("yes or no"), art.Assistant("yes"))
	_, err := model.TrainSFT(ctx, []*art.Trajectory{example}, &art.SFTConfig{LearningRate: 1e-3})
	return err
}

// others stores what trainings do not.
func others(ctx context.Context, model *art.Model) error {
	t := art.NewTrajectory(art.User("yes or no"))
	if _, err := model.Chat(ctx, t, nil); err != nil {
		return err
	}
	t.Reward = 0.5
	err := model.Log(ctx, "val", []*art.TrajectoryGroup{{Trajectories: []*art.Trajectory{t}}}, nil)
	if err = errors.Join(err, model.SaveState(ctx, map[string]any{"position": 3})); err != nil {
		return err
	}
	_, err = loop.SaveWeights(ctx, model, "kept", true)
	return err
}

// removeLocks removes the files that say which process holds a run.
func removeLocks(root string) error {
	locks, err := filepath.Glob(filepath.Join(root, "*", "models", "*", "lock*"))
	for _, lock := range locks {
		err = errors.Join(err, os.Remove(lock))
	}
	return err
}
