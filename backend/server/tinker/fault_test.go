package tinker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/loop"
	"github.com/goart-dev/art/backend/server/internal/tenancy"
	"github.com/goart-dev/art/grpo/credit"
	"github.com/goart-dev/art/internal/dev/arttest"
	"github.com/goart-dev/art/internal/stable"
	"github.com/goart-dev/art/internal/tinkerwire"
)

// poison is a target at which a faulty backend does what a test wants.
const poison = 666

// faulty is a backend with faults.
type faulty struct {
	*arttest.Backend
	poisoned func()       // called in a pass over poison, before it
	sampled  func()       // called before a sample
	full     atomic.Int32 // how many updates cannot be stored
	passes   atomic.Int32
}

func (b *faulty) ForwardBackward(
	ctx context.Context, m *art.Model, data []loop.Datum, loss credit.Loss, config loop.LossConfig,
) (*loop.ForwardResult, error) {
	b.passes.Add(1)
	out, err := b.Backend.ForwardBackward(ctx, m, data, loss, config)
	if data[0].Targets[0] == poison && b.poisoned != nil {
		b.poisoned() // when the gradient was added
	}
	return out, err
}

func (b *faulty) Publish(
	ctx context.Context, m *art.Model, groups []*art.TrajectoryGroup, metrics map[string]float64,
) (int, error) {
	if b.full.Add(-1) >= 0 {
		return 0, &art.Error{Op: "publish", Err: fmt.Errorf("%w: %w", art.ErrStorage,
			&os.PathError{Op: "write", Path: "/srv/art/secret", Err: syscall.ENOSPC})}
	}
	return b.Backend.Publish(ctx, m, groups, metrics)
}

func (b *faulty) Sample(
	ctx context.Context, m *art.Model, prompt []int32, s art.Sampling, piece func(art.Piece) error,
) (*art.ChatResponse, error) {
	if b.sampled != nil {
		b.sampled()
	}
	return b.Backend.Sample(ctx, m, prompt, s, piece)
}

// serveFaulty makes a server of a folder, and a client of it.
func serveFaulty(t *testing.T, b Backend, dir string, log *slog.Logger) (*Server, *caller) {
	t.Helper()
	s, err := New(b, &Options{Dir: dir, Bases: []Base{{Name: "org/fake", Model: "tiny"}}, noSync: true, Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	h, err := s.Handler(&art.HandlerOptions{Keys: []string{"tml-secret"}})
	if err != nil {
		t.Fatal(err)
	}
	return s, &caller{t, h, "tml-secret"}
}

func closeServer(t *testing.T, s *Server) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// failure submits an operation and returns its error.
func (c *caller) failure(path string, body any) (out tinkerwire.Result) {
	c.t.Helper()
	data := c.result(c.ok(path, body).RequestID)
	if err := json.Unmarshal(data, &out); err != nil || out.Error == "" {
		c.t.Fatalf("%s: %v: %s", path, err, data)
	}
	return out
}

// lockedBuffer is a log that several goroutines write.
type lockedBuffer struct {
	mu sync.Mutex
	bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.Write(p)
}

// TestPanic_FailsTheOperation: a panic is an error of the operation that it is in, with its stack in the log; the run
// goes on as if the operation had not been.
func TestPanic_FailsTheOperation(t *testing.T) {
	var log lockedBuffer
	b := &faulty{Backend: &arttest.Backend{}, poisoned: func() { panic("a secret of the server") }}
	s, c := serveFaulty(t, b, t.TempDir(), slog.New(slog.NewTextHandler(&log, nil)))
	model, other := c.model(), c.model()
	bodies, paths := program(model)
	seq := 0
	for i := range bodies {
		if i%4 == 1 {
			seq++
			out := c.failure("forward_backward", backward(model, seq, poison))
			if out.Category != "server" || strings.Contains(out.Error, "secret") || strings.Contains(out.Error, ".go") {
				t.Fatalf("%+v", out)
			}
		}
		seq++
		switch body := bodies[i].(type) {
		case *tinkerwire.ForwardRequest:
			body.SeqID = seq
		case tinkerwire.Request:
			body.SeqID = seq
			bodies[i] = body
		}
		c.await(paths[i], bodies[i])
	}
	if got, want := c.weight(model, seq+1), undisturbed(t); got != want {
		t.Errorf("weight %v, want %v", got, want)
	}
	c.await("optim_step", step(other, 1))
	closeServer(t, s)
	for _, part := range []string{"a secret of the server", "fault_test.go"} {
		if text := log.String(); !strings.Contains(text, part) {
			t.Errorf("the log has %s", text)
		}
	}
}

// TestPanic_FailsTheSample: so is one in a sample, and in loading its weights.
func TestPanic_FailsTheSample(t *testing.T) {
	b := &faulty{Backend: &arttest.Backend{}}
	s, c := serveFaulty(t, b, t.TempDir(), nil)
	defer closeServer(t, s)
	req := tinkerwire.SampleRequest{
		Prompt: tinkerwire.NewInput([]int32{1}), BaseModel: "org/fake", NumSamples: 3, PromptLogprobs: true,
	}
	b.sampled = func() { panic("no") }
	c.failure("asample", req)
	b.sampled = nil
	c.await("asample", req)
}

// TestAttempts_KilledThreeTimes: an operation that ends the process is begun three times, and failed at the fourth
// start; what comes after it, and others, go on. A process that is killed is one whose folder is copied as it is.
func TestAttempts_KilledThreeTimes(t *testing.T) {
	dir := t.TempDir()
	released := make(chan struct{})
	var servers []*Server
	b := &faulty{Backend: &arttest.Backend{}}
	s, c := serveFaulty(t, b, dir, nil)
	model, other := c.model(), c.model()
	c.await("forward_backward", backward(model, 1, 1))
	var id, after string
	for start := range 3 {
		reached := make(chan struct{})
		b.poisoned = sync.OnceFunc(func() { close(reached); <-released })
		if start == 0 {
			id = c.ok("forward_backward", backward(model, 2, poison)).RequestID
			after = c.ok("optim_step", step(model, 3)).RequestID
		} else {
			s, c = serveFaulty(t, b, dir, nil)
		}
		<-reached
		servers = append(servers, s)
		next := t.TempDir()
		if err := os.CopyFS(next, os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
		dir, b = next, &faulty{Backend: &arttest.Backend{}}
	}
	b.poisoned = func() { t.Error("it is begun again") }
	for range 2 { // and stays failed
		s, c = serveFaulty(t, b, dir, nil)
		if data := string(c.result(id)); !strings.Contains(data, "stopped 3 times") {
			t.Errorf("the result is %s", data)
		}
		c.result(after)
		c.ok("get_info", tinkerwire.Request{ModelID: model})
		closeServer(t, s)
	}
	s, c = serveFaulty(t, b, dir, nil)
	c.await("optim_step", step(model, 4))
	c.await("optim_step", step(other, 1))
	closeServer(t, s)
	close(released)
	for _, s := range servers {
		closeServer(t, s)
	}
}

// TestAttempts_StopsInOrder: an operation that a server in good order has not finished, or has executed again, is
// executed after any number of restarts.
func TestAttempts_StopsInOrder(t *testing.T) {
	dir, b := t.TempDir(), &faulty{Backend: &arttest.Backend{}}
	s, c := serveFaulty(t, b, dir, nil)
	model := c.model()
	want := c.loss(c.result(c.ok("forward_backward", backward(model, 1, 1)).RequestID))
	for range 2 * tenancy.MaxAttempts {
		closeServer(t, s)
		passes := b.passes.Load()
		s, c = serveFaulty(t, b, dir, nil)
		for b.passes.Load() == passes {
			time.Sleep(time.Millisecond)
		}
	}
	c.await("optim_step", step(model, 2))
	_, h := newFake(t, nil)
	fresh := &caller{t, h, "tml-secret"}
	once := fresh.model()
	fresh.await("forward_backward", backward(once, 1, 1))
	fresh.await("optim_step", step(once, 2))
	if got := c.weight(model, 3); got != fresh.weight(once, 3) || want == 0 {
		t.Errorf("weight %v, want %v", got, fresh.weight(once, 4))
	}
	closeServer(t, s)
}

// TestDiskFull_OptimStep: while the disk is full updates fail, and have no effect; afterwards the same process goes on.
func TestDiskFull_OptimStep(t *testing.T) {
	b := &faulty{Backend: &arttest.Backend{}}
	s, c := serveFaulty(t, b, t.TempDir(), nil)
	defer closeServer(t, s)
	model := c.model()
	bodies, paths := program(model)
	seq := 0
	for i := range bodies {
		seq++
		switch body := bodies[i].(type) {
		case *tinkerwire.ForwardRequest:
			body.SeqID = seq
		case tinkerwire.Request:
			for range i % 4 {
				b.full.Store(1)
				if out := c.failure(paths[i], step(model, seq)); !strings.Contains(out.Error, "disk is full") ||
					strings.Contains(out.Error, "srv") {
					t.Fatalf("%+v", out)
				}
				seq++
			}
			body.SeqID = seq
			bodies[i] = body
		}
		c.await(paths[i], bodies[i])
	}
	if got, want := c.weight(model, seq+1), undisturbed(t); got != want {
		t.Errorf("weight %v, want %v", got, want)
	}
	run := tinkerwire.TrainingRun{}
	if _, data := c.call("GET", "training_runs/"+model, nil); json.Unmarshal(data, &run) != nil || run.Corrupted {
		t.Errorf("%s", data)
	}
}

// TestDiskFull_AcknowledgedIsKept: whichever changes of files fail, an operation that was accepted is executed once,
// also by the next process.
func TestDiskFull_AcknowledgedIsKept(t *testing.T) {
	for at := range 24 {
		var left atomic.Int32
		left.Store(1 << 20)
		hook := func(op, path string, do func() error) error {
			if n := left.Add(-1); n < 0 && n > -4 {
				if op == "write" && strings.HasSuffix(path, ".journal") {
					data, _ := os.ReadFile(path)
					err := do()
					now, _ := os.ReadFile(path)
					return errors.Join(syscall.ENOSPC, err, os.Truncate(path, int64(len(data)+(len(now)-len(data))/2)))
				}
				return syscall.ENOSPC
			}
			return do()
		}
		dir, b := t.TempDir(), &faulty{Backend: &arttest.Backend{}}
		s, err := New(b, &Options{Dir: dir, Bases: []Base{{Name: "org/fake", Model: "tiny"}}, disk: stable.Disk{Hook: hook}})
		if err != nil {
			t.Fatal(err)
		}
		h, err := s.Handler(&art.HandlerOptions{Keys: []string{"tml-secret"}})
		if err != nil {
			t.Fatal(err)
		}
		c := &caller{t, h, "tml-secret"}
		model := c.model()
		left.Store(int32(at))
		for seq := 1; seq <= 8; seq++ {
			for try := 0; ; try++ {
				status, data := c.call("POST", "forward_backward", backward(model, seq, int64(seq)))
				if status == http.StatusOK {
					break
				}
				if try > 10 || strings.Contains(string(data), dir) {
					t.Fatalf("at %d: status %d: %s", at, status, data)
				}
			}
		}
		c.result(model + ":8")
		killed := t.TempDir()
		if err := os.CopyFS(killed, os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
		closeServer(t, s)
		again := &faulty{Backend: &arttest.Backend{}}
		s, c = serveFaulty(t, again, killed, nil)
		c.await("optim_step", step(model, 9))
		if n := again.passes.Load(); n != 8 {
			t.Errorf("at %d: %d of 8 passes are there after a kill", at, n)
		}
		closeServer(t, s)
	}
}

// TestDamage_OthersAreServed: of damaged files only what they describe is not served, and they are kept.
func TestDamage_OthersAreServed(t *testing.T) {
	dir, b := t.TempDir(), &arttest.Backend{}
	s, c := serveFaulty(t, b, dir, nil)
	bad, good, lost := c.model(), c.model(), c.model()
	for _, model := range []string{bad, good, lost} {
		c.await("forward_backward", backward(model, 1, 1))
	}
	saved := c.await("save_weights", tinkerwire.Request{ModelID: bad, SeqID: 2, Path: "a"}).Path
	closeServer(t, s)
	name := func(model string) string { return strings.ReplaceAll(model, ":train:", "-") }
	journal := filepath.Join(dir, "runs", name(bad)+".journal")
	data, err := os.ReadFile(journal)
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)/2] ^= 1
	session, _, _ := strings.Cut(lost, ":")
	for path, content := range map[string][]byte{
		journal: data, filepath.Join(dir, "runs", name(lost)+".json"): []byte("{"), filepath.Join(dir, "usage.json"): nil,
		filepath.Join(dir, "sessions", "s-x.json"): []byte(`{"ID":"` + session + `"}`),
	} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var log lockedBuffer
	s, c = serveFaulty(t, b, dir, slog.New(slog.NewTextHandler(&log, nil)))
	defer closeServer(t, s)
	c.await("optim_step", step(good, 2))
	status, body := c.call("POST", "optim_step", step(bad, 3))
	if status != http.StatusGone || !strings.Contains(string(body), "damaged at byte") {
		t.Errorf("status %d: %s", status, body)
	}
	create := tinkerwire.Request{SessionID: strings.Split(bad, ":")[0], ModelSeqID: new(0), BaseModel: "org/fake"}
	if status, body := c.call("POST", "create_model", create); status != http.StatusGone {
		t.Errorf("created again: status %d: %s", status, body)
	}
	c.await("load_weights", tinkerwire.Request{SessionID: strings.Split(good, ":")[0], ModelSeqID: new(1), Path: saved})
	if left, _ := os.ReadFile(journal); !bytes.Equal(left, data) {
		t.Error("the journal was changed")
	}
	if status, _ := c.call("POST", "optim_step", step(lost, 2)); status != http.StatusNotFound {
		t.Errorf("a run without a record: status %d", status)
	}
	for _, damaged := range []string{"runs/" + name(lost) + ".json", "usage.json", "sessions/s-x.json"} {
		if _, err := os.Stat(filepath.Join(dir, damaged+".damaged")); err != nil {
			t.Error(err)
		}
	}
	if n := strings.Count(log.String(), "level=ERROR"); n != 4 {
		t.Errorf("%d errors in the log: %s", n, log.String())
	}
}

// TestSecondServer_EndsAtOnce: two servers do not share a folder.
func TestSecondServer_EndsAtOnce(t *testing.T) {
	dir := t.TempDir()
	s, _ := serveFaulty(t, &arttest.Backend{}, dir, nil)
	defer closeServer(t, s)
	_, err := New(&arttest.Backend{}, &Options{Dir: dir, Bases: []Base{{Name: "org/fake"}}})
	if !errors.Is(err, art.ErrLocked) || !strings.Contains(err.Error(), fmt.Sprint(os.Getpid())) {
		t.Errorf("error %v", err)
	}
}

// TestNames_Refused: names that cannot be those of files everywhere are refused, with what is allowed.
func TestNames_Refused(t *testing.T) {
	s, c := serveFaulty(t, &arttest.Backend{}, t.TempDir(), nil)
	defer closeServer(t, s)
	model := c.model()
	for i, name := range []string{
		"CON", "a?b*c", "nul.txt", "a.", "a ", "a\x01b", strings.Repeat("é", 60), "../a", "\xff",
	} {
		out := c.failure("save_weights", tinkerwire.Request{ModelID: model, SeqID: i + 1, Path: name})
		if out.Category != "user" {
			t.Errorf("%q: %+v", name, out)
		}
	}
}
