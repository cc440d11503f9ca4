package tinker_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/local"
	"github.com/goart-dev/art/backend/loop"
	"github.com/goart-dev/art/backend/server/tinker"
	client "github.com/goart-dev/art/backend/tinker"
	"github.com/goart-dev/art/grpo/credit"
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
	for i, loss := range []credit.Loss{credit.ImportanceSampling, credit.CISPO} {
		var data []loop.Datum
		for seed := range uint64(2) {
			data = append(data, datum(chat(seed), float32(seed)-0.5))
		}
		r, err := loop.ForwardBackward(ctx, m, data, loss, nil)
		if err != nil {
			t.Fatal(err)
		}
		adam := loop.DefaultAdamW()
		adam.LearningRate = 1e-3
		o, err := loop.OptimStep(ctx, m, adam)
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
func datum(s *art.Sample, advantage float32) loop.Datum {
	ids := append(append([]int32{}, s.PromptIDs...), s.IDs...)
	n := len(ids) - 1
	d := loop.Datum{
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
	want := learn(t, localModel(t, here))
	got := learn(t, remoteModel(t, there))
	for i := range want {
		if !reflect.DeepEqual(got[i], want[i]) {
			t.Errorf("result %d is %v, want %v", i, got[i], want[i])
		}
	}
	equalAdapters(t, here, there, 2)
}

var options = &art.ModelOptions{Base: "tiny", Seed: 7, LoRA: art.LoRA{Rank: 4, Alpha: 8}}

// localModel is a model in process.
func localModel(t *testing.T, dir string) *art.Model {
	t.Helper()
	m := art.NewModel("player", options)
	if err := m.Register(t.Context(), openLocal(t, dir)); err != nil {
		t.Fatal(err)
	}
	return m
}

// remoteModel is the same model on a server of ours, whose runs are in dir.
func remoteModel(t *testing.T, dir string) *art.Model {
	t.Helper()
	there := dir
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
	t.Cleanup(func() {
		err := b.Close()
		web.Close()
		if err := errors.Join(err, s.Close()); err != nil {
			t.Error(err)
		}
	})
	remote := art.NewModel("player", options)
	if err := remote.Register(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	return remote
}

// equalAdapters compares the adapters of a step, bit for bit.
func equalAdapters(t *testing.T, here, there string, step int) {
	t.Helper()
	if a, z := adapters(t, here, step), adapters(t, there, step); !bytes.Equal(a, z) {
		t.Errorf("the adapters differ: %d and %d bytes", len(a), len(z))
	}
}

// TestLocal_TrainIsTrain: Train and TrainSFT make the adapter at a service that they make in process, bit for bit, and
// what both measure is equal; TrainDPO, whose weights are rounded once more, does nearly.
func TestLocal_TrainIsTrain(t *testing.T) {
	if testing.Short() {
		t.Skip("it trains a model several times")
	}
	here, there := t.TempDir(), t.TempDir()
	own, remote := localModel(t, here), remoteModel(t, there)
	groups := []*art.TrajectoryGroup{play(t, own, 0), play(t, own, 10)}
	both := func(name string, tolerance float64, train func(m *art.Model) (*art.TrainResult, error)) {
		t.Helper()
		want, err := train(own)
		if err != nil {
			t.Fatal(name, err)
		}
		got, err := train(remote)
		if err != nil {
			t.Fatal(name, err)
		}
		shared := 0
		for key, x := range got.Metrics {
			if y, ok := want.Metrics[key]; ok && !strings.HasPrefix(key, "time/") {
				shared++
				if math.Abs(x-y) > tolerance*max(1, math.Abs(y)) {
					t.Errorf("%s: %s is %v, want %v", name, key, x, y)
				}
			}
		}
		if shared < 8 || got.Step != want.Step {
			t.Errorf("%s: step %d with %v, want step %d with %v", name, got.Step, got.Metrics, want.Step, want.Metrics)
		}
	}
	for _, cfg := range []art.TrainConfig{
		{}, {Loss: credit.PPO, Epochs: 2, MiniBatches: 2}, {Loss: credit.DAPO, PrecalculateLogprobs: true},
		{Loss: credit.DRO}, {KL: credit.KL{Coef: 0.1, Advantage: true}},
	} {
		cfg.LearningRate = 1e-3
		both(string(cfg.Loss), 1e-5, func(m *art.Model) (*art.TrainResult, error) {
			return m.Train(t.Context(), groups, &cfg)
		})
	}
	conversations := []*art.Trajectory{
		art.NewTrajectory(art.User("a?"), art.Assistant("b")), art.NewTrajectory(art.User("c?"), art.Assistant("dd")),
	}
	both("sft", 1e-5, func(m *art.Model) (*art.TrainResult, error) {
		return m.TrainSFT(t.Context(), conversations, &art.SFTConfig{LearningRate: 1e-3, BatchSize: 1, Epochs: 2})
	})
	pairs := []art.Preference{{
		Chosen:   art.NewTrajectory(art.User("a?"), art.Assistant("b")),
		Rejected: art.NewTrajectory(art.User("a?"), art.Assistant("c")),
	}}
	both("dpo", 1e-3, func(m *art.Model) (*art.TrainResult, error) {
		return m.TrainDPO(t.Context(), pairs, &art.DPOConfig{LearningRate: 1e-3, Epochs: 2})
	})
}

// TestLocal_TrainSameBits: one update has the same bits.
func TestLocal_TrainSameBits(t *testing.T) {
	if testing.Short() {
		t.Skip("it trains a model twice")
	}
	here, there := t.TempDir(), t.TempDir()
	own, remote := localModel(t, here), remoteModel(t, there)
	groups := []*art.TrajectoryGroup{play(t, own, 0), play(t, own, 10)}
	for step, loss := range []credit.Loss{credit.CISPO, credit.PPO, credit.DRO} {
		for _, m := range []*art.Model{own, remote} {
			if _, err := m.Train(t.Context(), groups, &art.TrainConfig{Loss: loss, LearningRate: 1e-3}); err != nil {
				t.Fatal(err)
			}
		}
		equalAdapters(t, here, there, step+1)
	}
}

// play samples a group, whose rewards are made up.
func play(t *testing.T, m *art.Model, seed uint64) *art.TrajectoryGroup {
	t.Helper()
	group := &art.TrajectoryGroup{}
	for i := range uint64(3) {
		one := art.NewTrajectory(art.User("yes or no?"))
		if _, err := m.Chat(t.Context(), one, &art.ChatOptions{MaxTokens: new(4), Seed: new(seed + i)}); err != nil {
			t.Fatal(err)
		}
		one.Reward = float64(i*i) + float64(seed)/7
		group.Trajectories = append(group.Trajectories, one)
	}
	return group
}

// adapters reads the adapter of a step of the only run in a folder.
func adapters(t *testing.T, dir string, step int) []byte {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "*", "models", "*", "checkpoints", fmt.Sprintf("%04d", step),
		"adapter_model.safetensors"))
	if err != nil || len(found) != 1 {
		t.Fatalf("%v: %v", err, found)
	}
	data, err := os.ReadFile(found[0])
	if err != nil {
		t.Fatal(err)
	}
	return data
}
