package main

import (
	"bytes"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/local"
	"github.com/goart-dev/art/backend/tinker"
)

// TestServeTrain: a client trains on `art serve --train`, stops and goes on after the server was started again, and the
// adapter that it downloads is one that samples in process.
func TestServeTrain(t *testing.T) {
	if testing.Short() {
		t.Skip("it trains a model")
	}
	dir, home := t.TempDir(), t.TempDir()
	args := []string{"--train", "org/name=tiny", "--dir", dir, "--key", "tml-of-a-test"}
	adapter := filepath.Join(home, "adapter")
	for step := 1; step <= 2; step++ {
		s := startServer(t, args...)
		trainOnce(t, s.root, home, step, adapter)
		if status, _ := s.do(t, s.request(t, http.MethodGet, "/api/v1/training_runs", nil)); status != http.StatusOK {
			t.Errorf("training_runs: status %d", status)
		}
		r := s.request(t, http.MethodGet, "/api/v1/training_runs", nil)
		r.Header.Set("Authorization", "Bearer tml-other")
		if status, body := s.do(t, r); status != http.StatusUnauthorized {
			t.Errorf("another key: status %d: %s", status, body)
		}
		s.want(t, "GET", "/metrics", "", http.StatusOK, "art_rollouts_inflight 0", "go_goroutines")
		r = s.request(t, http.MethodGet, "/metrics", nil)
		r.Header.Del("Authorization")
		if status, body := s.do(t, r); status != http.StatusUnauthorized {
			t.Errorf("metrics without a key: status %d: %s", status, body)
		}
		s.end(t)
	}
	b, err := local.Open(t.Context(), &local.Options{Dir: t.TempDir(), Context: 128})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	m := art.NewModel("home", &art.ModelOptions{Base: "tiny", Adapter: adapter})
	if err := m.Register(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Chat(t.Context(), art.NewTrajectory(art.User("hi")), &art.ChatOptions{MaxTokens: new(2)}); err != nil {
		t.Error(err)
	}
}

// trainOnce makes a step on a server. It downloads step 2.
func trainOnce(t *testing.T, root, home string, step int, adapter string) {
	t.Helper()
	b, err := tinker.Open(t.Context(), &tinker.Options{
		BaseURL: root, Key: "tml-of-a-test", Tokenizer: "../../model/tiny", Dir: home,
	})
	if err != nil {
		t.Fatal(err)
	}
	m := art.NewModel("player", &art.ModelOptions{Base: "org/name", LoRA: art.LoRA{Rank: 4}})
	err = m.Register(t.Context(), b)
	if err == nil {
		data := []*art.Trajectory{art.NewTrajectory(art.User("a?"), art.Assistant("b"))}
		_, err = m.TrainSFT(t.Context(), data, &art.SFTConfig{LearningRate: 1e-3})
	}
	if err == nil && step == 2 {
		err = b.Download(t.Context(), m, step, adapter)
	}
	if err = errors.Join(err, b.Close()); err != nil || m.Step() != step {
		t.Fatalf("step %d, want %d: %v", m.Step(), step, err)
	}
	keys, err := secretIn(home, "tml-of-a-test")
	if err != nil || len(keys) > 0 {
		t.Errorf("%v: the key is in %v", err, keys)
	}
}

// secretIn lists the files below a folder that have a text.
func secretIn(dir, text string) (found []string, err error) {
	err = filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if bytes.Contains(data, []byte(text)) {
			found = append(found, path)
		}
		return err
	})
	return found, err
}
