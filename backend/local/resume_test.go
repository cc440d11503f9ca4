package local

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art"
)

const (
	resumeSteps = 6
	kills       = 4
	childDir    = "ART_TEST_TRAIN_IN" // set in the child of TestKill
)

// TestMain computes on one core unless GOMAXPROCS is set, as the race detector's stage does: go test runs as many
// packages side by side as there are cores, where workers that wait for each other cost a third of the time.
func TestMain(m *testing.M) {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(1)
	}
	if dir := os.Getenv(childDir); dir != "" {
		if err := trainChild(context.Background(), dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// trainChild is the program of a child, with trackers if there is an address for them.
func trainChild(ctx context.Context, dir string) error {
	if url := os.Getenv(childURL); url != "" {
		return trainTracked(ctx, dir, url, func() {})
	}
	return trainIn(ctx, dir, resumeSteps, nil)
}

// trainIn is a program as a user would write it: a loop over the steps that are left. events may be nil.
func trainIn(ctx context.Context, dir string, steps int, events *art.Events) error {
	b, err := Open(ctx, &Options{Dir: dir, Slots: 8, Context: 64, Progress: io.Discard})
	if err != nil {
		return err
	}
	defer b.Close()
	m := art.NewModel("m", &art.ModelOptions{Seed: 3, Events: events, Chat: art.ChatOptions{MaxTokens: new(3)}})
	if err := m.Register(ctx, b); err != nil {
		return err
	}
	for m.Step() < steps {
		groups, err := art.GatherGroups(ctx, []string{"7+5=", "yes or no"},
			func(ctx context.Context, question string) (*art.Trajectory, error) {
				t := art.NewTrajectory(art.User(question))
				reply, err := m.Chat(ctx, t, nil)
				if err == nil {
					t.Reward = float64(sha256.Sum256([]byte(reply.Content))[0])
				}
				return t, err
			}, &art.GatherOptions{GroupSize: 4, Concurrency: 8})
		if err != nil {
			return err
		}
		result, err := m.Train(ctx, groups, &art.TrainConfig{LearningRate: 1e-3, Epochs: 2, MiniBatches: 2})
		if err != nil {
			return err
		}
		if err := m.Log(ctx, "train", groups, result.Metrics); err != nil {
			return err
		}
	}
	return nil
}

// finalStep reads all files of the last checkpoint.
func finalStep(t *testing.T, dir string) map[string]string {
	files := map[string]string{}
	at := filepath.Join(dir, "default", "models", "m", "checkpoints", fmt.Sprintf("%04d", resumeSteps))
	entries, err := os.ReadDir(at)
	require.NoError(t, err)
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(at, e.Name()))
		require.NoError(t, err)
		files[e.Name()] = string(data)
	}
	require.Contains(t, files, "adapter_model.safetensors")
	require.Contains(t, files, "optimizer.safetensors")
	return files
}

// trainRewards reads the reward of each policy from the history: one train row for each update, and no other.
func trainRewards(t *testing.T, dir string) (rewards []float64) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "default", "models", "m", "history.jsonl"))
	require.NoError(t, err)
	for line := range strings.Lines(string(data)) {
		var row struct {
			Step   int      `json:"step"`
			Reward *float64 `json:"train/reward"`
		}
		require.NoError(t, json.Unmarshal([]byte(line), &row))
		require.Equal(t, len(rewards), row.Step)
		require.NotNil(t, row.Reward, line)
		rewards = append(rewards, *row.Reward)
	}
	require.Len(t, rewards, resumeSteps)
	return rewards
}

// TestKill kills a training process at random moments, and starts it again each time. It ends with the checkpoint of a
// run that nobody disturbed, bit for bit, and with all of its rewards.
func TestKill(t *testing.T) {
	if testing.Short() {
		t.Skip("starts many processes")
	}
	undisturbed, dir := t.TempDir(), t.TempDir()
	require.NoError(t, trainIn(t.Context(), undisturbed, resumeSteps, nil))

	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	killed := 0
	for killed < kills {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), childDir+"="+dir)
		var out strings.Builder
		cmd.Stderr = &out
		require.NoError(t, cmd.Start())
		timer := time.AfterFunc(time.Duration(rng.Int64N(int64(900*time.Millisecond))), func() { _ = cmd.Process.Kill() })
		err := cmd.Wait()
		timer.Stop()
		if err == nil { // the run was through: begin another to be killed in
			require.Equal(t, finalStep(t, undisturbed), finalStep(t, dir))
			require.Equal(t, trainRewards(t, undisturbed), trainRewards(t, dir))
			dir = t.TempDir()
			continue
		}
		require.Empty(t, out.String(), "the child failed by itself")
		killed++
	}
	require.NoError(t, trainIn(t.Context(), dir, resumeSteps, nil))
	require.Equal(t, finalStep(t, undisturbed), finalStep(t, dir))
	require.Equal(t, trainRewards(t, undisturbed), trainRewards(t, dir))
}

// TestResume stops a run after each step, by Close, and continues it.
func TestResume(t *testing.T) {
	whole, parts := t.TempDir(), t.TempDir()
	require.NoError(t, trainIn(t.Context(), whole, resumeSteps, nil))
	for step := 1; step <= resumeSteps; step++ {
		require.NoError(t, trainIn(t.Context(), parts, step, nil))
	}
	require.Equal(t, finalStep(t, whole), finalStep(t, parts))
	require.Equal(t, trainRewards(t, whole), trainRewards(t, parts))
}
