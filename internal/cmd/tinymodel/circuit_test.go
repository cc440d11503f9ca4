package main

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/goart-dev/art/backend/device/cpu"
	"github.com/goart-dev/art/grpo"
	"github.com/goart-dev/art/internal/trainer"
	"github.com/goart-dev/art/model"
)

func TestOrthonormal(t *testing.T) {
	rows := orthonormal(rand.New(rand.NewPCG(1, 2)), 32)
	for i := range rows {
		for j := range rows {
			sum, want := 0.0, 0.0
			for k := range rows[i] {
				sum += float64(rows[i][k]) * float64(rows[j][k])
			}
			if i == j {
				want = 1
			}
			if math.Abs(sum-want) > 1e-5 {
				t.Fatalf("rows %d and %d have the product %g", i, j, sum)
			}
		}
	}
}

// TestInduce_Copies: before any training, and with little noise, the model continues a text of random tokens that it
// has seen once. The same weights without the circuit guess.
func TestInduce_Copies(t *testing.T) {
	tok, _ := trained(t)
	plain, err := model.Random(config(tok.VocabSize(), 0), 3)
	if err != nil {
		t.Fatal(err)
	}
	made, err := model.Random(plain.Config, 3)
	if err != nil {
		t.Fatal(err)
	}
	shareLetters(made, tok, 3)
	induce(made, 3, scales{0.1, 0.3, 0.1})
	rng := rand.New(rand.NewPCG(7, 7))
	ids := make([]int32, 40)
	for i, id := range rng.Perm(tok.VocabSize())[:len(ids)] {
		ids[i] = int32(id)
	}
	before, after := repeated(t, plain, ids), repeated(t, made, ids)
	t.Logf("mean logprob of the repetition: %.2f without the circuit, %.2f with it", before, after)
	if after < before+2 {
		t.Errorf("the circuit does not copy: mean logprob %.2f without it, %.2f with it", before, after)
	}
}

// repeated is the mean logprob of ids behind themselves.
func repeated(t *testing.T, w *model.Weights, ids []int32) float64 {
	t.Helper()
	device, err := cpu.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	run := trainer.New(trainer.FullTarget(w.Config), trainer.Options{Device: device})
	n := len(ids)
	trained := make([]bool, 2*n)
	for i := n + 1; i < 2*n; i++ {
		trained[i] = true
	}
	batch := []grpo.Sequence{{
		IDs: slices.Concat(ids, ids), Trained: trained, Logprobs: make([]float32, 2*n), Advantage: 1, Weight: 1,
	}}
	_, report, err := run.Train(context.Background(), trainer.FullState(w), batch, trainer.Run{
		Loss: grpo.SupervisedLoss{}, Optimizer: grpo.AdamW{Beta1: 0.9, Beta2: 0.98, Eps: 1e-8},
		Rate: func(int) float64 { return 1e-9 }, Epochs: 1, MiniBatches: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	return -report.Metrics["loss/sft"]
}
