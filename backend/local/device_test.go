package local

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	_ "github.com/gomlx/compute/gobackend" // registers "go"
	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/dev/race"
)

// answer is what the built-in model says on a device, and the logprobs of its tokens.
func answer(t *testing.T, device string) ([]int32, []float32) {
	b, err := Open(t.Context(), &Options{Dir: t.TempDir(), Device: device, Slots: 2, Context: 64, Progress: io.Discard})
	require.NoError(t, err)
	defer func() { require.NoError(t, b.Close()) }()
	m := art.NewModel("m", &art.ModelOptions{Base: "tiny"})
	require.NoError(t, m.Register(t.Context(), b))
	reply, err := m.Chat(t.Context(), art.NewTrajectory(art.User("yes or no")),
		&art.ChatOptions{Temperature: new(0.0), MaxTokens: new(4)})
	require.NoError(t, err)
	return reply.Sample.IDs, reply.Sample.Logprobs
}

// TestOpen_Device: the name chooses what computes, and every device says the same within rounding.
func TestOpen_Device(t *testing.T) {
	ids, logprobs := answer(t, "")
	for _, name := range []string{"cpu", "go:parallelism=-1"} {
		if race.Enabled && name != "cpu" {
			continue // GoMLX's own device does not run under the race detector
		}
		b, err := Open(t.Context(), &Options{Dir: t.TempDir(), Device: name})
		require.NoError(t, err)
		require.Contains(t, b.Device(), map[bool]string{true: "CPU with", false: "Go"}[name == "cpu"])
		require.NoError(t, b.Close())
		otherIDs, otherLogprobs := answer(t, name)
		require.Equal(t, ids, otherIDs, name)
		require.InDeltaSlice(t, logprobs, otherLogprobs, 1e-5, name)
	}
}

// TestOpen_UnknownDevice: the error is typed and says what to import; one that a device gives keeps its text.
func TestOpen_UnknownDevice(t *testing.T) {
	for name, want := range map[string]string{
		"tpu":      `no device is called "tpu"; known are cpu, go`,
		"xla:cpu":  `import _ "github.com/goart-dev/art/backend/device/xla"`,
		"cpu:fast": `the configuration "fast" is not known`,
		"go:fast":  "fast",
	} {
		_, err := Open(context.Background(), &Options{Dir: t.TempDir(), Device: name})
		require.ErrorIs(t, err, art.ErrDevice)
		var typed *art.Error
		require.ErrorAs(t, err, &typed)
		require.Equal(t, "open", typed.Op)
		require.ErrorContains(t, err, want)
	}
}

// TestOpen_Weights: a name that is no type of weights is an error.
func TestOpen_Weights(t *testing.T) {
	_, err := Open(t.Context(), &Options{Dir: t.TempDir(), Weights: "int4"})
	require.ErrorIs(t, err, art.ErrInvalid)
	_, err = Open(t.Context(), &Options{Dir: t.TempDir(), Weights: "int8"})
	require.ErrorIs(t, err, art.ErrDevice)
	require.ErrorContains(t, err, `"cpu" does not multiply int8 matrices`)
	for _, weights := range []string{"float32", "bfloat16"} {
		b, err := Open(t.Context(), &Options{Dir: t.TempDir(), Weights: weights})
		require.NoError(t, err)
		require.NoError(t, b.Close())
	}
}

// TestOpen_CacheType: a name that is no type, and one that the device has no cache of, are errors.
func TestOpen_CacheType(t *testing.T) {
	_, err := Open(t.Context(), &Options{Dir: t.TempDir(), CacheType: "fp8"})
	require.ErrorIs(t, err, art.ErrInvalid)
	_, err = Open(t.Context(), &Options{Dir: t.TempDir(), CacheType: "bfloat16"})
	require.ErrorIs(t, err, art.ErrDevice)
	require.ErrorContains(t, err, `"cpu" has no cache in bfloat16`)
	b, err := Open(t.Context(), &Options{Dir: t.TempDir(), CacheType: "float32"})
	require.NoError(t, err)
	require.NoError(t, b.Close())
}

// TestRegister_OtherWeights: a run records the type of weights that it was started with, and continues with another
// one, with a warning.
func TestRegister_OtherWeights(t *testing.T) {
	dir := t.TempDir()
	var log strings.Builder
	train := func(weights string) {
		b, err := Open(t.Context(), &Options{Dir: dir, Weights: weights, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		require.NoError(t, err)
		defer func() { require.NoError(t, b.Close()) }()
		m := art.NewModel("m", nil)
		require.NoError(t, m.Register(t.Context(), b))
		groups, err := art.GatherGroups(t.Context(), []string{"7+5="}, twoTurns(m), &art.GatherOptions{GroupSize: 4})
		require.NoError(t, err)
		_, err = m.Train(t.Context(), groups, &art.TrainConfig{LearningRate: 1e-3})
		require.NoError(t, err)
	}
	recorded := func() string {
		data, err := os.ReadFile(filepath.Join(dir, "default", "models", "m", "model.json"))
		require.NoError(t, err)
		var d description
		require.NoError(t, json.Unmarshal(data, &d))
		return d.Weights
	}
	train("bfloat16")
	require.Equal(t, "bfloat16", recorded())
	train("bfloat16")
	require.NotContains(t, log.String(), "another")
	train("")
	require.NotContains(t, log.String(), "another", "a run keeps its type")
	train("float32")
	require.Contains(t, log.String(),
		`msg="the run continues with another type of weights" model=m started=bfloat16 now=float32`)
	require.NotContains(t, log.String(), "another device")
	require.Equal(t, "bfloat16", recorded())
}
