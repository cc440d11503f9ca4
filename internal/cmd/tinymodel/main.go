// Command tinymodel makes the built-in model of package model/tiny: a tokenizer trained on synthetic chats, and a
// decoder trained on them from random weights by this project's own supervised training.
//
//	go run ./internal/cmd/tinymodel -out model/tiny
//
// The result is a function of the seed. It knows formats, not skills: what an example shows
// has to come from reinforcement learning.
package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/goart-dev/art/backend/device/cpu"

	"github.com/goart-dev/art/grpo"
	"github.com/goart-dev/art/internal/trainer"
	"github.com/goart-dev/art/model"
	"github.com/goart-dev/art/tokenizer"
	"github.com/goart-dev/art/tokenizer/chat"
)

// Words are at most one capital and small letters, and may bring the space before or the newline after them. Everything
// else stands alone, so a board always has the same number of tokens.
const pattern = ` ?\p{Lu}?\p{Ll}+\n?|\p{L}|\p{N}| ?[^\s\p{L}\p{N}]+|\s`

var specials = []string{"<|endoftext|>", "<|im_start|>", "<|im_end|>", "<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>", "<think>", "</think>"}

// tokenizerConfig is tokenizer_config.json. Its chat template is the one of this project.
func tokenizerConfig(chatTemplate string) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(struct {
		Class     string `json:"tokenizer_class"`
		EOS       string `json:"eos_token"`
		Pad       string `json:"pad_token"`
		MaxLength int    `json:"model_max_length"`
		Template  string `json:"chat_template,omitempty"`
	}{"PreTrainedTokenizerFast", "<|im_end|>", "<|endoftext|>", 256, chatTemplate})
	return b.Bytes(), err
}

const vocabulary = 768

func config() *model.Config {
	return &model.Config{
		Architectures: []string{"Qwen3ForCausalLM"}, ModelType: model.ModelTypeQwen3, HiddenAct: "silu", TorchDType: "float32",
		VocabSize: vocabulary, HiddenSize: 128, IntermediateSize: 256, NumLayers: 2,
		NumHeads: 4, NumKVHeads: 2, HeadDim: 32, MaxPositions: 256,
		RMSNormEps: 1e-6, RopeTheta: 10000, TieEmbeddings: true,
	}
}

func main() {
	out := flag.String("out", "model/tiny", "folder to write to")
	seed := flag.Uint64("seed", 3, "seed of data and weights")
	steps := flag.Int("steps", 900, "optimizer steps")
	batch := flag.Int("batch", 48, "chats of a step")
	rate := flag.Float64("rate", 3e-3, "highest learning rate")
	flag.Parse()
	if err := run(context.Background(), *out, *seed, *steps, *batch, *rate); err != nil {
		fmt.Fprintln(os.Stderr, "tinymodel:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out string, seed uint64, steps, batch int, rate float64) error {
	vocab, err := trainBPE(corpus(seed, 20_000), vocabulary, pattern, specials)
	if err != nil {
		return err
	}
	plain, err := tokenizerConfig("")
	if err != nil {
		return err
	}
	tok, err := tokenizer.New(vocab, plain)
	if err != nil {
		return err
	}
	template, err := chat.New(tok, chat.ChatML)
	if err != nil {
		return err
	}
	tokConfig, err := tokenizerConfig(template.Source())
	if err != nil {
		return err
	}
	c := config()
	c.VocabSize = tok.VocabSize()
	c.EOSTokenID = json.RawMessage(strconv.Itoa(int(tok.EOS()[0])))
	w, err := model.Random(c, seed)
	if err != nil {
		return err
	}
	if err := train(ctx, w, template, seed, steps, batch, rate); err != nil {
		return err
	}
	return save(out, w, vocab, tokConfig)
}

// train is supervised training with a short warm-up and a cosine decay to a tenth.
func train(ctx context.Context, w *model.Weights, template *chat.Template, seed uint64, steps, batch int, rate float64) error {
	device, err := cpu.New(nil)
	if err != nil {
		return err
	}
	state := trainer.FullState(w)
	t := trainer.New(trainer.FullTarget(w.Config), trainer.Options{Device: device})
	optimizer := grpo.AdamW{Beta1: 0.9, Beta2: 0.98, Eps: 1e-8, WeightDecay: 0.01, MaxGradNorm: 1}
	start, mean := time.Now(), 0.0
	for step := range steps {
		seqs, err := sequences(template, rand.New(rand.NewPCG(seed, uint64(step))), batch, w.Config.MaxPositions)
		if err != nil {
			return err
		}
		run := trainer.Run{
			Loss: grpo.SupervisedLoss{}, Optimizer: optimizer, Epochs: 1, MiniBatches: 1,
			Rate: func(int) float64 { return schedule(step, steps) * rate },
		}
		next, report, err := t.Train(ctx, state, seqs, run)
		if err != nil {
			return err
		}
		state = next
		nll := report.Metrics["loss/sft"]
		mean += (nll - mean) / float64(min(step+1, 20))
		if step%20 == 0 || step == steps-1 {
			fmt.Printf("step %4d  nll %.4f  %v\n", step, mean, time.Since(start).Round(time.Second))
		}
	}
	for i, name := range state.Names {
		if err := w.SetParam(name, state.Params[i]); err != nil {
			return err
		}
	}
	return nil
}

func schedule(step, steps int) float64 {
	warmup := max(1, steps/20)
	if step < warmup {
		return float64(step+1) / float64(warmup)
	}
	x := float64(step-warmup) / float64(max(1, steps-warmup))
	return 0.1 + 0.9*(1+math.Cos(math.Pi*x))/2
}

// sequences tokenises n chats. One that is too long is replaced by another.
func sequences(template *chat.Template, rng *rand.Rand, n, limit int) ([]grpo.Sequence, error) {
	var out []grpo.Sequence
	for len(out) < n {
		e := generate(rng)
		ids, mask, err := template.Target(e.messages, e.tools)
		if err != nil {
			return nil, err
		}
		if len(ids) > limit {
			continue
		}
		out = append(out, grpo.Sequence{IDs: ids, Trained: mask, Logprobs: make([]float32, len(ids)), Advantage: 1, Trajectory: len(out)})
	}
	for i := range out {
		out[i].Weight = 1
	}
	return out, nil
}

func save(dir string, w *model.Weights, vocab, tokConfig []byte) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := w.Save(dir); err != nil {
		return err
	}
	for name, data := range map[string][]byte{"tokenizer.json": vocab, "tokenizer_config.json": tokConfig} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			return err
		}
	}
	weights, err := os.ReadFile(filepath.Join(dir, model.WeightsFile))
	if err != nil {
		return err
	}
	fmt.Printf("%s  %d bytes  sha256 %x\n", model.WeightsFile, len(weights), sha256.Sum256(weights))
	return nil
}
