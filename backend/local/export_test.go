package local

import (
	"io"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/lora"
	"github.com/goart-dev/art/model"
)

// trained registers a model and trains it for a step.
func trained(t *testing.T, b *Backend, name string, opts *art.ModelOptions) *art.Model {
	t.Helper()
	m := art.NewModel(name, opts)
	require.NoError(t, m.Register(t.Context(), b))
	groups, err := art.GatherGroups(t.Context(), []string{"7+5="}, twoTurns(m), &art.GatherOptions{GroupSize: 6})
	require.NoError(t, err)
	_, err = m.Train(t.Context(), groups, &art.TrainConfig{LearningRate: 1e-2})
	require.NoError(t, err)
	return m
}

// says is what a model answers greedily.
func says(t *testing.T, m *art.Model) string {
	t.Helper()
	answer, err := m.Complete(t.Context(), ask("Write a number."),
		&art.ChatOptions{Temperature: new(0.0), MaxTokens: new(12)})
	require.NoError(t, err)
	return answer.Message.Content
}

// TestExport: a trained model, exported, is a base model that says the same.
func TestExport(t *testing.T) {
	b := open(t, t.TempDir())
	m := trained(t, b, "m", nil)
	dir := filepath.Join(t.TempDir(), "merged")
	require.NoError(t, b.Export(t.Context(), m, dir, nil))
	merged := art.NewModel("merged", &art.ModelOptions{Base: dir, Frozen: true})
	require.NoError(t, merged.Register(t.Context(), b))
	require.Equal(t, says(t, m), says(t, merged))

	err := b.Export(t.Context(), m, dir, nil)
	require.ErrorContains(t, err, "is not empty")
	require.ErrorIs(t, b.Export(t.Context(), art.NewModel("x", nil), t.TempDir(), nil), art.ErrNotRegistered)

	plain := filepath.Join(t.TempDir(), "plain")
	require.NoError(t, b.Export(t.Context(), merged, plain, nil))
	want, err := os.ReadFile(filepath.Join(dir, "model.safetensors"))
	require.NoError(t, err)
	got, err := os.ReadFile(filepath.Join(plain, "model.safetensors"))
	require.NoError(t, err)
	require.Equal(t, want, got, "a frozen model is its base")
}

// TestExport_Edit: values are edited with the adapter in them, and without one.
func TestExport_Edit(t *testing.T) {
	b := open(t, t.TempDir())
	for name, m := range map[string]*art.Model{"m": trained(t, b, "m", nil),
		"frozen": art.NewModel("f", &art.ModelOptions{Frozen: true})} {
		if m.Backend() == nil {
			require.NoError(t, m.Register(t.Context(), b))
		}
		plain, doubled := filepath.Join(t.TempDir(), "plain"), filepath.Join(t.TempDir(), "doubled")
		require.NoError(t, b.Export(t.Context(), m, plain, nil))
		require.NoError(t, b.Export(t.Context(), m, doubled, &model.SaveOptions{Edit: func(_ string, values []float32) error {
			for i := range values {
				values[i] *= 2
			}
			return nil
		}}))
		want, err := model.Load(plain)
		require.NoError(t, err)
		got, err := model.Load(doubled)
		require.NoError(t, err)
		for i, x := range want.Tensors {
			for j := range x.Data {
				x.Data[j] *= 2
			}
			require.Equal(t, x, got.Tensors[i], name)
		}
	}
}

// TestRegister_AdapterElsewhere: a run that started from an adapter continues wherever that adapter is now, or when it
// is gone, and not with another one. Paths were compared, as text, and two structs printed.
func TestRegister_AdapterElsewhere(t *testing.T) {
	b := open(t, t.TempDir())
	first := trained(t, b, "first", nil)
	dir, err := b.Dir(first)
	require.NoError(t, err)
	other, same := filepath.Join(dir, "checkpoints", "0000"), filepath.Join(t.TempDir(), "same")
	folder := filepath.Join(t.TempDir(), "adapter")
	for _, to := range []string{folder, same} {
		require.NoError(t, os.CopyFS(to, os.DirFS(filepath.Join(dir, "checkpoints", "0001"))))
	}
	runs := t.TempDir()
	register := func(adapter string) error {
		b, err := Open(t.Context(), &Options{Dir: runs, Progress: io.Discard})
		require.NoError(t, err)
		defer b.Close()
		return art.NewModel("fork", &art.ModelOptions{Adapter: adapter}).Register(t.Context(), b)
	}
	require.NoError(t, register(folder))
	require.NoError(t, register(same), "the same adapter in another folder")
	for _, changed := range []string{other, ""} {
		err := register(changed)
		require.ErrorIs(t, err, art.ErrInvalid)
		require.ErrorContains(t, err, "made with other options: Adapter was "+strconv.Quote(folder)+" with SHA-256 ")
		require.NotContains(t, err.Error(), "{")
	}
	require.NoError(t, os.RemoveAll(folder))
	require.NoError(t, register(folder), "it is not needed any more")
	require.NoError(t, register(same))
	require.ErrorContains(t, register(filepath.Join(folder, "nowhere")), "nowhere")
}

// TestRegister_Adapter: a run starts from the adapter of another, of any rank.
func TestRegister_Adapter(t *testing.T) {
	b := open(t, t.TempDir())
	first := trained(t, b, "first", &art.ModelOptions{LoRA: art.LoRA{Rank: 3, Targets: []string{"q_proj", "down_proj"}}})
	dir, err := b.Dir(first)
	require.NoError(t, err)
	folder := filepath.Join(dir, "checkpoints", "0001")
	opts := &art.ModelOptions{Adapter: folder}
	second := art.NewModel("second", opts)
	require.NoError(t, second.Register(t.Context(), b))
	require.Zero(t, second.Step())
	require.Equal(t, says(t, first), says(t, second))
	require.Equal(t, adapterBytes(t, b, first, 1), adapterBytes(t, b, second, 0))

	third := trained(t, b, "third", opts)
	require.Equal(t, 1, third.Step())
	require.NotEqual(t, adapterBytes(t, b, third, 0), adapterBytes(t, b, third, 1))

	other := t.TempDir()
	a, err := lora.New(lora.Config{Targets: []string{"q_proj"}},
		[]lora.LayerShape{{Name: "model.layers.7.self_attn.q_proj", In: 4, Out: 4}}, 1)
	require.NoError(t, err)
	require.NoError(t, a.Save(other, "x"))
	err = art.NewModel("fourth", &art.ModelOptions{Adapter: other}).Register(t.Context(), b)
	require.ErrorIs(t, err, art.ErrInvalid)
	require.ErrorContains(t, err, "model.layers.7.self_attn.q_proj")
	err = art.NewModel("fifth", &art.ModelOptions{Adapter: t.TempDir()}).Register(t.Context(), b)
	require.ErrorContains(t, err, "adapter_config.json")
}
