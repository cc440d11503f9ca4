package main

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/backend/device/cpu"
	"github.com/goart-dev/art/grpo"
	"github.com/goart-dev/art/internal/trainer"
	"github.com/goart-dev/art/model"
	"github.com/goart-dev/art/tokenizer"
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
	induce(made, 3, scales{0.1, 0.3, 0.1}, marksOf(tok))
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

// TestInduce_LooksUp: before any training, the parameter of the tool that is called is often more likely than
// those of three others, though the request does not name it. The same weights without the circuit guess.
func TestInduce_LooksUp(t *testing.T) {
	tok, template := trained(t)
	plain, err := model.Random(config(tok.VocabSize(), 0), 3)
	require.NoError(t, err)
	made, err := firstWeights(tok, 3)
	require.NoError(t, err)
	rng := rand.New(rand.NewPCG(4, 4))
	l := &trainingWords
	var calls [][][]int32 // of each: with the right parameter, then with those of the other tools
	for len(calls) < 60 {
		var e example
		tools := l.offer(&e, rng, 4)
		for i := range tools {
			tools[i].params = []param{{words: []string{l.noun(rng)}, value: (*lexicon).word}}
			tools[i].define(l, rng)
			e.tools[i] = tools[i].def
		}
		called := tools[rng.IntN(len(tools))]
		c := l.callOf(rng, called, true)
		e.addCall(0, c, "ok", "Done.")
		ids, _, err := template.Target(e.messages[:2], e.tools)
		require.NoError(t, err)
		calls = append(calls, keys(tok, ids, tools, called))
	}
	before, after := found(t, plain, calls), found(t, made, calls)
	t.Logf("of %d parameters %d found without the circuit, %d with it", len(calls), before, after)
	require.Less(t, before, len(calls)*4/10)
	require.Greater(t, after, len(calls)*4/10)
}

// keys cuts a call behind the first token of its key, and returns it with the keys of all tools, the right one first.
func keys(tok *tokenizer.Tokenizer, ids []int32, tools []tool, called tool) [][]int32 {
	end := 0
	for i := range ids {
		if tok.Decode(ids[i:min(i+3, len(ids))], false) == `arguments": {"` {
			end = i + 3
		}
	}
	with := func(t tool) []int32 {
		return append(slices.Clone(ids[:end]), tok.EncodeOrdinary(t.params[0].words[0])[0])
	}
	out := [][]int32{with(called)}
	for _, other := range tools {
		if key := with(other); !slices.Equal(key, out[0]) {
			out = append(out, key)
		}
	}
	return out
}

// found counts the calls whose first way to go on is the likeliest.
func found(t *testing.T, w *model.Weights, calls [][][]int32) int {
	device, err := cpu.New(nil)
	require.NoError(t, err)
	var batch []grpo.Sequence
	for _, ids := range slices.Concat(calls...) {
		trained := make([]bool, len(ids))
		trained[len(ids)-1] = true
		batch = append(batch, grpo.Sequence{IDs: ids, Trained: trained, Logprobs: make([]float32, len(ids)), Weight: 1})
	}
	run := trainer.New(trainer.FullTarget(w.Config), trainer.Options{Device: device})
	logprobs, err := run.Logprobs(t.Context(), trainer.FullState(w), batch, 0)
	require.NoError(t, err)
	n := 0
	for _, ways := range calls {
		var last []float32
		for range ways {
			last = append(last, logprobs[0][len(logprobs[0])-1])
			logprobs = logprobs[1:]
		}
		if slices.Max(last) == last[0] {
			n++
		}
	}
	return n
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
