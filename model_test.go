package art_test

import (
	"context"
	"math"
	"testing"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/dev/arttest"
)

// ptr returns a pointer to v.
func ptr[T any](v T) *T { return &v }

// registered returns a model on a fake. opts may be nil.
func registered(t *testing.T, fake *arttest.Backend, opts *art.ModelOptions) *art.Model {
	t.Helper()
	m := art.NewModel("m", opts)
	if err := m.Register(t.Context(), fake); err != nil {
		t.Fatal(err)
	}
	return m
}

// plain hides the optional interfaces of a backend.
func plain(b art.Backend) art.Backend { return struct{ art.Backend }{b} }

func TestNewModel_Defaults(t *testing.T) {
	m := art.NewModel("m", nil)
	wantEqual(t, "options", m.Options(), art.ModelOptions{
		Project: "default", LoRA: art.LoRA{Rank: 8, Alpha: 16},
	})
	if m.Name() != "m" || m.Step() != 0 || m.Backend() != nil {
		t.Errorf("name %q, step %d, backend %v", m.Name(), m.Step(), m.Backend())
	}
	given := art.ModelOptions{
		Project: "p", Base: "b", LoRA: art.LoRA{Rank: 4, Targets: []string{"q_proj"}}, Frozen: true, Seed: 3,
	}
	want := given
	want.LoRA.Alpha = 8
	wantEqual(t, "options that were given", art.NewModel("m", &given).Options(), want)
}

// The caller and the model share no memory.
func TestModel_OptionsAreCopies(t *testing.T) {
	opts := &art.ModelOptions{
		LoRA: art.LoRA{Targets: []string{"q_proj"}},
		Chat: art.ChatOptions{Temperature: ptr(0.5), TopP: ptr(0.9), TopK: ptr(3), MaxTokens: ptr(9), Stop: []string{"."}, Seed: ptr(uint64(1))},
	}
	m := art.NewModel("m", opts)
	for _, o := range []*art.ModelOptions{opts, ptr(m.Options())} {
		o.LoRA.Targets[0], o.Chat.Stop[0] = "changed", "changed"
		*o.Chat.Temperature, *o.Chat.TopP, *o.Chat.TopK, *o.Chat.MaxTokens, *o.Chat.Seed = 7, 7, 7, 7, 7
	}
	wantEqual(t, "targets", m.Options().LoRA.Targets, []string{"q_proj"})
	wantEqual(t, "chat options", m.Options().Chat, art.ChatOptions{
		Temperature: ptr(0.5), TopP: ptr(0.9), TopK: ptr(3), MaxTokens: ptr(9), Stop: []string{"."}, Seed: ptr(uint64(1)),
	})
}

func TestModel_RegisterInvalid(t *testing.T) {
	cases := []struct {
		name string
		opts art.ModelOptions
		say  []string
	}{
		{"", art.ModelOptions{}, []string{"name is empty"}},
		{".", art.ModelOptions{Project: ".."}, []string{`name is "."`, `project is ".."`}},
		{"a/b", art.ModelOptions{Project: `a\b`}, []string{`name "a/b"`, `project "a\\b"`}},
		{"a@1", art.ModelOptions{Project: "a\x00"}, []string{`name "a@1"`, "control character"}},
		{" a", art.ModelOptions{Project: "a\t"}, []string{`name " a" begins`, `project "a\t" begins`}},
		{"a", art.ModelOptions{LoRA: art.LoRA{Rank: -1, Alpha: math.NaN(), Targets: []string{"", "x", "x"}}},
			[]string{"rank is -1", "alpha is NaN", "target 0 is empty", `"x" is named twice`}},
		{"a", art.ModelOptions{Adapter: "x", Frozen: true, LoRA: art.LoRA{Rank: 8}}, []string{"leave LoRA empty", "a frozen model has no adapter"}},
		{"a", art.ModelOptions{Chat: art.ChatOptions{Temperature: ptr(-1.0), TopP: ptr(0.0), TopK: ptr(-1), MaxTokens: ptr(-1), Stop: []string{""}}},
			[]string{"temperature is -1", "top_p is 0", "top_k is -1", "max_tokens is -1", "stop string is empty"}},
	}
	for _, c := range cases {
		fake := &arttest.Backend{}
		m := art.NewModel(c.name, &c.opts)
		wantErr(t, m.Register(t.Context(), fake), art.ErrInvalid, c.say...)
		if m.Backend() != nil {
			t.Errorf("%q is registered all the same", c.name)
		}
	}
	wantErr(t, art.NewModel("m", nil).Register(t.Context(), nil), art.ErrInvalid, "backend is nil")
}

// resumed is a backend whose runs are at step 7.
type resumed struct{ art.Backend }

func (r resumed) Register(ctx context.Context, m *art.Model) (int, error) {
	_, err := r.Backend.Register(ctx, m)
	return 7, err
}

func TestModel_Register(t *testing.T) {
	b := resumed{&arttest.Backend{}}
	m := art.NewModel("m", nil)
	if err := m.Register(t.Context(), b); err != nil || m.Step() != 7 || m.Backend() != art.Backend(b) {
		t.Fatalf("step %d, backend %v, error %v", m.Step(), m.Backend(), err)
	}
	wantErr(t, m.Register(t.Context(), &arttest.Backend{}), art.ErrInvalid, "already registered")
	second := art.NewModel("m", nil)
	if err := second.Register(t.Context(), b); err == nil || second.Backend() != nil || second.Step() != 0 {
		t.Errorf("refused by the backend: error %v, backend %v, step %d", err, second.Backend(), second.Step())
	}
}

func TestModel_NotRegistered(t *testing.T) {
	m, ctx := art.NewModel("m", nil), t.Context()
	_, chat := m.Chat(ctx, art.NewTrajectory(art.User("?")), nil)
	_, complete := m.Complete(ctx, &art.History{}, nil)
	_, train := m.Train(ctx, nil, nil)
	_, sft := m.TrainSFT(ctx, nil, nil)
	_, dpo := m.TrainDPO(ctx, nil, nil)
	_, get := m.HTTPClient().Get("http://art.invalid/v1/models")
	for name, err := range map[string]error{
		"Chat": chat, "Complete": complete, "Train": train, "TrainSFT": sft, "TrainDPO": dpo, "HTTPClient": get,
		"Log": m.Log(ctx, "val", nil, nil), "DeleteCheckpoints": m.DeleteCheckpoints(ctx, ""),
	} {
		t.Run(name, func(t *testing.T) { wantErr(t, err, art.ErrNotRegistered, `"m"`, "call Model.Register first") })
	}
}

func TestModel_Unsupported(t *testing.T) {
	m, ctx := art.NewModel("m", nil), t.Context()
	if err := m.Register(ctx, plain(&arttest.Backend{})); err != nil {
		t.Fatal(err)
	}
	_, sft := m.TrainSFT(ctx, []*art.Trajectory{{}}, nil)
	_, dpo := m.TrainDPO(ctx, nil, nil)
	_, get := m.HTTPClient().Get("http://art.invalid/v1/models")
	for name, err := range map[string]error{
		"driver.SFTTrainer": sft, "driver.DPOTrainer": dpo, "driver.HTTPServer": get,
		"driver.Logger": m.Log(ctx, "val", nil, nil), "driver.CheckpointKeeper": m.DeleteCheckpoints(ctx, ""),
	} {
		t.Run(name, func(t *testing.T) { wantErr(t, err, art.ErrUnsupported, name) })
	}
}
