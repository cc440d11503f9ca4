package wandb_test

import (
	"context"
	"errors"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/backendtest"
	server "github.com/goart-dev/art/backend/server/wandb"
	"github.com/goart-dev/art/backend/wandb"
	"github.com/goart-dev/art/grpo/credit"
	"github.com/goart-dev/art/internal/dev/arttest"
)

const key = "secret-of-this-test"

// service serves our own server over a backend.
func service(t *testing.T, backend art.Backend) http.Handler {
	t.Helper()
	s, err := server.New(backend, &server.Options{Dir: t.TempDir(), Bases: []server.Base{{Name: "tiny"}, {Name: "other"}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	h, err := s.Handler(&art.HandlerOptions{Keys: []string{key}})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// open opens a client of a handler, with the run directories in dir.
func open(t *testing.T, h http.Handler, dir string) *wandb.Backend {
	t.Helper()
	listening := httptest.NewServer(h)
	t.Cleanup(listening.Close)
	b, err := wandb.Open(t.Context(), &wandb.Options{
		BaseURL: listening.URL + "/v1", Key: key, Dir: dir, PollTime: 5 * time.Millisecond, RetryTime: 3 * time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b
}

// register registers the model player.
func register(t *testing.T, b *wandb.Backend) *art.Model {
	t.Helper()
	m := art.NewModel("player", &art.ModelOptions{Base: "tiny"})
	if err := m.Register(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	return m
}

// groups asks for two replies, with different rewards.
func groups(t *testing.T, m *art.Model) []*art.TrajectoryGroup {
	t.Helper()
	g := &art.TrajectoryGroup{}
	for reward := range 2 {
		tr := art.NewTrajectory(art.User("hi"))
		if _, err := m.Chat(t.Context(), tr, nil); err != nil {
			t.Fatal(err)
		}
		tr.Reward = float64(reward)
		g.Trajectories = append(g.Trajectories, tr)
	}
	return []*art.TrajectoryGroup{g}
}

// TestBackend runs the contract of all backends on our own server.
func TestBackend(t *testing.T) {
	backendtest.Run(t, func(t *testing.T) art.Backend { return open(t, service(t, &arttest.Backend{}), t.TempDir()) })
}

// TestTrain: the service trains on the samples as they were, and the run directory has the step.
func TestTrain(t *testing.T) {
	var seen []*art.TrajectoryGroup
	fake := &arttest.Backend{}
	fake.Learn = func(_ context.Context, _ *art.Model, groups []*art.TrajectoryGroup, cfg *art.TrainConfig) error {
		if seen = groups; cfg.LearningRate != 1e-3 || cfg.Loss != credit.PPO || cfg.Scale != credit.ScaleNone {
			t.Errorf("config %+v", cfg)
		}
		return nil
	}
	dir, h := t.TempDir(), service(t, fake)
	b := open(t, h, dir)
	m := register(t, b)
	sent := groups(t, m)
	cfg := &art.TrainConfig{LearningRate: 1e-3, Loss: credit.PPO, Scale: credit.ScaleNone}
	result, err := m.Train(t.Context(), sent, cfg)
	if err != nil || result.Step != 1 || m.Step() != 1 {
		t.Fatalf("result %+v, error %v", result, err)
	}
	want, got := sent[0].Trajectories[1].Messages[1].Sample, seen[0].Trajectories[1].Messages[1].Sample
	if want == nil || got == nil || len(want.IDs) == 0 {
		t.Fatalf("samples %+v and %+v", want, got)
	}
	for i := range want.IDs {
		if want.IDs[i] != got.IDs[i] || math.Float32bits(want.Logprobs[i]) != math.Float32bits(got.Logprobs[i]) {
			t.Errorf("token %d: %d %v, want %d %v", i, got.IDs[i], got.Logprobs[i], want.IDs[i], want.Logprobs[i])
		}
	}
	rows, err := b.History(t.Context(), m)
	if reward, ok := art.Logged(rows, "train/reward", 0); err != nil || !ok || reward != 0.5 {
		t.Errorf("rows %+v, error %v", rows, err)
	}
	if reply, err := m.Complete(t.Context(), &art.History{Messages: []art.Message{art.User("hi")}}, nil); err != nil ||
		reply.Model != "player@1" {
		t.Errorf("reply %+v, error %v", reply, err)
	}
	b.Close()
	if again := register(t, open(t, h, dir)); again.Step() != 1 {
		t.Errorf("step %d after a restart", again.Step())
	}
	_ = filepath.WalkDir(dir, func(path string, d os.DirEntry, _ error) error {
		if data, err := os.ReadFile(path); err == nil && strings.Contains(string(data), key) {
			t.Errorf("the key is in %s", path)
		}
		return nil
	})
}

// TestTrain_Interrupted: a training whose client did not wait is not sent again, and the next goes on after it.
func TestTrain_Interrupted(t *testing.T) {
	hold, began := make(chan struct{}), make(chan struct{}, 2)
	fake := &arttest.Backend{}
	fake.Learn = func(context.Context, *art.Model, []*art.TrajectoryGroup, *art.TrainConfig) error {
		began <- struct{}{}
		<-hold
		return nil
	}
	b := open(t, service(t, fake), t.TempDir())
	m := register(t, b)
	data := groups(t, m)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-began; cancel() }()
	if _, err := m.Train(ctx, data, nil); !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v", err)
	}
	close(hold)
	result, err := m.Train(t.Context(), data, nil)
	if err != nil || result.Step != 2 || len(began) != 1 {
		t.Errorf("result %+v, error %v, %d trainings", result, err, len(began)+1)
	}
	if dir, err := b.Dir(m); err != nil || dir == "" {
		t.Error(err)
	}
}

// TestTrainSFT trains on a data set that is stored at the service.
func TestTrainSFT(t *testing.T) {
	m := register(t, open(t, service(t, &arttest.Backend{}), t.TempDir()))
	data := []*art.Trajectory{art.NewTrajectory(art.User("a"), art.Assistant("b"))}
	if result, err := m.TrainSFT(t.Context(), data, nil); err != nil || result.Step != 1 {
		t.Errorf("result %+v, error %v", result, err)
	}
	for _, cfg := range []*art.SFTConfig{{Epochs: 2}, {Part: art.SchedulePart{To: 0.5}}} {
		if _, err := m.TrainSFT(t.Context(), data, cfg); !errors.Is(err, art.ErrUnsupported) {
			t.Errorf("%+v: error %v", cfg, err)
		}
	}
}

// TestTrain_Unsupported: an option that the service does not have is an error, and names itself.
func TestTrain_Unsupported(t *testing.T) {
	m := register(t, open(t, service(t, &arttest.Backend{}), t.TempDir()))
	data := groups(t, m)
	for name, cfg := range map[string]*art.TrainConfig{
		"EntropyBonus": {EntropyBonus: 0.1}, "dapo": {Loss: credit.DAPO}, "Epochs": {Epochs: 2},
		"MaxGradNorm": {MaxGradNorm: 1}, "KL": {KL: credit.KL{Coef: 0.1}},
	} {
		_, err := m.Train(t.Context(), data, cfg)
		if !errors.Is(err, art.ErrUnsupported) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// TestRegister_Refusals: an option that the protocol has no word for is an error, and not left out.
func TestRegister_Refusals(t *testing.T) {
	b := open(t, service(t, &arttest.Backend{}), t.TempDir())
	for name, opts := range map[string]art.ModelOptions{
		"adapter": {Adapter: "x"}, "fork": {Fork: "x"}, "full": {Full: true}, "format": {ToolFormat: "hermes"},
		"targets": {LoRA: art.LoRA{Targets: []string{"q_proj"}}}, "pattern": {LoRA: art.LoRA{TargetPattern: ".*"}},
		"ranks": {LoRA: art.LoRA{Ranks: map[string]int{"q_proj": 2}}}, "dora": {LoRA: art.LoRA{DoRA: true}},
		"alphas": {LoRA: art.LoRA{Alphas: map[string]float64{"q_proj": 2}}}, "rslora": {LoRA: art.LoRA{RankStabilized: true}},
	} {
		opts.Base = "tiny"
		err := art.NewModel("refused", &opts).Register(t.Context(), b)
		if !errors.Is(err, art.ErrUnsupported) || !strings.Contains(err.Error(), "leave them out") {
			t.Errorf("%s: error %v", name, err)
		}
	}
	err := art.NewModel("refused", nil).Register(t.Context(), b)
	if !errors.Is(err, art.ErrInvalid) || !strings.Contains(err.Error(), "Base is empty") {
		t.Errorf("without a base: error %v", err)
	}
}

// TestOtherBase: an existing model of another base is not continued.
func TestOtherBase(t *testing.T) {
	h := service(t, &arttest.Backend{})
	register(t, open(t, h, t.TempDir()))
	m := art.NewModel("player", &art.ModelOptions{Base: "other"})
	if err := m.Register(t.Context(), open(t, h, t.TempDir())); !errors.Is(err, art.ErrInvalid) ||
		!strings.Contains(err.Error(), "tiny") {
		t.Errorf("error %v", err)
	}
	m = art.NewModel("new", &art.ModelOptions{Base: "unknown"})
	if err := m.Register(t.Context(), open(t, h, t.TempDir())); !errors.Is(err, art.ErrInvalid) {
		t.Errorf("error %v", err)
	}
}

// TestBadAnswers: a service that answers badly is an error that says what to do, and is not believed.
func TestBadAnswers(t *testing.T) {
	h := service(t, &arttest.Backend{})
	var bad atomic.Value // func(http.ResponseWriter, *http.Request) bool
	front := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if f, ok := bad.Load().(func(http.ResponseWriter, *http.Request) bool); !ok || !f(w, r) {
			h.ServeHTTP(w, r)
		}
	})
	b := open(t, front, t.TempDir())
	m := register(t, b)
	answer := func(status int, body string) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, _ *http.Request) bool {
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
			return true
		}
	}
	sample := func(logprob string) string {
		return `{"choices":[{"message":{"role":"assistant","content":"x"},"finish_reason":"stop","art_sample":` +
			`{"prompt_ids":[1],"ids":[2],"logprobs":[` + logprob + `]}}]}`
	}
	for name, c := range map[string]struct {
		f    func(http.ResponseWriter, *http.Request) bool
		text string
	}{
		"402":        {answer(402, `{"error":{"message":"no credit"}}`), "credit"},
		"410":        {answer(410, `{}`), "register"},
		"old server": {answer(404, `not found`), "older"},
		"no JSON":    {answer(200, `<html>`), "cannot be read"},
		"half":       {answer(200, `{"choices":[{"message"`), "cannot be read"},
		"empty":      {answer(200, `{}`), "no choices"},
		"NaN":        {answer(200, sample(`"NaN"`)), "logprob"},
		"above 1":    {answer(200, sample(`0.5`)), "logprob"},
		"lengths":    {answer(200, sample(`-1,-2`)), "2 logprobs"},
	} {
		bad.Store(c.f)
		_, err := m.Chat(t.Context(), art.NewTrajectory(art.User("hi")), nil)
		if !errors.Is(err, wandb.ErrService) || !strings.Contains(err.Error(), c.text) || strings.Contains(err.Error(), key) {
			t.Errorf("%s: error %v, want %q", name, err, c.text)
		}
	}
	bad.Store(func(http.ResponseWriter, *http.Request) bool { return false })
	data := groups(t, m)
	posts := 0
	bad.Store(func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, "/training-jobs") {
			return false
		}
		posts++
		w.WriteHeader(http.StatusBadGateway)
		return true
	})
	if _, err := m.Train(t.Context(), data, nil); !errors.Is(err, wandb.ErrService) || posts != 1 || m.Step() != 0 {
		t.Errorf("error %v after %d requests, step %d", err, posts, m.Step())
	}
}

func TestOpen_Invalid(t *testing.T) {
	t.Setenv("WANDB_API_KEY", "")
	for _, o := range []*wandb.Options{nil, {BaseURL: "x"}, {BaseURL: "http://h/v1", PollTime: -1}} {
		if _, err := wandb.Open(t.Context(), o); !errors.Is(err, art.ErrInvalid) {
			t.Errorf("%+v: error %v", o, err)
		}
	}
}
