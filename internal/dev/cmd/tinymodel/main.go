// Command tinymodel makes the built-in model of package model/tiny: a tokenizer trained on synthetic chats, and a
// decoder trained on them from random weights by this project's own supervised training.
//
//	go run ./internal/dev/cmd/tinymodel -out model/tiny
//	go run ./internal/dev/cmd/tinymodel -out model/tiny -measure 1000
//
// The second command measures a model: the share of calls of unseen tools that it makes exactly. The model is a
// function of the seed. It knows formats, not skills: what an example shows has to come from reinforcement learning.
package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/goart-dev/art/model"
	"github.com/goart-dev/art/tokenizer"
	"github.com/goart-dev/art/tokenizer/chat"
)

// pattern cuts a text into words. A word has at most one capital and small letters, and may bring the space before
// or the newline after it. Everything else stands alone, so a board always has the same number of tokens.
const pattern = ` ?\p{Lu}?\p{Ll}+\n?|\p{L}|\p{N}| ?[^\s\p{L}\p{N}]+|\s`

var specials = []string{
	"<|endoftext|>", "<|im_start|>", "<|im_end|>", "<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>",
	"<think>", "</think>",
}

// numMerges is how many merges are learned, before their variants. It is small, so that many words of the training
// have several tokens, as words that it does not have will.
const numMerges = 350

// context is how many positions the model has. No chat of the training is longer.
const positions = 2048

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
	}{"PreTrainedTokenizerFast", "<|im_end|>", "<|endoftext|>", positions, chatTemplate})
	return b.Bytes(), err
}

// config describes a decoder whose heads are wide, so that they can compare tokens, and whose RoPE turns slowly, so
// that they can do so at any distance.
func config(vocabulary int, eos int32) *model.Config {
	return &model.Config{
		Architectures: []string{"Qwen3ForCausalLM"}, ModelType: "qwen3",
		HiddenAct: "silu", TorchDType: "float32",
		VocabSize: vocabulary, HiddenSize: 128, IntermediateSize: 128, NumLayers: 4,
		NumHeads: 4, NumKVHeads: 2, HeadDim: 64, MaxPositions: positions,
		RMSNormEps: 1e-6, RopeTheta: 1e6, TieEmbeddings: true,
		EOSTokenID: json.RawMessage(strconv.Itoa(int(eos))),
	}
}

func main() {
	out := flag.String("out", "model/tiny", "folder of the model")
	seed := flag.Uint64("seed", 3, "seed of data and weights")
	count := flag.Int("measure", 0, "measure the model in the folder by that many calls, and make none")
	show := flag.Int("show", 0, "how many wrong calls to print")
	flag.Parse()
	ctx := context.Background()
	err := error(nil)
	if *count > 0 {
		err = printMeasured(ctx, *out, *count, *show)
	} else {
		err = makeModel(ctx, *out, *seed)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "tinymodel:", err)
		os.Exit(1)
	}
}

func makeModel(ctx context.Context, out string, seed uint64) error {
	vocab, err := trainBPE(corpus(seed, 20_000), numMerges, pattern, specials)
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
	trainingWords.useVocabulary(tok)
	template, err := chat.New(tok, chat.ChatML)
	if err != nil {
		return err
	}
	tokConfig, err := tokenizerConfig(template.Source())
	if err != nil {
		return err
	}
	w, err := firstWeights(tok, seed)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	return train(ctx, w, training{
		template: template, file: filepath.Join(out, "training.gob"), stages: stages, seed: seed, every: 200,
		save: func() error { return save(out, w, vocab, tokConfig) },
	})
}

// firstWeights are those that training begins with.
func firstWeights(tok *tokenizer.Tokenizer, seed uint64) (*model.Weights, error) {
	w, err := model.Random(config(tok.VocabSize(), tok.EOS()[0]), seed)
	if err != nil {
		return nil, err
	}
	shareLetters(w, tok, seed)
	induce(w, seed, learnsBest, marksOf(tok))
	return w, nil
}

func save(dir string, w *model.Weights, vocab, tokConfig []byte) error {
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
