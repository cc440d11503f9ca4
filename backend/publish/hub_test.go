package publish_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/goart-dev/art/backend/publish"
)

// exchange is a request of huggingface_hub, and the answer that it got. internal/dev/conformance/publish records them.
type exchange struct {
	Method, Path, Body string
	Header             map[string]string
	Answer             json.RawMessage
}

// recordedHub answers as the hub of a recording, and writes down what it is asked.
type recordedHub struct {
	*httptest.Server
	want []exchange

	mu   sync.Mutex
	got  []exchange
	fail func(r *http.Request) int // the status of a failure; 0: none
}

// newHub reads a recording. Requests that validate texts are of the client only: there is no README here.
func newHub(t *testing.T, name string) *recordedHub {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	h := &recordedHub{}
	h.Server = httptest.NewServer(h)
	t.Cleanup(h.Close)
	data = bytes.ReplaceAll(data, []byte("http://HUB"), []byte(h.URL))
	for line := range bytes.Lines(data) {
		var e exchange
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatal(err)
		}
		if e.Path != "/api/validate-yaml" {
			h.want = append(h.want, e)
		}
	}
	return h
}

// ServeHTTP answers with what was recorded for a path.
func (h *recordedHub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.fail != nil {
		if status := h.fail(r); status != 0 {
			http.Error(w, "refused: "+r.Header.Get("Authorization"), status)
			return
		}
	}
	header := map[string]string{}
	for _, key := range []string{"Authorization", "Content-Type", "Accept"} {
		if value := r.Header.Get(key); value != "" {
			header[key] = value
		}
	}
	h.got = append(h.got, exchange{Method: r.Method, Path: r.URL.Path, Body: string(body), Header: header})
	for _, e := range h.want {
		if e.Path == r.URL.Path {
			if r.Method == http.MethodPut {
				w.Header().Set("ETag", etagOf(h.want, r.URL.Path))
			}
			_, _ = w.Write(e.Answer)
			return
		}
	}
	http.NotFound(w, r)
}

// etagOf is the ETag that the recording server gave for a part, as the request shows that completes the file.
func etagOf(all []exchange, path string) string {
	for _, e := range all {
		var done struct {
			Parts []struct{ ETag string }
		}
		if !strings.HasPrefix(e.Path, "/complete/") || json.Unmarshal([]byte(e.Body), &done) != nil {
			continue
		}
		if n := int(path[len(path)-1] - '1'); n < len(done.Parts) {
			return done.Parts[n].ETag
		}
	}
	return `"whole"`
}

// checkpoint writes the files of the recording.
func checkpoint(t *testing.T) *publish.Checkpoint {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string]string{
		"adapter_config.json": `{"r": 4}`, "adapter_model.safetensors": "abcdefghijklmnopqrstuvwxy",
		"optimizer.safetensors": "state", "trainer.json": "{}",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return &publish.Checkpoint{Project: "p", Name: "player", Step: 3, Dir: dir}
}

// target returns the repository of the recording.
func (h *recordedHub) target(t *testing.T, change func(*publish.HubOptions)) publish.Target {
	t.Helper()
	opts := &publish.HubOptions{Repo: "team/player", Token: "token-of-a-test", BaseURL: h.URL}
	if change != nil {
		change(opts)
	}
	to, err := publish.Hub(opts)
	if err != nil {
		t.Fatal(err)
	}
	return to
}

// values decodes a body, of one or more JSON texts, without what is about the README of the recording.
func values(t *testing.T, body string) (list []any) {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(body))
	for {
		var v any
		err := decoder.Decode(&v)
		if errors.Is(err, io.EOF) {
			return list
		}
		if err != nil {
			return []any{body} // the content of a file
		}
		object, _ := v.(map[string]any)
		if files, ok := object["files"].([]any); ok {
			object["files"] = files[len(files)-2:]
		}
		if text, _ := json.Marshal(v); !strings.Contains(string(text), "README.md") {
			list = append(list, v)
		}
	}
}

// TestHub_Recorded: what is sent is what huggingface_hub has sent, in one piece and in parts.
func TestHub_Recorded(t *testing.T) {
	for _, name := range []string{"hub-basic.jsonl", "hub-multipart.jsonl"} {
		t.Run(name, func(t *testing.T) {
			h := newHub(t, name)
			if err := h.target(t, nil).Publish(t.Context(), checkpoint(t)); err != nil {
				t.Fatal(err)
			}
			if len(h.got) != len(h.want) {
				t.Fatalf("%d requests, want %d", len(h.got), len(h.want))
			}
			for i, want := range h.want {
				got := h.got[i]
				if got.Method != want.Method || got.Path != want.Path {
					t.Errorf("request %d is %s %s, want %s %s", i, got.Method, got.Path, want.Method, want.Path)
				}
				for _, key := range []string{"Authorization", "Content-Type"} {
					if got.Header[key] != want.Header[key] {
						t.Errorf("%s %s: %s is %q, want %q", want.Method, want.Path, key, got.Header[key], want.Header[key])
					}
				}
				if a, b := values(t, got.Body), values(t, want.Body); !reflect.DeepEqual(a, b) {
					t.Errorf("%s %s: body\n%v, want\n%v", want.Method, want.Path, a, b)
				}
			}
		})
	}
}

// TestHub_Again: a repository that is there is written to, and what the hub has is not sent again.
func TestHub_Again(t *testing.T) {
	h := newHub(t, "hub-basic.jsonl")
	h.fail = func(r *http.Request) int {
		if strings.HasSuffix(r.URL.Path, "/create") {
			return http.StatusConflict
		}
		return 0
	}
	for i, e := range h.want {
		if strings.HasSuffix(e.Path, "/batch") {
			const oid = "69b980549d5045969285133df773ae91ddd5d0e5c73dc8ee959b2eb223bc5fbb"
			h.want[i].Answer = json.RawMessage(`{"objects":[{"oid":"` + oid + `","size":25}]}`)
		}
	}
	to := h.target(t, func(o *publish.HubOptions) {
		o.Folder = func(c *publish.Checkpoint) string { return c.Name }
	})
	err := to.Publish(t.Context(), checkpoint(t))
	if err == nil || !strings.Contains(err.Error(), `player/adapter_config.json to be sent in the way ""`) {
		t.Errorf("a hub that knows no such file: error %v", err)
	}
	to = h.target(t, nil)
	if err := to.Publish(t.Context(), checkpoint(t)); err != nil {
		t.Fatal(err)
	}
	for _, e := range h.got {
		if e.Method == http.MethodPut {
			t.Errorf("PUT %s", e.Path)
		}
	}
	if last := h.got[len(h.got)-1]; !strings.Contains(last.Path, "/commit/main") {
		t.Errorf("the last request is %s", last.Path)
	}
}

// TestHub_Fails: each error says where, and none has the token or the address of a store.
func TestHub_Fails(t *testing.T) {
	for path, want := range map[string]string{
		"/api/repos/create": "401", "/api/models/team/player/preupload/main": "may write to team/player",
		"/team/player.git/info/lfs/objects/batch": "may write to", "/store/": "adapter_model.safetensors: PUT",
		"/verify": "adapter_model.safetensors: POST", "/api/models/team/player/commit/main": "may write to",
	} {
		h := newHub(t, "hub-basic.jsonl")
		h.fail = func(r *http.Request) int {
			if strings.HasPrefix(r.URL.Path, path) {
				return http.StatusUnauthorized
			}
			return 0
		}
		err := h.target(t, nil).Publish(t.Context(), checkpoint(t))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "token-of-a-test") {
			t.Errorf("%s: error %v, want %s", path, err, want)
		}
	}
	h := newHub(t, "hub-basic.jsonl")
	to := h.target(t, nil)
	h.Close()
	if err := to.Publish(t.Context(), checkpoint(t)); err == nil || strings.Contains(err.Error(), "http://") {
		t.Errorf("nobody listens: error %v", err)
	}
	_, err := publish.Hub(&publish.HubOptions{Repo: "player"})
	if err == nil || !strings.Contains(err.Error(), "OWNER/NAME") {
		t.Errorf("error %v", err)
	}
}

// TestHub_Retried: a hub that is away for a while gets the checkpoint in the end, and training does not wait for it.
func TestHub_Retried(t *testing.T) {
	h := newHub(t, "hub-multipart.jsonl")
	failures := 0
	h.fail = func(r *http.Request) int {
		if failures++; failures%3 != 0 && failures < 20 {
			return http.StatusServiceUnavailable
		}
		return 0
	}
	p := publish.New(retried{h.target(t, nil), checkpoint(t)}, &publish.Options{Backoff: time.Microsecond, Retries: 30})
	commit(p.Events(), newModel(t), 3)
	if err := p.Close(t.Context()); err != nil || p.Sent() != 1 {
		t.Errorf("%d sent, error %v", p.Sent(), err)
	}
	if last := h.got[len(h.got)-1]; !strings.Contains(last.Path, "/commit/main") {
		t.Errorf("the last request is %s", last.Path)
	}
}

// retried sends a checkpoint with an adapter, which the runs of these tests have none of.
type retried struct {
	publish.Target
	c *publish.Checkpoint
}

// Publish implements [publish.Target].
func (r retried) Publish(ctx context.Context, _ *publish.Checkpoint) error {
	return r.Target.Publish(ctx, r.c)
}
