package tinker

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/goart-dev/art/internal/tinkerwire"
)

// newArchives serves weights out of a folder.
func newArchives(t *testing.T) (*caller, string) {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"adapter_config.json", "adapter_model.safetensors", "optimizer.safetensors"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	_, h := newFake(t, &Options{
		Dir: t.TempDir(), Bases: []Base{{Name: "org/fake", Model: "tiny"}}, noSync: true,
		Folder: func(string) (string, error) { return dir, nil },
	})
	c := &caller{t, h, "tml-secret"}
	model := c.model()
	c.await("save_weights", tinkerwire.Request{ModelID: model, SeqID: 1, Path: "a"})
	return c, model
}

// get fetches an address without a key.
func (c *caller) get(address string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, address, nil)
	w := httptest.NewRecorder()
	c.h.ServeHTTP(w, r)
	return w
}

// TestArchive: an archive has the adapter and nothing else, and its address needs no key.
func TestArchive(t *testing.T) {
	c, model := newArchives(t)
	r := httptest.NewRequest(http.MethodGet, "http://localhost"+Prefix+"training_runs/"+model+
		"/checkpoints/weights/a/archive", nil)
	r.Header.Set("X-API-Key", c.key)
	w := httptest.NewRecorder()
	c.h.ServeHTTP(w, r)
	address, err := url.Parse(w.Header().Get("Location"))
	if err != nil || w.Code != http.StatusFound {
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	zipped, err := gzip.NewReader(c.get(address.String()).Body)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for in := tar.NewReader(zipped); ; {
		header, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(in)
		if err != nil || string(content) != header.Name {
			t.Errorf("%s has %q: %v", header.Name, content, err)
		}
		names = append(names, header.Name)
	}
	if want := []string{"adapter_config.json", "adapter_model.safetensors"}; !slices.Equal(names, want) {
		t.Errorf("the archive has %v, want %v", names, want)
	}
	token := filepath.Dir(address.Path)
	for _, path := range []string{
		token + "/optimizer.safetensors", token + "/..%2f..%2fetc%2fpasswd", "/api/v1/downloads/other/checkpoint.tar.gz",
	} {
		if w := c.get("http://localhost" + path); w.Code != http.StatusNotFound {
			t.Errorf("%s: status %d: %s", path, w.Code, w.Body)
		}
	}
}

// TestPaths: names and paths cannot leave their folder.
func TestPaths(t *testing.T) {
	c, model := newArchives(t)
	for i, name := range []string{"../a", "a/b", "..", ".", "", "a\x00b", "a@b", `a\b`} {
		req := tinkerwire.Request{ModelID: model, SeqID: 2 + i, Path: name}
		body := c.result(c.ok("save_weights", req).RequestID)
		if !bytes.HasPrefix(body, []byte(`{"error"`)) {
			t.Errorf("the name %q: %s", name, body)
		}
	}
	for _, path := range []string{
		"tinker://" + model + "/weights/../a", "tinker://../weights/a", "/etc/passwd", "tinker://", model + "/weights/a",
	} {
		if status, body := c.call("POST", "weights_info", tinkerwire.Request{TinkerPath: path}); status < 400 {
			t.Errorf("%s: status %d: %s", path, status, body)
		}
	}
}

// FuzzRoutes: no body makes a route fail with an internal error.
func FuzzRoutes(f *testing.F) {
	paths := []string{
		"create_session", "create_model", "forward_backward", "forward", "optim_step", "save_weights", "load_weights",
		"asample", "create_sampling_session", "retrieve_future", "weights_info", "get_info",
	}
	for i := range paths {
		f.Add(uint8(i), false, []byte(`{"session_id":"s-1","model_id":"s-1:train:0","seq_id":1,"path":"a"}`))
	}
	f.Add(uint8(2), true, backward("s-1:train:0", 1, 1).Proto())
	f.Fuzz(func(t *testing.T, path uint8, proto bool, body []byte) {
		_, h := newFake(t, nil)
		r := httptest.NewRequest(http.MethodPost, "http://localhost"+Prefix+paths[int(path)%len(paths)],
			bytes.NewReader(body))
		r.Header.Set("X-API-Key", "tml-secret")
		if proto {
			r.Header.Set("Content-Type", tinkerwire.ProtoType)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code >= 500 {
			t.Errorf("status %d: %s", w.Code, w.Body)
		}
	})
}
