package tinker

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/dev/arttest"
)

var update = flag.Bool("update", false, "record what the SDKs send")

// newFake serves a fake backend with a key. Its sessions are s-1, s-2 and so on.
func newFake(t *testing.T, opts *Options) (*Server, http.Handler) {
	t.Helper()
	o := Options{Dir: t.TempDir(), Bases: []Base{{Name: "org/fake", Model: "tiny"}}, noSync: true}
	if opts != nil {
		o = *opts
	}
	s, err := New(&arttest.Backend{}, &o)
	if err != nil {
		t.Fatal(err)
	}
	var sessions atomic.Int64
	s.newID = func() string { return fmt.Sprintf("s-%d", sessions.Add(1)) }
	h, err := s.Handler(&art.HandlerOptions{Keys: []string{"tml-secret"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s, h
}

// exchange is a request of an SDK, and its answer.
type exchange struct {
	Method, Path, Type, Accept string
	Body                       []byte
	Status                     int
	Answer                     []byte
}

// recorder writes down exchanges in the order in which they end.
type recorder struct {
	next http.Handler
	mu   sync.Mutex
	list []exchange
}

func (rec *recorder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body) // what is missing shows in the replay
	r.Body = io.NopCloser(bytes.NewReader(body))
	answer := httptest.NewRecorder()
	rec.next.ServeHTTP(answer, r)
	for key, values := range answer.Header() {
		w.Header()[key] = values
	}
	w.WriteHeader(answer.Code)
	_, _ = w.Write(answer.Body.Bytes())
	rec.mu.Lock()
	defer rec.mu.Unlock()
	rec.list = append(rec.list, exchange{
		r.Method, r.URL.RequestURI(), r.Header.Get("Content-Type"), r.Header.Get("Accept"), body, answer.Code,
		answer.Body.Bytes(),
	})
}

// lines are the exchanges that are worth repeating: neither telemetry, nor heartbeats, nor polls without a result.
func (rec *recorder) lines() []byte {
	var out bytes.Buffer
	for _, e := range rec.list {
		quiet := strings.Contains(e.Path, "telemetry") || strings.Contains(e.Path, "heartbeat")
		if quiet || e.Status == http.StatusRequestTimeout {
			continue
		}
		line, _ := json.Marshal(e) // it has bytes and texts only
		out.Write(append(line, '\n'))
	}
	return out.Bytes()
}

// TestPython runs the unmodified SDKs. ART_TINKER_PYTHON lists Pythons as VERSION=PATH, with commas. With -update it
// records testdata/sdk-VERSION.jsonl:
//
//	ART_TINKER_PYTHON=0.38.0=python go test ./backend/server/tinker -run TestPython -update
//
// with a Python that has internal/dev/conformance/tinker/requirements-VERSION.txt.
func TestPython(t *testing.T) {
	pythons := os.Getenv("ART_TINKER_PYTHON")
	if pythons == "" {
		t.Skip("ART_TINKER_PYTHON is not set")
	}
	for item := range strings.SplitSeq(pythons, ",") {
		version, python, _ := strings.Cut(item, "=")
		t.Run(version, func(t *testing.T) {
			_, h := newFake(t, nil)
			recorded := &recorder{next: h}
			web := httptest.NewServer(recorded)
			defer web.Close()
			out, err := exec.CommandContext(t.Context(), python, "../../../internal/dev/conformance/tinker/session.py", web.URL,
				"tml-secret", "org/fake").CombinedOutput()
			if err != nil || !strings.Contains(string(out), "all passed") {
				t.Fatalf("%v: %s", err, out)
			}
			if *update {
				err := os.WriteFile("testdata/sdk-"+version+".jsonl", recorded.lines(), 0o644)
				if err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// times are what differs between two runs.
var times = regexp.MustCompile(`20\d\d-\d\d-\d\dT[0-9:.]+Z`)

// TestRecordings_Replayed sends what the SDKs have sent. Every answer is the one that they got.
func TestRecordings_Replayed(t *testing.T) {
	files, err := filepath.Glob("testdata/sdk-*.jsonl")
	if err != nil || len(files) != 3 {
		t.Fatalf("%v, %v: want three recordings", files, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			_, h := newFake(t, nil)
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for line := range bytes.Lines(data) {
				var e exchange
				if err := json.Unmarshal(line, &e); err != nil {
					t.Fatal(err)
				}
				e.replay(t, h)
			}
		})
	}
}

// replay repeats an exchange.
func (e *exchange) replay(t *testing.T, h http.Handler) {
	t.Helper()
	r := httptest.NewRequest(e.Method, "http://localhost"+e.Path, bytes.NewReader(e.Body))
	r.Header.Set("Content-Type", e.Type)
	r.Header.Set("Accept", e.Accept)
	r.Header.Set("X-API-Key", "tml-secret")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	got, want := times.ReplaceAll(w.Body.Bytes(), nil), times.ReplaceAll(e.Answer, nil)
	if w.Code != e.Status || !bytes.Equal(got, want) {
		t.Errorf("%s %s %.300s: status %d, want %d:\n%s\nwant\n%s", e.Method, e.Path, e.Body, w.Code, e.Status, got, want)
	}
}
