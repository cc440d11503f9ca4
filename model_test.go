package art_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"testing"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/arttest"
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
	wantEqual(t, "options", m.Options(), art.ModelOptions{Project: "default", Base: "tiny", LoRA: art.LoRA{Rank: 8, Alpha: 16}})
	if m.Name() != "m" || m.Step() != 0 || m.Backend() != nil {
		t.Errorf("name %q, step %d, backend %v", m.Name(), m.Step(), m.Backend())
	}
	given := art.ModelOptions{Project: "p", Base: "b", LoRA: art.LoRA{Rank: 4, Targets: []string{"q_proj"}}, Frozen: true, Seed: 3}
	want := given
	want.LoRA.Alpha = 8
	wantEqual(t, "options that were given", art.NewModel("m", &given).Options(), want)
}

// What the caller holds and what the model holds are apart.
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
	_, get := m.HTTPClient().Get("http://art.invalid/v1/models")
	for name, err := range map[string]error{
		"Chat": chat, "Complete": complete, "Train": train, "TrainSFT": sft, "HTTPClient": get,
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
	_, get := m.HTTPClient().Get("http://art.invalid/v1/models")
	for name, err := range map[string]error{
		"art.SFTTrainer": sft, "art.HTTPServer": get,
		"art.Logger": m.Log(ctx, "val", nil, nil), "art.CheckpointKeeper": m.DeleteCheckpoints(ctx, ""),
	} {
		t.Run(name, func(t *testing.T) { wantErr(t, err, art.ErrUnsupported, name) })
	}
}

func TestModel_Chat(t *testing.T) {
	m := registered(t, &arttest.Backend{Reply: arttest.Script("one", "two")}, nil)
	tr := art.NewTrajectory(art.System("s"), art.User("u"))
	first, err := m.Chat(t.Context(), tr, nil)
	if err != nil || first.Content != "one" || first.Sample == nil {
		t.Fatalf("reply %+v, error %v", first, err)
	}
	first.Content = "edited" // a copy
	tr.Add(art.User("and?"))
	if _, err := m.Chat(t.Context(), tr, nil); err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, message := range tr.Messages {
		texts = append(texts, message.Content)
	}
	wantEqual(t, "conversation", texts, []string{"s", "u", "one", "and?", "two"})
	if len(tr.Samples()) != 2 || tr.Messages[2].Sample != first.Sample {
		t.Errorf("%d samples", len(tr.Samples()))
	}
	_, err = m.Chat(t.Context(), nil, nil)
	wantErr(t, err, art.ErrInvalid, "trajectory is nil")
}

// An error leaves the trajectory as it was.
func TestModel_ChatFails(t *testing.T) {
	boom := errors.New("boom")
	m := registered(t, &arttest.Backend{Reply: func(context.Context, *art.Model, *art.ChatRequest) (art.Message, error) {
		return art.Message{}, boom
	}}, nil)
	tr := art.NewTrajectory(art.User("u"))
	if reply, err := m.Chat(t.Context(), tr, nil); err != boom || reply != nil || len(tr.Messages) != 1 { //nolint:errorlint // it comes back as it is
		t.Errorf("reply %v, error %v, %d messages", reply, err, len(tr.Messages))
	}
}

func TestModel_CompleteSettings(t *testing.T) {
	var got art.Sampling
	fake := &arttest.Backend{Reply: func(_ context.Context, _ *art.Model, req *art.ChatRequest) (art.Message, error) {
		got = req.Settings
		return art.Assistant("x"), nil
	}}
	history := &art.History{Messages: []art.Message{art.User("u")}}
	ask := func(t *testing.T, defaults art.ChatOptions, opts *art.ChatOptions) art.Sampling {
		t.Helper()
		*fake = arttest.Backend{Reply: fake.Reply}
		m := registered(t, fake, &art.ModelOptions{Chat: defaults})
		if _, err := m.Complete(t.Context(), history, opts); err != nil {
			t.Fatal(err)
		}
		return got
	}
	seeded := art.ChatOptions{Seed: ptr(uint64(0))}
	wantEqual(t, "defaults", ask(t, seeded, nil), art.Sampling{Temperature: 1, TopP: 1})
	model := art.ChatOptions{Temperature: ptr(0.0), TopP: ptr(0.5), TopK: ptr(2), MaxTokens: ptr(3), Stop: []string{"a"}, Seed: ptr(uint64(4))}
	of := art.Sampling{Temperature: 0, TopP: 0.5, TopK: 2, MaxTokens: 3, Stop: []string{"a"}, Seed: 4}
	wantEqual(t, "of the model", ask(t, model, nil), of)
	wantEqual(t, "of the model, call without", ask(t, model, &art.ChatOptions{}), of)
	call := &art.ChatOptions{Temperature: ptr(2.0), TopP: ptr(1.0), TopK: ptr(0), MaxTokens: ptr(0), Stop: []string{}, Seed: ptr(uint64(5))}
	wantEqual(t, "of the call", ask(t, model, call), art.Sampling{Temperature: 2, TopP: 1, Stop: []string{}, Seed: 5})
}

// The variables of the chat template are those of the model, and of the call before them.
func TestModel_CompleteTemplateArgs(t *testing.T) {
	var got json.RawMessage
	fake := &arttest.Backend{Reply: func(_ context.Context, _ *art.Model, req *art.ChatRequest) (art.Message, error) {
		got = req.TemplateArgs
		return art.Assistant("x"), nil
	}}
	m := registered(t, fake, &art.ModelOptions{Chat: art.ChatOptions{TemplateArgs: json.RawMessage(`{"a": 1, "b": {"z": 1, "y": 2}}`)}})
	h := &art.History{Messages: []art.Message{art.User("x")}}
	for args, want := range map[string]string{``: `{"a":1,"b":{"z":1,"y":2}}`, `null`: `{"a":1,"b":{"z":1,"y":2}}`, `{"b": false, "c": []}`: `{"a":1,"b":false,"c":[]}`} {
		if _, err := m.Complete(t.Context(), h, &art.ChatOptions{TemplateArgs: json.RawMessage(args)}); err != nil {
			t.Fatal(err)
		}
		wantEqual(t, "variables of "+args, string(got), want)
	}
	for _, args := range []string{`[]`, `{`, `1`} {
		if _, err := m.Complete(t.Context(), h, &art.ChatOptions{TemplateArgs: json.RawMessage(args)}); !errors.Is(err, art.ErrInvalid) {
			t.Errorf("%s: error %v", args, err)
		}
		err := art.NewModel("m", &art.ModelOptions{Chat: art.ChatOptions{TemplateArgs: json.RawMessage(args)}}).Register(t.Context(), &arttest.Backend{})
		if !errors.Is(err, art.ErrInvalid) {
			t.Errorf("%s as a default: error %v", args, err)
		}
	}
}

func TestModel_CompleteInvalid(t *testing.T) {
	m := registered(t, &arttest.Backend{}, nil)
	cases := []struct {
		history *art.History
		opts    *art.ChatOptions
		say     string
	}{
		{nil, nil, "no messages"},
		{&art.History{}, nil, "no messages"},
		{&art.History{Messages: []art.Message{art.User("u"), {Content: "x"}}}, nil, "messages[1].role is empty"},
		{&art.History{Messages: []art.Message{art.User("u")}}, &art.ChatOptions{Temperature: ptr(math.Inf(1))}, "temperature is +Inf"},
		{&art.History{Messages: []art.Message{art.User("u")}}, &art.ChatOptions{TopP: ptr(math.NaN())}, "top_p is NaN"},
	}
	for _, c := range cases {
		_, err := m.Complete(t.Context(), c.history, c.opts)
		wantErr(t, err, art.ErrInvalid, c.say)
	}
}

// A backend may keep a request: it does not share memory with the caller's history.
func TestModel_CompleteCopies(t *testing.T) {
	var kept *art.ChatRequest
	m := registered(t, &arttest.Backend{Reply: func(_ context.Context, _ *art.Model, req *art.ChatRequest) (art.Message, error) {
		kept = req
		return art.Assistant("x"), nil
	}}, nil)
	h := &art.History{
		Messages: []art.Message{{Role: art.RoleAssistant, ToolCalls: []art.ToolCall{{Name: "f"}}}},
		Tools:    []art.Tool{{Name: "f", Parameters: []byte(`{}`)}},
	}
	if _, err := m.Complete(t.Context(), h, nil); err != nil {
		t.Fatal(err)
	}
	h.Messages[0].ToolCalls[0].Name, h.Messages[0].Content, h.Tools[0].Name, h.Tools[0].Parameters[0] = "changed", "changed", "changed", '['
	if kept.Messages[0].ToolCalls[0].Name != "f" || kept.Messages[0].Content != "" || kept.Tools[0].Name != "f" || string(kept.Tools[0].Parameters) != "{}" {
		t.Errorf("the request changed: %+v", kept)
	}
}

func TestModel_Train(t *testing.T) {
	boom := errors.New("boom")
	var fail error
	var cfg *art.TrainConfig
	m := registered(t, &arttest.Backend{Learn: func(_ context.Context, _ *art.Model, _ []*art.TrajectoryGroup, c *art.TrainConfig) error {
		cfg = c
		return fail
	}}, nil)
	groups := []*art.TrajectoryGroup{{}}
	result, err := m.Train(t.Context(), groups, nil)
	if err != nil || result.Step != 1 || m.Step() != 1 {
		t.Fatalf("result %+v, step %d, error %v", result, m.Step(), err)
	}
	wantEqual(t, "config that the backend gets", cfg, (*art.TrainConfig)(nil).WithDefaults())
	fail = boom
	if result, err := m.Train(t.Context(), groups, nil); err != boom || result != nil || m.Step() != 1 { //nolint:errorlint // it comes back as it is
		t.Errorf("after a failure: result %v, error %v, step %d", result, err, m.Step())
	}
	cfg = nil
	_, err = m.Train(t.Context(), groups, &art.TrainConfig{LearningRate: -1})
	wantErr(t, err, art.ErrInvalid, "learning rate")
	_, err = m.Train(t.Context(), nil, nil)
	wantErr(t, err, art.ErrNoGroups)
	if cfg != nil {
		t.Error("the backend was asked for a training that is invalid")
	}
}

func TestModel_TrainSFT(t *testing.T) {
	m := registered(t, &arttest.Backend{}, nil)
	result, err := m.TrainSFT(t.Context(), []*art.Trajectory{{}}, nil)
	if err != nil || result.Step != 1 || m.Step() != 1 {
		t.Errorf("result %+v, step %d, error %v", result, m.Step(), err)
	}
	_, err = m.TrainSFT(t.Context(), nil, nil)
	wantErr(t, err, art.ErrInvalid, "no trajectories")
	_, err = m.TrainSFT(t.Context(), []*art.Trajectory{{}}, &art.SFTConfig{Epochs: -1})
	wantErr(t, err, art.ErrInvalid, "epochs")
}

func TestModel_Frozen(t *testing.T) {
	m := registered(t, &arttest.Backend{}, &art.ModelOptions{Frozen: true})
	_, err := m.Train(t.Context(), []*art.TrajectoryGroup{{}}, nil)
	wantErr(t, err, art.ErrFrozen)
	_, err = m.TrainSFT(t.Context(), []*art.Trajectory{{}}, nil)
	wantErr(t, err, art.ErrFrozen)
}

// lagging is a backend whose trainings return in another order than they commit.
type lagging struct {
	art.Backend
	steps []int
}

func (l *lagging) Train(context.Context, *art.Model, []*art.TrajectoryGroup, *art.TrainConfig) (*art.TrainResult, error) {
	step := l.steps[0]
	l.steps = l.steps[1:]
	return &art.TrainResult{Step: step}, nil
}

func TestModel_StepNeverFalls(t *testing.T) {
	m := art.NewModel("m", nil)
	if err := m.Register(t.Context(), &lagging{&arttest.Backend{}, []int{2, 1}}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := m.Train(t.Context(), []*art.TrajectoryGroup{{}}, nil); err != nil || m.Step() != 2 {
			t.Errorf("step %d, error %v", m.Step(), err)
		}
	}
}

// A client may be made before the model is registered.
func TestModel_HTTPClient(t *testing.T) {
	m := art.NewModel("m", nil)
	client := m.HTTPClient()
	if err := m.Register(t.Context(), &arttest.Backend{Reply: arttest.Script("hi")}); err != nil {
		t.Fatal(err)
	}
	body := strings.NewReader(`{"messages":[{"role":"user","content":"u"}]}`)
	response, err := client.Post("http://art.invalid/v1/chat/completions", "application/json", body)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK || !strings.Contains(string(text), `"content":"hi"`) {
		t.Errorf("status %d, body %s, error %v", response.StatusCode, text, err)
	}
}

// closing tells whether it was closed.
type closing struct {
	io.Reader
	closed bool
}

func (c *closing) Close() error { c.closed = true; return nil }

func TestModel_HTTPClientClosesBody(t *testing.T) {
	body := &closing{Reader: strings.NewReader("{}")}
	_, err := art.NewModel("m", nil).HTTPClient().Post("http://art.invalid/", "application/json", body)
	if wantErr(t, err, art.ErrNotRegistered); !body.closed {
		t.Error("the body of a request that failed is open")
	}
}

func TestError_Error(t *testing.T) {
	e := &art.Error{Op: "train", Err: fmt.Errorf("%w: %q", art.ErrFrozen, "m")}
	wantEqual(t, "without hint", e.Error(), `art: train: model is frozen: "m"`)
	e.Hint = "thaw it"
	wantEqual(t, "with hint", e.Error(), `art: train: model is frozen: "m" (thaw it)`)
}
