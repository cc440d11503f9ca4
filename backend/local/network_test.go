package local_test

import (
	"context"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/local"
)

// tracedEnv is set in the process that TestNetwork traces, to "train" or "listen".
const tracedEnv = "ART_TEST_TRACED"

// internetSocket is how strace writes a system call that opens a socket of the internet.
var internetSocket = regexp.MustCompile(`socket\(AF_INET6?, `)

// TestNetwork: a program that trains the built-in model opens no socket of the internet. One that does is noticed.
func TestNetwork(t *testing.T) {
	if os.Getenv(tracedEnv) != "" {
		traced(t)
		return
	}
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("strace is not installed")
	}
	for program, want := range map[string]bool{"train": false, "listen": true} {
		trace := filepath.Join(t.TempDir(), "trace")
		cmd := exec.CommandContext(t.Context(), strace, "-f", "-e", "trace=socket", "-o", trace,
			os.Args[0], "-test.run=^TestNetwork$", "-test.v")
		cmd.Env = append(os.Environ(), tracedEnv+"="+program)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.Contains(t, string(out), "--- PASS: TestNetwork")
		calls, err := os.ReadFile(trace)
		require.NoError(t, err)
		require.Equal(t, want, internetSocket.Match(calls), "%s: %s", program, calls)
	}
}

// traced is what the traced process does.
func traced(t *testing.T) {
	ctx := t.Context()
	if os.Getenv(tracedEnv) == "listen" {
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
		require.NoError(t, err)
		require.NoError(t, listener.Close())
		return
	}
	backend, err := local.Open(ctx, &local.Options{Dir: t.TempDir(), Context: 64, Progress: io.Discard})
	require.NoError(t, err)
	defer backend.Close()
	model := art.NewModel("traced", &art.ModelOptions{Base: "tiny", Chat: art.ChatOptions{MaxTokens: new(4)}})
	require.NoError(t, model.Register(ctx, backend))
	groups, err := art.GatherGroups(ctx, []string{"yes or no"}, func(
		ctx context.Context, question string,
	) (*art.Trajectory, error) {
		tr := art.NewTrajectory(art.User(question))
		_, err := model.Chat(ctx, tr, nil)
		tr.Reward = art.Rand(ctx).Float64()
		return tr, err
	}, &art.GatherOptions{GroupSize: 4})
	require.NoError(t, err)
	result, err := model.Train(ctx, groups, &art.TrainConfig{LearningRate: 1e-3})
	require.NoError(t, err)
	require.NoError(t, model.Log(ctx, "train", groups, result.Metrics))
}
