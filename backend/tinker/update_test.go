package tinker_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/loop"
	client "github.com/goart-dev/art/backend/tinker"
	"github.com/goart-dev/art/grpo/credit"
	"github.com/goart-dev/art/internal/dev/arttest"
)

// TestTrain_Interrupted: a training call that fails halfway leaves the model at its step, and the next one begins
// there, with the result of an undisturbed one.
func TestTrain_Interrupted(t *testing.T) {
	tokens := words(t)
	sft := []*art.Trajectory{
		art.NewTrajectory(art.User("a"), art.Assistant("b")), art.NewTrajectory(art.User("c"), art.Assistant("d")),
	}
	cfg := &art.SFTConfig{LearningRate: 0.125, BatchSize: 1}
	var fail atomic.Int64
	learn := func(m *art.Model) map[string]float64 {
		t.Helper()
		for range 2 {
			if fail.Load() != 0 {
				fail.Store(1)
				if _, err := m.TrainSFT(t.Context(), sft, cfg); !errors.Is(err, client.ErrService) || m.Step() > 1 {
					t.Fatalf("step %d: %v", m.Step(), err)
				}
			}
			if _, err := m.TrainSFT(t.Context(), sft, cfg); err != nil {
				t.Fatal(err)
			}
		}
		r, err := loop.Forward(t.Context(), m, data(false), credit.CrossEntropy, nil)
		if err != nil {
			t.Fatal(err)
		}
		return map[string]float64{"loss": r.Loss, "step": float64(m.Step())}
	}
	_, m := open(t, client.Options{BaseURL: serve(t, nil), Key: "tml-secret", Tokenizer: tokens, Dir: t.TempDir()})
	want := learn(m)
	address := serve(t, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "/optim_step") && fail.Load() > 0 && fail.Add(1) == 3 {
				fail.Store(-1)
				w.WriteHeader(http.StatusPaymentRequired)
				return
			}
			h.ServeHTTP(w, r)
		})
	})
	fail.Store(1)
	_, m = open(t, client.Options{BaseURL: address, Key: "tml-secret", Tokenizer: tokens, Dir: t.TempDir()})
	if got := learn(m); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// skipping skips all updates.
type skipping struct{ *arttest.Backend }

// OptimStep implements [loop.Trainer].
func (skipping) OptimStep(context.Context, *art.Model, loop.AdamW) (*loop.OptimResult, error) {
	return &loop.OptimResult{GradNorm: math.Inf(1), Skipped: true}, nil
}

// TestTrain_Skipped: a call whose updates a service skips makes a step, as that of a local model does, with a warning
// and without means over updates.
func TestTrain_Skipped(t *testing.T) {
	var log bytes.Buffer
	address := serveOf(t, skipping{&arttest.Backend{}}, nil)
	_, m := open(t, client.Options{
		BaseURL: address, Key: "tml-secret", Tokenizer: words(t), Dir: t.TempDir(), Logger: slog.New(slog.NewTextHandler(&log, nil)),
	})
	sft := []*art.Trajectory{
		art.NewTrajectory(art.User("a"), art.Assistant("b")), art.NewTrajectory(art.User("c"), art.Assistant("d")),
	}
	result, err := m.TrainSFT(t.Context(), sft, &art.SFTConfig{LearningRate: 0.125, BatchSize: 1})
	if err != nil || result.Step != 1 || m.Step() != 1 {
		t.Fatalf("step %d: %v", m.Step(), err)
	}
	if n, skipped := result.Metrics["data/updates"], result.Metrics["data/updates_skipped"]; n != 0 || skipped != 2 {
		t.Errorf("%v updates, and %v skipped of 2", n, skipped)
	}
	if loss, there := result.Metrics["loss/sft"]; there {
		t.Errorf("there is a loss of no updates: %v", loss)
	}
	if !strings.Contains(log.String(), "optimizer steps were skipped") {
		t.Errorf("no warning: %s", &log)
	}
}

// TestTrain_Refusals: what a service cannot compute is an error that names all of it, and changes nothing.
func TestTrain_Refusals(t *testing.T) {
	_, m := open(t, client.Options{BaseURL: serve(t, nil), Key: "tml-secret", Tokenizer: words(t), Dir: t.TempDir()})
	groups := []*art.TrajectoryGroup{{}}
	for want, cfg := range map[string]art.TrainConfig{
		`the loss "gspo"`: {Loss: credit.GSPO}, "DualClip": {Loss: credit.PPO, DualClip: 3}, "KimiTau": {KimiTau: 0.1},
		"MaskRatio": {MaskRatio: true}, "EntropyBonus": {EntropyBonus: 0.1}, "KL, unless": {KL: credit.KL{Coef: 1}},
		"Correction": {Correction: credit.Correction{Method: credit.CorrectMask}}, "Level": {Level: credit.LevelSequence},
	} {
		_, err := m.Train(t.Context(), groups, &cfg)
		if !errors.Is(err, art.ErrUnsupported) || !strings.Contains(err.Error(), want) || m.Step() != 0 {
			t.Errorf("%s: step %d: %v", want, m.Step(), err)
		}
	}
}

// TestRegister_Refusals: an option that the protocol has no word for is an error, and not left out.
func TestRegister_Refusals(t *testing.T) {
	b, _ := open(t, client.Options{BaseURL: serve(t, nil), Key: "tml-secret", Tokenizer: words(t), Dir: t.TempDir()})
	for name, opts := range map[string]art.ModelOptions{
		"adapter": {Adapter: "x"}, "fork": {Fork: "x"}, "full": {Full: true}, "format": {ToolFormat: "hermes"},
		"frozen":  {Frozen: true},
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

// TestForward_Chunks: data beyond the limits of a request are sent in several, with the same result.
func TestForward_Chunks(t *testing.T) {
	tokens := words(t)
	_, m := open(t, client.Options{BaseURL: serve(t, nil), Key: "tml-secret", Tokenizer: tokens, Dir: t.TempDir()})
	want := train(t, m)
	var passes atomic.Int64
	address := serve(t, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "/client/config") {
				_, _ = w.Write([]byte(`{"fwdbwd_max_chunk_len":1}`))
				return
			}
			if strings.HasSuffix(r.URL.Path, "/forward_backward") {
				passes.Add(1)
			}
			h.ServeHTTP(w, r)
		})
	})
	_, m = open(t, client.Options{BaseURL: address, Key: "tml-secret", Tokenizer: tokens, Dir: t.TempDir()})
	if got := train(t, m); !reflect.DeepEqual(got, want) || passes.Load() != 16 {
		t.Errorf("%d requests: got\n%v\nwant\n%v", passes.Load(), got, want)
	}
}

// TestRegister_UnknownBase: the error lists what there is.
func TestRegister_UnknownBase(t *testing.T) {
	b, err := client.Open(t.Context(), &client.Options{
		BaseURL: serve(t, nil), Key: "tml-secret", Tokenizer: words(t), Dir: t.TempDir(),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	err = art.NewModel("m", &art.ModelOptions{Base: "org/other"}).Register(t.Context(), b)
	if !errors.Is(err, art.ErrBaseModel) || !strings.Contains(err.Error(), "org/fake") {
		t.Error(err)
	}
}

// TestDownload: an archive becomes a folder with the adapter alone, whatever paths it has; a redirect to another host
// does not get the key; half an archive leaves nothing.
func TestDownload(t *testing.T) {
	content := archived(t, "../../adapter_config.json", "adapter_model.safetensors", "../evil", "/etc/passwd")
	storage := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Api-Key") != "" {
			t.Error("the storage got the key")
		}
		_, _ = w.Write(content)
	}))
	defer storage.Close()
	address := serve(t, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "/archive") {
				http.Redirect(w, r, storage.URL, http.StatusFound)
				return
			}
			h.ServeHTTP(w, r)
		})
	})
	b, m := open(t, client.Options{BaseURL: address, Key: "tml-secret", Tokenizer: words(t), Dir: t.TempDir()})
	train(t, m)
	parent := t.TempDir()
	dir := filepath.Join(parent, "home")
	if err := b.Download(t.Context(), m, 1, dir); err != nil {
		t.Fatal(err)
	}
	if got := files(t, dir); !reflect.DeepEqual(got, []string{"adapter_config.json", "adapter_model.safetensors"}) {
		t.Errorf("files %v", got)
	}
	if err := b.Download(t.Context(), m, 0, filepath.Join(parent, "0")); !errors.Is(err, art.ErrInvalid) {
		t.Errorf("step 0: %v", err)
	}
	content = content[:len(content)/2]
	if err := b.Download(context.Background(), m, 1, filepath.Join(parent, "half")); !errors.Is(err, client.ErrService) {
		t.Errorf("half an archive: %v", err)
	}
	if got := files(t, parent); !reflect.DeepEqual(got, []string{"home"}) {
		t.Errorf("files %v", got)
	}
}

// archived is an archive of files with two bytes each.
func archived(t *testing.T, names ...string) []byte {
	t.Helper()
	var archive bytes.Buffer
	zipped := gzip.NewWriter(&archive)
	out := tar.NewWriter(zipped)
	for _, name := range names {
		if err := out.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: 2}); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(out, "{}"); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(out.Close(), zipped.Close()); err != nil {
		t.Fatal(err)
	}
	return archive.Bytes()
}

func files(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}
