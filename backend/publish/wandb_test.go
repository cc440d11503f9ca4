package publish_test

import (
	"bytes"
	"crypto/md5"
	"encoding/base64"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/goart-dev/art/backend/publish"
)

// operation is a GraphQL request.
type operation struct {
	OperationName, Query string
	Variables            map[string]any
}

// fakeWandb answers as the server of the recording, and writes down what it is asked.
type fakeWandb struct {
	*httptest.Server
	want    map[string]exchange // by the operation and whether it asks for an address, or by the path
	state   string              // of an artifact that is made
	refuses string              // an operation

	mu    sync.Mutex
	asked []string
	got   map[string]exchange
}

// keyOf tells requests apart.
func keyOf(path, body string) string {
	var op operation
	if json.Unmarshal([]byte(body), &op) != nil || op.Query == "" {
		return path
	}
	key := op.OperationName
	if op.Variables["includeUpload"] == true {
		key += " again"
	}
	return key
}

// newWandb reads the recording of internal/dev/conformance/publish.
func newWandb(t *testing.T) *fakeWandb {
	t.Helper()
	data, err := os.ReadFile("testdata/wandb.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	f := &fakeWandb{want: map[string]exchange{}, got: map[string]exchange{}, state: "PENDING"}
	f.Server = httptest.NewServer(f)
	t.Cleanup(f.Close)
	data = bytes.ReplaceAll(data, []byte("http://WANDB"), []byte(f.URL))
	for line := range bytes.Lines(data) {
		var e exchange
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(e.Body, "query ArtifactType") { // the client's own check of types
			f.want[keyOf(e.Path, e.Body)] = e
		}
	}
	f.want["UpsertBucket"] = exchange{Answer: json.RawMessage(`{"data":{}}`)}
	f.want["Viewer"] = exchange{Answer: json.RawMessage(`{"data":{"viewer":{"entity":"team"}}}`)}
	return f
}

// ServeHTTP answers with what was recorded.
func (f *fakeWandb) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	f.mu.Lock()
	defer f.mu.Unlock()
	key := keyOf(r.URL.Path, string(body))
	if key == f.refuses {
		_, _ = io.WriteString(w, `{"errors":[{"message":"permission denied"}]}`)
		return
	}
	header := map[string]string{}
	for _, name := range []string{"Authorization", "Content-Type", "X-Stored"} {
		if value := r.Header.Get(name); value != "" {
			header[name] = value
		}
	}
	f.asked = append(f.asked, key)
	f.got[key] = exchange{Method: r.Method, Path: r.URL.Path, Body: string(body), Header: header}
	answer, ok := f.want[key]
	if !ok {
		http.NotFound(w, r)
		return
	}
	_, _ = w.Write(bytes.ReplaceAll(answer.Answer, []byte("PENDING"), []byte(f.state)))
}

// wandbKey is a key of the form of W&B's, which the recording has too.
var wandbKey = strings.Repeat("0", 40)

// target sends to the project games of team, as the recording does.
func (f *fakeWandb) target(t *testing.T) publish.Target {
	t.Helper()
	to, err := publish.Wandb(&publish.WandbOptions{
		Project: "games", Run: "run-1", APIKey: wandbKey, BaseURL: f.URL,
	})
	if err != nil {
		t.Fatal(err)
	}
	return to
}

// variables are those of an operation that are not null, without the ids that a client makes up.
func variables(t *testing.T, body string) map[string]any {
	t.Helper()
	var op operation
	if err := json.Unmarshal([]byte(body), &op); err != nil {
		t.Fatal(err)
	}
	var trim func(m map[string]any)
	trim = func(m map[string]any) {
		maps.DeleteFunc(m, func(key string, v any) bool { return v == nil || strings.HasSuffix(key, "lientID") })
		for _, v := range m {
			switch v := v.(type) {
			case map[string]any:
				trim(v)
			case []any:
				for _, element := range v {
					trim(element.(map[string]any))
				}
			}
		}
	}
	trim(op.Variables)
	return op.Variables
}

// TestWandb_Recorded: what is sent about an artifact is what the client of W&B has sent.
func TestWandb_Recorded(t *testing.T) {
	f := newWandb(t)
	if err := f.target(t).Publish(t.Context(), checkpoint(t)); err != nil {
		t.Fatal(err)
	}
	manifest := f.got["/store/manifest"].Body
	for key, want := range f.want {
		got := f.got[key]
		if want.Method == "" {
			continue // of the run, which is not recorded
		}
		if got.Method != want.Method || got.Path != want.Path || !reflect.DeepEqual(got.Header, want.Header) {
			t.Errorf("%s: %s %s %v, want %s %s %v", key, got.Method, got.Path, got.Header, want.Method, want.Path, want.Header)
		}
		if !strings.HasPrefix(got.Path, "/graphql") {
			if a, b := values(t, got.Body), values(t, want.Body); !reflect.DeepEqual(a, b) {
				t.Errorf("%s: %v, want %v", key, a, b)
			}
			continue
		}
		a, b := variables(t, got.Body), variables(t, want.Body)
		if key == "CreateArtifactManifest again" { // the order of the list differs, and so does its digest
			sum := md5.Sum([]byte(manifest))
			b["digest"] = base64.StdEncoding.EncodeToString(sum[:])
		}
		if !reflect.DeepEqual(a, b) {
			t.Errorf("%s: variables\n%v, want\n%v", key, a, b)
		}
	}
	order := []string{
		"Viewer", "UpsertBucket", "CreateArtifact", "CreateArtifactManifest", "CreateArtifactFiles",
		"/store/adapter_config.json", "/store/adapter_model.safetensors", "CreateArtifactManifest again", "/store/manifest",
		"CommitArtifact",
	}
	if !slices.Equal(f.asked, order) {
		t.Errorf("requests %q, want %q", f.asked, order)
	}
}

// TestWandb_Again: what is there is not sent again, and a repeated request names the same artifact.
func TestWandb_Again(t *testing.T) {
	f := newWandb(t)
	f.state = "COMMITTED"
	to, c := f.target(t), checkpoint(t)
	var ids []any
	for range 2 {
		if err := to.Publish(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		var op operation
		if err := json.Unmarshal([]byte(f.got["CreateArtifact"].Body), &op); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, op.Variables["input"].(map[string]any)["clientID"])
	}
	if id, _ := ids[0].(string); ids[0] != ids[1] || len(id) != 128 {
		t.Errorf("ids %v", ids)
	}
	if slices.Contains(f.asked, "CreateArtifactFiles") {
		t.Error("files were sent")
	}
}

// TestWandb_Fails: each error says which operation, and none has the key.
func TestWandb_Fails(t *testing.T) {
	for _, name := range []string{
		"Viewer", "UpsertBucket", "CreateArtifact", "CreateArtifactManifest", "CreateArtifactFiles", "CommitArtifact",
	} {
		f := newWandb(t)
		f.refuses = name
		err := f.target(t).Publish(t.Context(), checkpoint(t))
		if err == nil || !strings.Contains(err.Error(), "W&B "+name+": permission denied") {
			t.Errorf("%s: error %v", name, err)
		}
	}
	f := newWandb(t)
	delete(f.want, "/store/adapter_model.safetensors")
	err := f.target(t).Publish(t.Context(), checkpoint(t))
	if err == nil || !strings.Contains(err.Error(), "safetensors: PUT") || strings.Contains(err.Error(), wandbKey) {
		t.Errorf("error %v", err)
	}
	t.Setenv("WANDB_API_KEY", "")
	if _, err := publish.Wandb(nil); err == nil || !strings.Contains(err.Error(), "WANDB_API_KEY") {
		t.Errorf("error %v", err)
	}
}
