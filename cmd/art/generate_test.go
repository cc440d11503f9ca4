package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goart-dev/art/internal/basemodel"
	"github.com/goart-dev/art/internal/dev/gguftest"
	"github.com/goart-dev/art/lora"
	"github.com/goart-dev/art/model"
	"github.com/goart-dev/art/model/tiny"
)

// output runs the command, which must succeed, and reads what it prints.
func output[T any](t *testing.T, args ...string) (out T) {
	t.Helper()
	status, stdout, stderr := command(args...)
	if status != 0 || stderr != "" {
		t.Fatalf("art %q: status %d, standard error %q", args, status, stderr)
	}
	if err := json.Unmarshal([]byte(stdout), &out); err != nil {
		t.Fatalf("art %q: %v in %s", args, err, stdout)
	}
	return out
}

// numbers writes ids separated by commas.
func numbers(ids []int32) string {
	return strings.ReplaceAll(strings.Trim(fmt.Sprint(ids), "[]"), " ", ",")
}

// tinyAdapter writes an adapter of the built-in model, zero-initialised or not.
func tinyAdapter(t *testing.T, changes bool) string {
	t.Helper()
	w, err := tiny.Load()
	if err != nil {
		t.Fatal(err)
	}
	var layers []lora.LayerShape
	for _, l := range w.Config.Linears() {
		layers = append(layers, lora.LayerShape(l))
	}
	a, err := lora.New(lora.Config{Rank: 2}, layers, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range a.Layers() {
		for i := range l.B {
			if changes {
				l.B[i] = float32(i%7-3) / 20
			}
		}
	}
	dir := t.TempDir()
	if err := a.Save(dir, tiny.Name); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestGenerate_Forms: one prompt in all its forms, for the built-in model, its folder and its GGUF file, gives the same
// reply. Scoring the prompt with the reply gives the logprobs of the reply.
func TestGenerate_Forms(t *testing.T) {
	messages := file(t, t.TempDir(), "chat.json", `[{"role": "user", "content": "What is 2+2?"}]`)
	want := output[generated](t, "debug", "generate", "--json", "--chat", "tiny", "What", "is", "2+2?")
	if want.Text == "" || want.Finish != "end" || len(want.IDs) < 2 || len(want.Logprobs) != len(want.IDs) ||
		strings.Join(want.Texts[:len(want.IDs)-1], "") != want.Text {
		t.Fatalf("%+v", want)
	}
	for _, args := range [][]string{
		{"--messages", messages, "tiny"},
		{"--max-tokens", fmt.Sprint(len(want.IDs)), "--ids", numbers(want.PromptIDs), "tiny"},
		{"--chat", "../../model/tiny", "What is 2+2?"},
		{"--ids", numbers(want.PromptIDs), gguftest.Folder(t, "../../model/tiny")},
		{"tiny", "<|im_start|>user\nWhat is 2+2?<|im_end|>\n<|im_start|>assistant\n"},
		{"--chat", "--adapter", tinyAdapter(t, false), "tiny", "What is 2+2?"},
	} {
		got := output[generated](t, append([]string{"debug", "generate", "--json"}, args...)...)
		if !slices.Equal(got.PromptIDs, want.PromptIDs) || !slices.Equal(got.IDs, want.IDs) ||
			!slices.Equal(got.Logprobs, want.Logprobs) {
			t.Errorf("%q: %+v, want %+v", args, got, want)
		}
	}
	other := output[generated](t, "debug", "generate", "--json", "--chat", "--adapter", tinyAdapter(t, true), "tiny",
		"What is 2+2?")
	if slices.Equal(other.Logprobs, want.Logprobs) {
		t.Error("the adapter has no effect")
	}

	all := slices.Concat(want.PromptIDs, want.IDs)
	got := output[scored](t, "debug", "score", "--json", "--ids", numbers(all), "tiny")
	sum := 0.0
	for i, lp := range got.Logprobs {
		if (lp == nil) != (i == 0) {
			t.Fatalf("logprob %d: %v", i, lp)
		}
		if at := i - len(want.PromptIDs); at >= 0 && *lp != want.Logprobs[at] {
			t.Errorf("logprob %d: scored %v, sampled %v", i, *lp, want.Logprobs[at])
		}
		if lp != nil {
			sum += float64(*lp)
		}
	}
	if got.Sum != sum || !slices.Equal(got.IDs, all) {
		t.Errorf("%+v, want the sum %v", got, sum)
	}
}

// TestGenerate_Sampling: the seed determines the reply; a stop text and a number of tokens end it.
func TestGenerate_Sampling(t *testing.T) {
	draw := func(args ...string) generated {
		return output[generated](t,
			append(append([]string{"debug", "generate", "--json", "--temperature", "2"}, args...), "tiny", "The")...)
	}
	a, b, c := draw("--seed", "1"), draw("--seed", "1"), draw("--seed", "2")
	if !slices.Equal(a.IDs, b.IDs) || slices.Equal(a.IDs, c.IDs) {
		t.Errorf("seeds: %v, %v, %v", a.IDs, b.IDs, c.IDs)
	}
	if one := draw("--top-k", "1"); !slices.Equal(one.IDs, draw("--temperature", "0").IDs) {
		t.Errorf("the most likely token is not the greedy one: %v", one.IDs)
	}
	short := draw("--max-tokens", "3")
	if len(short.IDs) != 3 || short.Finish != "length" || short.Sampling.MaxTokens != 3 {
		t.Errorf("%+v", short)
	}
	answer := func(args ...string) generated {
		return output[generated](t,
			append(append([]string{"debug", "generate", "--json", "--chat"}, args...), "tiny", "What is 2+2?")...)
	}
	first := answer().Texts[0]
	if stopped := answer("--stop", "never", "--stop", first); len(stopped.IDs) != 1 || stopped.Finish != "stop" {
		t.Errorf("%+v", stopped)
	}
}

// TestGenerate_Text: the text output says how tokens were chosen.
func TestGenerate_Text(t *testing.T) {
	_, stdout, _ := command("debug", "generate", "--chat", "--max-tokens", "2", "tiny", "What is 2+2?")
	if !strings.Contains(stdout, "2 tokens after 14 of the prompt, finish: length, greedy (--temperature 0)") {
		t.Error(stdout)
	}
	_, stdout, _ = command("debug", "generate", "--max-tokens", "2", "--temperature", "0.5", "tiny", "The")
	if !strings.Contains(stdout, "temperature 0.5, top-p 1, top-k 0, seed 0") {
		t.Error(stdout)
	}
}

// TestScore_Text: a text from any source is scored token by token.
func TestScore_Text(t *testing.T) {
	setInput(t, "The board")
	text := file(t, t.TempDir(), "text", "The board")
	var outs []string
	for _, args := range [][]string{{"tiny", "The", "board"}, {"--file", text, "tiny"}, {"tiny"}} {
		status, stdout, stderr := command(append([]string{"debug", "score"}, args...)...)
		if status != 0 || stderr != "" || !strings.Contains(stdout, "tokens scored, sum -") ||
			!strings.Contains(stdout, `"The"`) {
			t.Fatalf("%q: %d %s%s", args, status, stdout, stderr)
		}
		outs = append(outs, stdout)
	}
	if outs[0] != outs[1] || outs[0] != outs[2] {
		t.Error(outs)
	}
	if status, stdout, stderr := command("debug", "score", "--", "tiny", "--json", "- a"); status != 0 ||
		!strings.Contains(stdout, "tokens scored") {
		t.Errorf("behind -- all is text: %d %s%s", status, stdout, stderr)
	}
	if _, stdout, _ := command("debug", "score", "--ids", "5", "tiny"); !strings.Contains(stdout, "nothing to score") {
		t.Error(stdout)
	}
}

func TestScoreAndGenerate_Errors(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		args   []string
		status int
		want   string
	}{
		{[]string{"debug", "score"}, 2, "want MODEL and one of"},
		{[]string{"debug", "score", "--ids", "1,2", "tiny", "a"}, 2, "want MODEL and one of"},
		{[]string{"debug", "score", "--ids", "1,x", "tiny"}, 2, `"x" is not an id`},
		{[]string{"debug", "score", "--ids", "-1", "tiny"}, 2, `"-1" is not an id`},
		{[]string{"debug", "score", "--ids", "[1, 2,, 3]", "tiny"}, 2, `there is no id between two commas, or after the last one, of "1, 2,, 3"`},
		{[]string{"debug", "score", "--ids", "1,2,", "tiny"}, 2, `after the last one, of "1,2,"`},
		{[]string{"debug", "score", "--ids", "9999", "tiny"}, 1, "token 9999 is not in the vocabulary"},
		{[]string{"debug", "score", "tiny", ""}, 1, "there are no tokens to score"},
		{[]string{"debug", "score", "nowhere", "a"}, 1, "neither a folder, nor a file"},
		{[]string{"debug", "score", "--adapter", dir, "tiny", "a"}, 1, "adapter_config.json"},
		{[]string{"debug", "generate", "tiny"}, 2, "want MODEL and one of"},
		{[]string{"debug", "generate", "--chat", "tiny"}, 2, "want MODEL and one of"},
		{[]string{"debug", "generate", "--ids", "1", "tiny", "a"}, 2, "want MODEL and one of"},
		{[]string{"debug", "generate", "--temperature", "-1", "tiny", "a"}, 2, "art: debug generate: invalid argument: temperature is -1, want a finite number >= 0\n"},
		{[]string{"debug", "generate", "--stop", "", "tiny", "a"}, 2, "a stop string is empty"},
		{[]string{"debug", "generate", "--stop", "x<|im_end|>", "tiny", "a"}, 2, `--stop "x<|im_end|>": <|im_end|> is a special token`},
		{[]string{"debug", "generate", "--top-p", "0", "tiny", "a"}, 2, "top_p is 0"},
		{[]string{"debug", "generate", "--messages", filepath.Join(dir, "none"), "tiny"}, 1, "no such file"},
		{[]string{"debug", "generate", "--ids", numbers(make([]int32, tinyWeights(t).Config.MaxPositions)), "tiny"}, 1, "too long"},
		{[]string{"debug", "generate", "../../internal/gguf/testdata/python.gguf", "a"}, 1, "the metadata has no llama."},
	} {
		status, stdout, stderr := command(c.args...)
		if status != c.status || stdout != "" || !strings.Contains(stderr, c.want) {
			t.Errorf("art %.80q: status %d, %q, standard error %q; want %q", c.args, status, stdout, stderr, c.want)
		}
	}
}

// TestScoreAndGenerate_NotFinite: a model with numbers that are not finite is an error, as text and as JSON.
func TestScoreAndGenerate_NotFinite(t *testing.T) {
	base, err := basemodel.Open("tiny")
	if err != nil {
		t.Fatal(err)
	}
	defer base.Close()
	dir := filepath.Join(t.TempDir(), "corrupt")
	err = base.Export(dir, nil, &model.SaveOptions{Edit: func(_ string, values []float32) error {
		values[0] = 1e30
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"debug", "score"}, {"debug", "score", "--json"}, {"debug", "generate"}, {"debug", "generate", "--json"},
	} {
		status, stdout, stderr := command(append(args, dir, "a b c")...)
		if status != 1 || stdout != "" ||
			!strings.Contains(stderr, "logprob 0 is NaN: numbers of the model or of the adapter are not finite") {
			t.Errorf("%v: status %d, %q, standard error %q", args, status, stdout, stderr)
		}
	}
}
