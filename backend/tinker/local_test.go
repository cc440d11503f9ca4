package tinker_test

import (
	"bytes"
	"errors"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/local"
	"github.com/goart-dev/art/backend/server/tinker"
	client "github.com/goart-dev/art/backend/tinker"
)

// openLocal opens the default backend.
func openLocal(t *testing.T, dir string) *local.Backend {
	t.Helper()
	b, err := local.Open(t.Context(), &local.Options{Dir: dir, Context: 128, Slots: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	return b
}

// learn samples, makes two updates with what was sampled, and samples again. It returns all numbers.
func learn(t *testing.T, m *art.Model) (out []any) {
	t.Helper()
	ctx := t.Context()
	chat := func(seed uint64) *art.Sample {
		r, err := m.Complete(ctx, &art.History{Messages: []art.Message{art.User("yes or no?")}},
			&art.ChatOptions{MaxTokens: new(6), Seed: &seed})
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, r.Message.Content, r.Message.Sample.IDs, r.Message.Sample.Logprobs)
		return r.Message.Sample
	}
	for i, loss := range []art.Loss{art.LossImportanceSampling, art.LossCISPO} {
		var data []art.Datum
		for seed := range uint64(2) {
			data = append(data, datum(chat(seed), float32(seed)-0.5))
		}
		r, err := m.ForwardBackward(ctx, data, loss, nil)
		if err != nil {
			t.Fatal(err)
		}
		adam := art.DefaultAdamW()
		adam.LearningRate = 1e-3
		o, err := m.OptimStep(ctx, adam)
		if err != nil {
			t.Fatal(err)
		}
		step, err := m.Publish(ctx, nil, nil)
		if err != nil || step != i+1 {
			t.Fatalf("step %d: %v", step, err)
		}
		out = append(out, r.Loss, r.Logprobs, o.GradNorm)
	}
	chat(5)
	return out
}

// datum has a target at every position, as data of the protocol do.
func datum(s *art.Sample, advantage float32) art.Datum {
	ids := append(append([]int32{}, s.PromptIDs...), s.IDs...)
	n := len(ids) - 1
	d := art.Datum{
		Input: ids[:n], Targets: ids[1:], Logprobs: make([]float32, n), Advantages: make([]float32, n),
	}
	for k := range s.IDs {
		d.Logprobs[n-len(s.IDs)+k], d.Advantages[n-len(s.IDs)+k] = s.Logprobs[k], advantage
	}
	return d
}

// TestLocal_Parity: the built-in model on our server learns what it learns in process, bit for bit.
func TestLocal_Parity(t *testing.T) {
	if testing.Short() {
		t.Skip("it trains a model twice")
	}
	here, there := t.TempDir(), t.TempDir()
	options := &art.ModelOptions{Base: "tiny", Seed: 7, LoRA: art.LoRA{Rank: 4, Alpha: 8}}
	own := art.NewModel("player", options)
	if err := own.Register(t.Context(), openLocal(t, here)); err != nil {
		t.Fatal(err)
	}
	want := learn(t, own)
	s, err := tinker.New(openLocal(t, there), &tinker.Options{
		Dir: filepath.Join(there, ".tinker"), Bases: []tinker.Base{{Name: "tiny"}}, Alpha: 8,
	})
	if err != nil {
		t.Fatal(err)
	}
	h, err := s.Handler(&art.HandlerOptions{Keys: []string{"tml-secret"}})
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(h)
	b, err := client.Open(t.Context(), &client.Options{
		BaseURL: web.URL, Key: "tml-secret", Tokenizer: "../../model/tiny", Dir: t.TempDir(),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		err := b.Close()
		web.Close()
		if err := errors.Join(err, s.Close()); err != nil {
			t.Error(err)
		}
	}()
	remote := art.NewModel("player", options)
	if err := remote.Register(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	got := learn(t, remote)
	for i := range want {
		if !reflect.DeepEqual(got[i], want[i]) {
			t.Errorf("result %d is %v, want %v", i, got[i], want[i])
		}
	}
	a, z := adapters(t, here), adapters(t, there)
	if !bytes.Equal(a, z) {
		t.Errorf("the adapters differ: %d and %d bytes", len(a), len(z))
	}
}

// adapters reads the adapter of step 2 of the only run in a folder.
func adapters(t *testing.T, dir string) []byte {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "*", "models", "*", "checkpoints", "0002", "adapter_model.safetensors"))
	if err != nil || len(found) != 1 {
		t.Fatalf("%v: %v", err, found)
	}
	data, err := os.ReadFile(found[0])
	if err != nil {
		t.Fatal(err)
	}
	return data
}
