package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/goart-dev/art/internal/dev/hubtest"
)

// testHub serves a model as acme/robot.
func testHub(t *testing.T) *hubtest.Server {
	config := tinyFolder(t)["config.json"]
	s := hubtest.New("acme/robot", map[string][]byte{
		"config.json": config, "tokenizer.json": []byte("{ }"), "tokenizer_config.json": []byte("{  }"), "model.safetensors": make([]byte, 1000),
	})
	t.Cleanup(s.Close)
	t.Setenv("HF_ENDPOINT", s.URL())
	t.Setenv("HF_HOME", t.TempDir())
	return s
}

// TestPull checks that the folder of the model is printed, and nothing else.
func TestPull(t *testing.T) {
	s := testHub(t)
	status, stdout, stderr := command("model", "pull", "acme/robot")
	if status != 0 || stderr != "" {
		t.Fatalf("status %d, standard error %q", status, stderr)
	}
	for name, want := range s.Files {
		have, err := os.ReadFile(filepath.Join(strings.TrimSuffix(stdout, "\n"), name))
		if err != nil || string(have) != string(want) {
			t.Errorf("%s: %q, %v", name, have, err)
		}
	}
	status, again, stderr := command("model", "pull", "--json", "acme/robot@main")
	if status != 0 || stderr != "" {
		t.Fatalf("status %d, standard error %q", status, stderr)
	}
	object := decode(t, again)
	for key, want := range map[string]any{
		"name": "acme/robot", "revision": "main", "commit": s.Commit, "folder": strings.TrimSpace(stdout), "bytes": float64(1007 + len(s.Files["config.json"])),
	} {
		if object[key] != want {
			t.Errorf("%s is %v, want %v", key, object[key], want)
		}
	}
	files, _ := object["files"].([]any)
	if len(files) != len(s.Files) {
		t.Errorf("files: %v", files)
	}
}

// TestPull_ConfigFirst: nothing else is fetched of a model that cannot be used, and the error says what it is.
func TestPull_ConfigFirst(t *testing.T) {
	s := testHub(t)
	s.Files["config.json"] = []byte(`{"model_type": "paligemma", "architectures": ["PaliGemmaForConditionalGeneration"],
		"vision_config": {"hidden_size": 8}, "text_config": {"model_type": "gemma3_text"}}`)
	status, stdout, stderr := command("model", "pull", "acme/robot")
	for _, want := range []string{
		"its weights were not fetched", "reads images", `text model of model_type "gemma3_text"`,
	} {
		if status != 1 || stdout != "" || !strings.Contains(stderr, want) {
			t.Errorf("status %d, standard error %q, which has no %q", status, stderr, want)
		}
	}
	for _, r := range s.Requests() {
		if !strings.HasSuffix(r.Path, "/config.json") && !strings.HasSuffix(r.Path, "/revision/main") && !r.Store {
			t.Errorf("%s %s was asked for", r.Method, r.Path)
		}
		if r.Store {
			t.Errorf("the store was asked for %s", r.Path)
		}
	}
}

// TestPull_Fails: the status distinguishes mistakes in the arguments from failures of the hub.
func TestPull_Fails(t *testing.T) {
	testHub(t)
	for _, c := range []struct {
		args   []string
		status int
		want   string
	}{
		{[]string{"model", "pull"}, 2, "art: model pull: want one model"},
		{[]string{"model", "pull", "a/b", "c/d"}, 2, "want one model"},
		{[]string{"model", "pull", "robot"}, 2, `"robot" is not the name of a model`},
		{[]string{"model", "pull", "acme/robot@v2"}, 1, `there is no revision "v2"`},
		{[]string{"model", "pull", "--json", "acme/unknown"}, 1, "no such model"},
	} {
		status, stdout, stderr := command(c.args...)
		if status != c.status || stdout != "" || !strings.Contains(stderr, c.want) {
			t.Errorf("art %q: status %d, standard output %q, standard error %q", c.args, status, stdout, stderr)
		}
	}
}

// TestPull_TellsRetries: a hub that cannot be reached is reported at the first failure, not after the last.
func TestPull_TellsRetries(t *testing.T) {
	s := testHub(t)
	lines := make(chan string, 10)
	var asked atomic.Int32
	s.Fault = func(w http.ResponseWriter, _ *http.Request, _ []byte) bool {
		if asked.Add(1) > 1 {
			return false
		}
		w.WriteHeader(http.StatusServiceUnavailable)
		return true
	}
	var stdout strings.Builder
	if status := runCommand([]string{"model", "pull", "acme/robot"}, &stdout, toChannel(lines)); status != 0 {
		t.Fatal("status", status)
	}
	if said := <-lines; !strings.HasPrefix(said, "art: model pull: try 1 of 5: ") || !strings.Contains(said, "503") ||
		!strings.HasSuffix(said, "the next in 1s\n") {
		t.Errorf("said %q", said)
	}
}

// toChannel sends what is written.
type toChannel chan string

func (c toChannel) Write(p []byte) (int, error) {
	c <- string(p)
	return len(p), nil
}
