package main

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/local"
)

// newRun makes a run of the built-in model, with step 0, and a step 10 whose replies differ.
func newRun(t *testing.T) string {
	t.Helper()
	b, err := local.Open(t.Context(), &local.Options{Dir: t.TempDir(), Progress: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	m := art.NewModel("m", &art.ModelOptions{Base: "tiny"})
	if err := m.Register(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	dir, err := b.Dir(m)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(filepath.Join(dir, "checkpoints", "0010"), os.DirFS(tinyAdapter(t, true))); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestRunFolder_Full: a run of which all weights are trained is the model of its newest checkpoint, and has no adapter.
func TestRunFolder_Full(t *testing.T) {
	b, err := local.Open(t.Context(), &local.Options{Dir: t.TempDir(), Progress: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	m := art.NewModel("m", &art.ModelOptions{Full: true})
	if err := m.Register(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	lesson := art.NewTrajectory(art.User("yes or no"), art.Assistant("12"))
	if _, err := m.TrainSFT(t.Context(), []*art.Trajectory{lesson}, &art.SFTConfig{LearningRate: 1e-3}); err != nil {
		t.Fatal(err)
	}
	run, err := b.Dir(m)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	generate := func(model string) generated {
		return output[generated](t, "debug", "generate", "--json", "--chat", "--max-tokens", "4", model, "yes or no")
	}
	want, base := generate(filepath.Join(run, "checkpoints", "0001")), generate("tiny")
	if slices.Equal(want.Logprobs, base.Logprobs) {
		t.Fatal("the training has no effect")
	}
	if got := generate(run); !slices.Equal(got.Logprobs, want.Logprobs) || got.Adapter != "" {
		t.Errorf("%+v, want %+v", got, want)
	}
	if status, _, stderr := command("debug", "generate", "--adapter", run, "tiny", "a"); status != 1 ||
		!strings.Contains(stderr, "name the run in place of its base model") {
		t.Errorf("status %d: %s", status, stderr)
	}
	if r := output[inspection](t, "model", "inspect", run, "--json", "--lengths", "64"); r.Run != run || r.Adapter != nil {
		t.Errorf("%+v", r)
	}
}

// TestRunFolder: wherever a model or an adapter is named, a run is its base model with the newest checkpoint, and a
// checkpoint is its base model with itself.
func TestRunFolder(t *testing.T) {
	run := newRun(t)
	newest, first := filepath.Join(run, "checkpoints", "0010"), filepath.Join(run, "checkpoints", "0000")
	generate := func(args ...string) generated {
		return output[generated](t,
			append([]string{"debug", "generate", "--json", "--chat", "--max-tokens", "4"}, append(args, "yes or no")...)...)
	}
	want, base := generate("--adapter", newest, "tiny"), generate("tiny")
	if slices.Equal(want.Logprobs, base.Logprobs) {
		t.Fatal("the adapter has no effect")
	}
	for _, args := range [][]string{{run}, {newest}, {run + "/"}, {"--adapter", run, "tiny"}} {
		if got := generate(args...); !slices.Equal(got.Logprobs, want.Logprobs) || got.Adapter != newest &&
			got.Adapter != newest+"/" {
			t.Errorf("%q: %+v, want %+v", args, got, want)
		}
	}
	if got := generate(first); !slices.Equal(got.Logprobs, base.Logprobs) || got.Adapter != first {
		t.Errorf("step 0: %+v, want %+v", got, base)
	}
	// A copied adapter records its base model.
	if got := generate(tinyAdapter(t, true)); !slices.Equal(got.Logprobs, want.Logprobs) {
		t.Errorf("%+v, want %+v", got, want)
	}

	r := output[inspection](t, "model", "inspect", run, "--json", "--lengths", "64")
	if r.Run != run || r.Adapter == nil || r.Adapter.Folder != newest || r.Adapter.Rank != 2 || r.Adapter.Base != "tiny" ||
		float64(r.Parameters) != numParams(tinyWeights(t)) {
		t.Errorf("%+v %+v", r, r.Adapter)
	}
	_, stdout, stderr := command("model", "inspect", first, "--lengths", "64")
	if !strings.Contains(stdout, first+", rank 8") || stderr != "" {
		t.Errorf("%s%s", stdout, stderr)
	}
	ids := output[rendered](t, "debug", "render", "--json", run, messages(t, `[{"role": "user", "content": "Hi"}]`)).IDs
	if same := output[rendered](t, "debug", "render", "--json", "tiny",
		messages(t, `[{"role": "user", "content": "Hi"}]`)).IDs; !slices.Equal(ids, same) {
		t.Errorf("%v, want %v", ids, same)
	}
	merged := filepath.Join(t.TempDir(), "merged")
	if status, _, stderr := command("model", "export", run, merged); status != 0 {
		t.Fatal(stderr)
	}
	for i, x := range generate(merged).Logprobs {
		if d := x - want.Logprobs[i]; d > 1e-3 || d < -1e-3 {
			t.Errorf("logprob %d of the merged model is %v, want %v", i, x, want.Logprobs[i])
		}
	}
}

// TestSource_Errors: each error of a path says what to do.
func TestSource_Errors(t *testing.T) {
	run, empty, lost := newRun(t), t.TempDir(), newRun(t)
	file(t, lost, "model.json", `{"base": "nowhere"}`)
	bare := t.TempDir()
	file(t, bare, "model.json", `{"base": "tiny"}`)
	if err := os.Mkdir(filepath.Join(bare, "checkpoints"), 0o755); err != nil {
		t.Fatal(err)
	}
	chat := messages(t, `[{"role": "user", "content": "Hi"}]`)
	for want, args := range map[string][]string{
		"is not the folder of a model: it has no config.json":                       {"model", "inspect", empty},
		"the folder of a run is .art/PROJECT/models/NAME":                           {"debug", "generate", empty, "a"},
		`"nowhere" is neither a folder, nor a file, nor ORG/NAME, nor a run; check`: {"model", "inspect", "nowhere"},
		"the base model of " + lost + `: "nowhere" is neither`:                      {"debug", "generate", lost, "a"},
		"name the base model, and the run with --adapter":                           {"debug", "generate", lost, "a"},
		"the run " + bare + " has no checkpoint yet":                                {"debug", "generate", "--adapter", bare, "tiny", "a"},
		"it has no adapter_config.json; name a run":                                 {"debug", "generate", "--adapter", empty, "tiny", "a"},
		"is an adapter already; name its base model, tiny, instead":                 {"debug", "generate", "--adapter", run, run, "a"},
		empty + " is a folder: name a file in it":                                   {"debug", "score", "tiny", "--file", empty},
		"open nowhere: no such file or directory: check the path":                   {"debug", "render", "tiny", "nowhere"},
		"open gone: no such file or directory: check the path":                      {"debug", "generate", "tiny", "--messages", "gone"},
		"it has neither tokenizer.json nor tokenizer_config.json":                   {"debug", "tokenize", empty, "a"},
		"check the path, or name a model's folder, a tokenizer.json":                {"debug", "tokenize", "nowhere", "a"},
		"it does not begin with GGUF":                                               {"model", "inspect", chat},
	} {
		if status, stdout, stderr := command(args...); status == 0 || stdout != "" || !strings.Contains(stderr, want) {
			t.Errorf("art %q: status %d, %q does not say %q", args, status, stderr, want)
		}
	}
	if got := output[generated](t, "debug", "generate", "--json", "--max-tokens", "1", bare, "a"); got.Adapter != "" {
		t.Errorf("a run that has no checkpoint is its base model: %+v", got)
	}
}
