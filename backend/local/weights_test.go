package local

import (
	"encoding/json"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/basemodel"
	"github.com/goart-dev/art/internal/dev/gguftest"
	"github.com/goart-dev/art/internal/dev/race"
	"github.com/goart-dev/art/model"
)

// weightsBackend opens a backend whose log is returned.
func weightsBackend(t *testing.T, dir string, opts Options) (*Backend, *strings.Builder) {
	t.Helper()
	var log strings.Builder
	opts.Dir, opts.Slots, opts.Context, opts.Progress = dir, 2, 128, io.Discard
	opts.Logger = slog.New(slog.NewTextHandler(&log, nil))
	b, err := Open(t.Context(), &opts)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	return b, &log
}

// heldBy registers a model, and returns how its base is held and what the run recorded of it.
func heldBy(t *testing.T, b *Backend, name string, opts art.ModelOptions) (held, recorded string) {
	t.Helper()
	m := art.NewModel(name, &opts)
	require.NoError(t, m.Register(t.Context(), b))
	var d description
	_, err := b.models[m].run.ReadModel(&d)
	require.NoError(t, err)
	return b.models[m].base.weights, d.Weights
}

// changeModel edits the model.json of a run.
func changeModel(t *testing.T, dir, run, pattern, to string) {
	t.Helper()
	path := filepath.Join(dir, "default", "models", run, "model.json")
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Regexp(t, pattern, string(content))
	content = regexp.MustCompile(pattern).ReplaceAll(content, []byte(to))
	require.True(t, json.Valid(content))
	require.NoError(t, os.WriteFile(path, content, 0o600))
}

// TestWeights_Default: a new run on a GGUF file keeps its blocks, others compute in float32, and so does a training of
// all weights. One file is held in both ways at once, and says the same.
func TestWeights_Default(t *testing.T) {
	path := gguftest.Quantized(t, "../../model/tiny")
	b, _ := weightsBackend(t, t.TempDir(), Options{})
	for name, c := range map[string]struct {
		opts art.ModelOptions
		want string
	}{
		"adapter": {art.ModelOptions{Base: path}, "stored"},
		"frozen":  {art.ModelOptions{Base: path, Frozen: true}, "stored"},
		"full":    {art.ModelOptions{Base: path, Full: true}, "float32"},
		"builtin": {art.ModelOptions{}, "float32"},
		"folder":  {art.ModelOptions{Base: "../../model/tiny"}, "float32"},
	} {
		held, recorded := heldBy(t, b, name, c.opts)
		require.Equal(t, c.want, held, name)
		require.Equal(t, c.want, recorded, name)
	}
	require.Len(t, b.bases, 4)
	logprobs := map[string][]float32{}
	for m := range b.models {
		var err error
		logprobs[m.Name()], _, err = b.Logprobs(t.Context(), m, []int32{72, 101, 108, 108, 111, 10, 65})
		require.NoError(t, err)
	}
	require.NotEmpty(t, logprobs["full"])
	require.Equal(t, logprobs["full"], logprobs["adapter"])
	require.Equal(t, logprobs["full"], logprobs["frozen"])
	stored, float32s := b.bases[baseKey{path, "stored", "", 0}].base, b.bases[baseKey{path, "float32", "", 0}].base
	require.Less(t, stored.booking.Weights, 0.5*float32s.booking.Weights)
	require.Len(t, b.engines(), 3, "one row of a file that is held in two ways")
}

// TestWeights_Kept: without the option a run continues with the type that it was started with; one that did not record
// it has float32. With the option it has that, which is logged.
func TestWeights_Kept(t *testing.T) {
	path, dir := gguftest.Quantized(t, "../../model/tiny"), t.TempDir()
	open := func(weights string, frozen bool) (held, recorded, log string) {
		b, text := weightsBackend(t, dir, Options{Weights: weights})
		held, recorded = heldBy(t, b, map[bool]string{false: "run", true: "frozen"}[frozen],
			art.ModelOptions{Base: path, Frozen: frozen})
		require.NoError(t, b.Close())
		return held, recorded, text.String()
	}
	const another = "another type of weights"
	for _, frozen := range []bool{false, true} {
		held, recorded, _ := open("float32", frozen)
		require.Equal(t, []string{"float32", "float32"}, []string{held, recorded})
		held, recorded, log := open("", frozen)
		require.Equal(t, []string{"float32", "float32"}, []string{held, recorded})
		require.NotContains(t, log, another)
		held, recorded, log = open("stored", frozen)
		require.Equal(t, []string{"stored", "float32"}, []string{held, recorded}, "model.json says how it was started")
		require.Contains(t, log, another)
	}
	changeModel(t, dir, "run", `,\s*"weights": "float32"`, "")
	changeModel(t, dir, "run", `"layout": 3`, `"layout": 2`)
	held, recorded, log := open("", false)
	require.Equal(t, []string{"float32", "float32"}, []string{held, recorded}, "what was implicit is written")
	require.NotContains(t, log, another)
	content, err := os.ReadFile(filepath.Join(dir, "default", "models", "run", "model.json"))
	require.NoError(t, err)
	require.Contains(t, string(content), `"layout": 3`)
}

// TestWeights_Fork: a fork has the type of the run that it is of; an adapter begins a new run.
func TestWeights_Fork(t *testing.T) {
	path, dir := gguftest.Quantized(t, "../../model/tiny"), t.TempDir()
	b, _ := weightsBackend(t, dir, Options{Weights: "float32"})
	heldBy(t, b, "first", art.ModelOptions{Base: path})
	heldBy(t, b, "full", art.ModelOptions{Base: path, Full: true})
	require.NoError(t, b.Close())
	b, _ = weightsBackend(t, dir, Options{})
	checkpoint := filepath.Join(dir, "default", "models", "first", "checkpoints", "0000")
	for name, c := range map[string]struct {
		opts art.ModelOptions
		want string
	}{
		"fork":         {art.ModelOptions{Base: path, Fork: "first"}, "float32"},
		"fork of full": {art.ModelOptions{Base: path, Fork: "full@0"}, "float32"},
		"adapter":      {art.ModelOptions{Base: path, Adapter: checkpoint}, "stored"},
	} {
		held, recorded := heldBy(t, b, name, c.opts)
		require.Equal(t, c.want, held, name)
		require.Equal(t, c.want, recorded, name)
	}
}

// TestWeights_Full: all weights cannot be trained where they are not float32.
func TestWeights_Full(t *testing.T) {
	b, _ := weightsBackend(t, t.TempDir(), Options{Weights: "stored"})
	err := art.NewModel("m", &art.ModelOptions{Base: gguftest.Quantized(t, "../../model/tiny"), Full: true}).
		Register(t.Context(), b)
	require.ErrorIs(t, err, art.ErrInvalid)
	require.ErrorContains(t, err, `not with Weights "stored"`)
	require.ErrorContains(t, err, `set Weights of local.Options to "float32"`)
}

// TestWeights_OtherDevice: a device that does not keep blocks has their numbers in float32, which is logged for a run
// that was started with the blocks; a type with other numbers is not replaced.
func TestWeights_OtherDevice(t *testing.T) {
	if race.Enabled {
		t.Skip("GoMLX's own device does not run under the race detector")
	}
	path, dir := gguftest.Quantized(t, "../../model/tiny"), t.TempDir()
	b, _ := weightsBackend(t, dir, Options{})
	held, _ := heldBy(t, b, "run", art.ModelOptions{Base: path, Frozen: true})
	require.Equal(t, "stored", held)
	require.NoError(t, b.Close())
	const other = "go:parallelism=-1"
	b, log := weightsBackend(t, dir, Options{Device: other})
	held, recorded := heldBy(t, b, "run", art.ModelOptions{Base: path, Frozen: true})
	require.Equal(t, []string{"float32", "stored"}, []string{held, recorded})
	require.Contains(t, log.String(), "another type of weights")
	held, recorded = heldBy(t, b, "new", art.ModelOptions{Base: path, Frozen: true})
	require.Equal(t, []string{"float32", "float32"}, []string{held, recorded})
	require.NoError(t, b.Close())

	changeModel(t, dir, "run", `"weights": "stored"`, `"weights": "int8"`)
	b, _ = weightsBackend(t, dir, Options{})
	err := art.NewModel("run", &art.ModelOptions{Base: path, Frozen: true}).Register(t.Context(), b)
	require.ErrorIs(t, err, art.ErrDevice)
	require.ErrorContains(t, err, `"cpu" does not multiply int8 matrices`)
	require.ErrorContains(t, err, "choose a device of XLA")
	_, err = Open(t.Context(), &Options{Dir: dir, Device: other, Weights: "stored"})
	require.ErrorIs(t, err, art.ErrDevice)
}

// TestWeights_StoredFolder: bfloat16 of a folder stays what it is, with the bits of float32.
func TestWeights_StoredFolder(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "rounded")
	base, err := basemodel.Open("tiny")
	require.NoError(t, err)
	require.NoError(t, base.Export(folder, nil, &model.SaveOptions{DType: model.BFloat16}))
	require.NoError(t, base.Close())
	logprobs, bytes := map[string][]float32{}, map[string]float64{}
	for _, weights := range []string{"float32", "stored"} {
		b, _ := weightsBackend(t, t.TempDir(), Options{Weights: weights})
		m := art.NewModel("m", &art.ModelOptions{Base: folder, Frozen: true})
		require.NoError(t, m.Register(t.Context(), b))
		logprobs[weights], _, err = b.Logprobs(t.Context(), m, []int32{72, 101, 108, 108, 111, 10, 65})
		require.NoError(t, err)
		bytes[weights] = b.models[m].base.booking.Weights
	}
	require.Equal(t, logprobs["float32"], logprobs["stored"])
	require.Less(t, bytes["stored"], 0.51*bytes["float32"])
}
