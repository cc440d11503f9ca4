package backendtest_test

import (
	"context"
	"errors"
	"flag"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/backendtest"
	"github.com/goart-dev/art/internal/dev/arttest"
)

// broken names the defect that TestBroken runs the suite with. TestRun_FindsDefects sets it, in a process of its own.
var broken = flag.String("broken", "", "defect to run the suite with")

// TestMain runs many tests at a time: those that are parallel wait for processes that wait for a limit.
func TestMain(m *testing.M) {
	_ = flag.Set("test.parallel", "16")
	os.Exit(m.Run())
}

// defective is a fake in which one method is replaced.
type defective struct {
	*arttest.Backend
	register func(m *art.Model, step int, err error) (int, error)
	complete func(ctx context.Context, m *art.Model, req *art.ChatRequest) (*art.ChatResponse, error)
	train    func(
		ctx context.Context, m *art.Model, groups []*art.TrajectoryGroup, cfg *art.TrainConfig,
	) (*art.TrainResult, error)
	log func(
		ctx context.Context, m *art.Model, split string, step int, groups []*art.TrajectoryGroup, metrics map[string]float64,
	) error
	history  func(rows []art.HistoryRow) []art.HistoryRow
	keep     func(keep []int) []int
	sft      func(r *art.TrainResult)
	dpo      func(r *art.TrainResult)
	send     func(m *art.Model) http.RoundTripper
	patch    func(patch any) any
	logprobs func(logprobs []float32) []float32
	restored func(step int) int
	piece    func(p *art.Piece)
	seed     func(seed uint64) uint64
	decoded  func(text string) string
	bytes    func(list [][]byte) [][]byte
	close    func() error
}

func (d *defective) Close() error {
	if d.close != nil {
		return d.close()
	}
	return d.Backend.Close()
}

func (d *defective) TokenBytes(ctx context.Context, m *art.Model, ids []int32) ([][]byte, error) {
	list, err := d.Backend.TokenBytes(ctx, m, ids)
	if d.bytes != nil {
		list = d.bytes(list)
	}
	return list, err
}

func (d *defective) Stream(
	ctx context.Context, m *art.Model, req *art.ChatRequest, piece func(art.Piece) error,
) (*art.ChatResponse, error) {
	return d.Backend.Stream(ctx, m, req, func(p art.Piece) error {
		if d.piece != nil {
			d.piece(&p)
		}
		return piece(p)
	})
}

func (d *defective) Sample(
	ctx context.Context, m *art.Model, prompt []int32, s art.Sampling, piece func(art.Piece) error,
) (*art.ChatResponse, error) {
	if d.seed != nil {
		s.Seed = d.seed(s.Seed)
	}
	return d.Backend.Sample(ctx, m, prompt, s, piece)
}

func (d *defective) Decode(ctx context.Context, m *art.Model, ids []int32) (string, error) {
	text, err := d.Backend.Decode(ctx, m, ids)
	if d.decoded != nil {
		text = d.decoded(text)
	}
	return text, err
}

func (d *defective) SaveState(ctx context.Context, m *art.Model, patch any) error {
	if d.patch != nil {
		patch = d.patch(patch)
	}
	return d.Backend.SaveState(ctx, m, patch)
}

func (d *defective) Logprobs(ctx context.Context, m *art.Model, ids []int32) ([]float32, int, error) {
	logprobs, step, err := d.Backend.Logprobs(ctx, m, ids)
	if err == nil && d.logprobs != nil {
		logprobs = d.logprobs(logprobs)
	}
	return logprobs, step, err
}

func (d *defective) Restore(ctx context.Context, m *art.Model, step int) (int, error) {
	next, err := d.Backend.Restore(ctx, m, step)
	if err == nil && d.restored != nil {
		next = d.restored(next)
	}
	return next, err
}

func (d *defective) Register(ctx context.Context, m *art.Model) (int, error) {
	step, err := d.Backend.Register(ctx, m)
	if d.register != nil {
		return d.register(m, step, err)
	}
	return step, err
}

func (d *defective) Complete(ctx context.Context, m *art.Model, req *art.ChatRequest) (*art.ChatResponse, error) {
	if d.complete != nil {
		return d.complete(ctx, m, req)
	}
	return d.Backend.Complete(ctx, m, req)
}

func (d *defective) Train(
	ctx context.Context, m *art.Model, groups []*art.TrajectoryGroup, cfg *art.TrainConfig,
) (*art.TrainResult, error) {
	if d.train != nil {
		return d.train(ctx, m, groups, cfg)
	}
	return d.Backend.Train(ctx, m, groups, cfg)
}

func (d *defective) Log(
	ctx context.Context, m *art.Model, split string, step int, groups []*art.TrajectoryGroup, metrics map[string]float64,
) error {
	if d.log != nil {
		return d.log(ctx, m, split, step, groups, metrics)
	}
	return d.Backend.Log(ctx, m, split, step, groups, metrics)
}

func (d *defective) History(ctx context.Context, m *art.Model) ([]art.HistoryRow, error) {
	rows, err := d.Backend.History(ctx, m)
	if d.history != nil {
		rows = d.history(rows)
	}
	return rows, err
}

func (d *defective) DeleteCheckpoints(ctx context.Context, m *art.Model, keep []int) error {
	if d.keep != nil {
		keep = d.keep(keep)
	}
	return d.Backend.DeleteCheckpoints(ctx, m, keep)
}

func (d *defective) TrainSFT(
	ctx context.Context, m *art.Model, trajectories []*art.Trajectory, cfg *art.SFTConfig,
) (*art.TrainResult, error) {
	r, err := d.Backend.TrainSFT(ctx, m, trajectories, cfg)
	if err == nil && d.sft != nil {
		d.sft(r)
	}
	return r, err
}

func (d *defective) TrainDPO(
	ctx context.Context, m *art.Model, pairs []art.Preference, cfg *art.DPOConfig,
) (*art.TrainResult, error) {
	r, err := d.Backend.TrainDPO(ctx, m, pairs, cfg)
	if err == nil && d.dpo != nil {
		d.dpo(r)
	}
	return r, err
}

func (d *defective) Transport(m *art.Model) http.RoundTripper {
	if d.send != nil {
		return d.send(m)
	}
	return d.Backend.Transport(m)
}

// afterComplete changes replies.
func afterComplete(change func(req *art.ChatRequest, r *art.ChatResponse)) func(*defective) {
	return func(d *defective) {
		d.complete = func(ctx context.Context, m *art.Model, req *art.ChatRequest) (*art.ChatResponse, error) {
			r, err := d.Backend.Complete(ctx, m, req)
			if err == nil {
				change(req, r)
			}
			return r, err
		}
	}
}

// onSample changes the samples of replies.
func onSample(change func(s *art.Sample)) func(*defective) {
	return afterComplete(func(_ *art.ChatRequest, r *art.ChatResponse) {
		if r.Message.Sample != nil {
			change(r.Message.Sample)
		}
	})
}

// beforeComplete changes requests.
func beforeComplete(change func(ctx context.Context, req *art.ChatRequest) context.Context) func(*defective) {
	return func(d *defective) {
		d.complete = func(ctx context.Context, m *art.Model, req *art.ChatRequest) (*art.ChatResponse, error) {
			ctx = change(ctx, req)
			return d.Backend.Complete(ctx, m, req)
		}
	}
}

// afterTrain changes results.
func afterTrain(change func(r *art.TrainResult)) func(*defective) {
	return func(d *defective) {
		d.train = func(
			ctx context.Context, m *art.Model, groups []*art.TrajectoryGroup, cfg *art.TrainConfig,
		) (*art.TrainResult, error) {
			r, err := d.Backend.Train(ctx, m, groups, cfg)
			if err == nil {
				change(r)
			}
			return r, err
		}
	}
}

var calls atomic.Uint64

// defects are broken backends, each with the test of the suite that finds it.
var defects = map[string]struct {
	test  string
	apply func(d *defective)
}{
	"first step is 1": {"Register", func(d *defective) {
		d.register = func(_ *art.Model, step int, err error) (int, error) { return step + 1, err }
	}},
	"registers twice": {"Register", func(d *defective) {
		d.register = func(*art.Model, int, error) (int, error) { return 0, nil }
	}},
	"no role":           {"Sample", afterComplete(func(_ *art.ChatRequest, r *art.ChatResponse) { r.Message.Role = "" })},
	"no model":          {"Sample", afterComplete(func(_ *art.ChatRequest, r *art.ChatResponse) { r.Model = "" })},
	"no usage":          {"Sample", afterComplete(func(_ *art.ChatRequest, r *art.ChatResponse) { r.Usage = art.Usage{} })},
	"no sample":         {"Sample", afterComplete(func(_ *art.ChatRequest, r *art.ChatResponse) { r.Message.Sample = nil })},
	"frozen samples":    {"Frozen", afterComplete(func(_ *art.ChatRequest, r *art.ChatResponse) { r.Message.Sample = &art.Sample{} })},
	"no prompt ids":     {"Sample", onSample(func(s *art.Sample) { s.PromptIDs = nil })},
	"a logprob too few": {"Sample", onSample(func(s *art.Sample) { s.Logprobs = s.Logprobs[1:] })},
	"positive logprob":  {"Sample", onSample(func(s *art.Sample) { s.Logprobs[0] = 1 })},
	"a mark too many":   {"Sample", onSample(func(s *art.Sample) { s.Forced = make([]bool, len(s.IDs)+1) })},
	"no settings":       {"Sample", onSample(func(s *art.Sample) { s.Settings = art.Sampling{} })},
	"stale step":        {"Train", onSample(func(s *art.Sample) { s.Step = 0 })},
	"seed is ignored":   {"Seed", beforeComplete(func(ctx context.Context, r *art.ChatRequest) context.Context { r.Settings.Seed = 0; return ctx })},
	"seed is not enough": {"Seed", beforeComplete(func(ctx context.Context, r *art.ChatRequest) context.Context {
		r.Settings.Seed += calls.Add(1)
		return ctx
	})},
	"greedy by seed": {"Seed", beforeComplete(func(ctx context.Context, r *art.ChatRequest) context.Context {
		if r.Settings.Temperature == 0 {
			r.Settings.Temperature = 1
		}
		return ctx
	})},
	"limit is ignored": {"MaxTokens", beforeComplete(func(ctx context.Context, r *art.ChatRequest) context.Context { r.Settings.MaxTokens = 0; return ctx })},
	"context is ignored": {"Cancelled", beforeComplete(func(ctx context.Context, _ *art.ChatRequest) context.Context {
		return context.WithoutCancel(ctx)
	})},
	"batch matters": {"Concurrent", func(d *defective) {
		var running atomic.Int64
		d.complete = func(ctx context.Context, m *art.Model, req *art.ChatRequest) (*art.ChatResponse, error) {
			req.Settings.Seed += uint64(running.Add(1)) * 1000
			defer running.Add(-1)
			time.Sleep(2 * time.Millisecond) // other requests arrive meanwhile
			return d.Backend.Complete(ctx, m, req)
		}
	}},
	"wrong step in the result": {"Train", afterTrain(func(r *art.TrainResult) { r.Step++ })},
	"no metric":                {"Train", afterTrain(func(r *art.TrainResult) { r.Metrics = nil })},
	"no reasons":               {"TrainNothing", afterTrain(func(r *art.TrainResult) { r.Skipped = nil })},
	"trains nil groups": {"TrainInvalid", func(d *defective) {
		d.train = func(
			ctx context.Context, m *art.Model, groups []*art.TrajectoryGroup, cfg *art.TrainConfig,
		) (*art.TrainResult, error) {
			return d.Backend.Train(ctx, m, append(groups, nil), cfg)
		}
	}},
	"training ignores its context": {"Cancelled", func(d *defective) {
		d.train = func(
			ctx context.Context, m *art.Model, groups []*art.TrajectoryGroup, cfg *art.TrainConfig,
		) (*art.TrainResult, error) {
			return d.Backend.Train(context.WithoutCancel(ctx), m, groups, cfg)
		}
	}},
	"early swap": {"TrainWhileServing", func(d *defective) {
		d.train = func(
			ctx context.Context, m *art.Model, groups []*art.TrajectoryGroup, cfg *art.TrainConfig,
		) (*art.TrainResult, error) {
			quiet := *cfg
			quiet.Progress = nil
			r, err := d.Backend.Train(ctx, m, groups, &quiet)
			if err == nil && cfg.Progress != nil {
				cfg.Progress(art.TrainProgress{Done: 1, Total: 1})
			}
			return r, err
		}
	}},
	"log is not kept": {"Logger", func(d *defective) {
		d.log = func(context.Context, *art.Model, string, int, []*art.TrajectoryGroup, map[string]float64) error {
			return nil
		}
	}},
	"log forgets its split": {"Logger", func(d *defective) {
		d.log = func(
			ctx context.Context, m *art.Model, _ string, step int, groups []*art.TrajectoryGroup, metrics map[string]float64,
		) error {
			return d.Backend.Log(ctx, m, "val", step, groups, metrics)
		}
	}},
	"train rows are a step late": {"TrainRow", func(d *defective) {
		d.log = func(ctx context.Context, m *art.Model, split string, step int, groups []*art.TrajectoryGroup,
			metrics map[string]float64,
		) error {
			return d.Backend.Log(ctx, m, split, step+1, groups, metrics)
		}
	}},
	"training stores no row": {"TrainRow", func(d *defective) {
		d.history = func(rows []art.HistoryRow) []art.HistoryRow {
			return slices.DeleteFunc(rows, func(r art.HistoryRow) bool {
				_, logged := r.Metrics["train/seconds"]
				return r.Split == "train" && !logged
			})
		}
	}},
	"deletes nothing": {"CheckpointKeeper", func(d *defective) { d.keep = func([]int) []int { return []int{1, 2, 3} } }},
	"deletes all":     {"CheckpointKeeper", func(d *defective) { d.keep = func([]int) []int { return nil } }},
	"state is not merged": {"StateKeeper", func(d *defective) {
		d.patch = func(patch any) any {
			if m, ok := patch.(map[string]any); ok && len(m["data"].(map[string]any)) == 1 {
				return "gone"
			}
			return patch
		}
	}},
	"logprobs are shifted":          {"Sampler", func(d *defective) { d.logprobs = func(l []float32) []float32 { return append(l[1:], l[0]) } }},
	"sampling ids has another seed": {"SampleIDs", func(d *defective) { d.seed = func(s uint64) uint64 { return s + 1 } }},
	"a token has no bytes": {"Tokenizer", func(d *defective) {
		d.bytes = func(list [][]byte) [][]byte { return append([][]byte{nil}, list[1:]...) }
	}},
	"decoding loses text":      {"Tokenizer", func(d *defective) { d.decoded = func(s string) string { return s[1:] } }},
	"pieces lose text":         {"Streamer", func(d *defective) { d.piece = func(p *art.Piece) { p.Content = "" } }},
	"pieces lose tokens":       {"Streamer", func(d *defective) { d.piece = func(p *art.Piece) { p.IDs = nil } }},
	"pieces repeat the prompt": {"Streamer", func(d *defective) { d.piece = func(p *art.Piece) { p.PromptIDs = []int32{1} } }},
	"pieces have no model":     {"Streamer", func(d *defective) { d.piece = func(p *art.Piece) { p.Model = "" } }},
	"a logprob is left out":    {"Sampler", func(d *defective) { d.logprobs = func(l []float32) []float32 { return l[1:] } }},
	"restoring has no step":    {"CheckpointRestorer", func(d *defective) { d.restored = func(int) int { return 1 } }},
	"sft has no step":          {"SFTTrainer", func(d *defective) { d.sft = func(r *art.TrainResult) { r.Step = 0 } }},
	"dpo has no step":          {"DPOTrainer", func(d *defective) { d.dpo = func(r *art.TrainResult) { r.Step = 0 } }},
	"no transport": {"HTTPServer", func(d *defective) {
		d.send = func(*art.Model) http.RoundTripper { return http.NewFileTransport(http.Dir(os.DevNull)) }
	}},
}

// misbehaviours are backends that break off or never return, each with the tests of Run and RunHosted that find it.
var misbehaviours = map[string]struct {
	test, hosted string
	apply        func(d *defective)
}{
	"no response": {"Sample", "Reply", func(d *defective) {
		d.complete = func(context.Context, *art.Model, *art.ChatRequest) (*art.ChatResponse, error) { return nil, nil }
	}},
	"no reply":  {"Sample", "Reply", afterComplete(func(_ *art.ChatRequest, r *art.ChatResponse) { *r = art.ChatResponse{} })},
	"no sample": {"Train", "", afterComplete(func(_ *art.ChatRequest, r *art.ChatResponse) { r.Message.Sample = nil })},
	"an empty sample": {"Trainer", "Reply", afterComplete(func(_ *art.ChatRequest, r *art.ChatResponse) {
		r.Message.Sample = &art.Sample{}
	})},
	"no logprobs": {"Trainer", "Reply", onSample(func(s *art.Sample) { s.Logprobs = nil })},
	"completing panics": {"Concurrent", "Together", func(d *defective) {
		d.complete = func(context.Context, *art.Model, *art.ChatRequest) (*art.ChatResponse, error) { panic("on fire") }
	}},
	"registering panics": {"Register", "Register", func(d *defective) {
		d.register = func(*art.Model, int, error) (int, error) { panic("on fire") }
	}},
	"training panics": {"TrainWhileServing", "TrainUnsupported", func(d *defective) {
		d.train = func(
			context.Context, *art.Model, []*art.TrajectoryGroup, *art.TrainConfig,
		) (*art.TrainResult, error) {
			panic("on fire")
		}
	}},
	"no result": {"Train", "TrainUnsupported", func(d *defective) {
		d.train = func(
			context.Context, *art.Model, []*art.TrajectoryGroup, *art.TrainConfig,
		) (*art.TrainResult, error) {
			return nil, nil
		}
	}},
	"closing panics": {"Close", "Close", func(d *defective) { d.close = func() error { panic("on fire") } }},
	"closing hangs":  {"Close", "Close", func(d *defective) { d.close = func() error { select {} } }},
	"errors have no type": {"CompleteUnregistered", "CompleteUnregistered", func(d *defective) {
		d.complete = func(ctx context.Context, m *art.Model, req *art.ChatRequest) (*art.ChatResponse, error) {
			r, err := d.Backend.Complete(ctx, m, req)
			if typed := new(art.Error); errors.As(err, &typed) {
				err = typed.Err
			}
			return r, err
		}
	}},
	"completing hangs": {"CompleteUnregistered", "CompleteUnregistered", func(d *defective) {
		d.complete = func(context.Context, *art.Model, *art.ChatRequest) (*art.ChatResponse, error) { select {} }
	}},
	"a cancelled call hangs": {"Cancelled", "Cancelled", func(d *defective) {
		d.complete = func(ctx context.Context, m *art.Model, req *art.ChatRequest) (*art.ChatResponse, error) {
			if ctx.Err() != nil {
				select {}
			}
			return d.Backend.Complete(ctx, m, req)
		}
	}},
	"returns only when it is closed": {"CompleteUnregistered", "CompleteUnregistered", func(d *defective) {
		closed := make(chan struct{})
		d.close = func() error { close(closed); return d.Backend.Close() }
		d.complete = func(context.Context, *art.Model, *art.ChatRequest) (*art.ChatResponse, error) {
			<-closed
			return nil, errors.New("closed")
		}
	}},
}

// TestBroken runs a suite on a defective backend, and then fails. Without a flag it does nothing.
func TestBroken(t *testing.T) {
	defect, ok := defects[*broken]
	apply, suite := defect.apply, backendtest.Run
	if !ok {
		m, ok := misbehaviours[strings.TrimPrefix(*broken, "hosted ")]
		if !ok {
			t.Skip("a part of TestRun_FindsDefects and TestRun_NeverPanics")
		}
		apply = m.apply
	}
	if strings.HasPrefix(*broken, "hosted ") {
		suite = backendtest.RunHosted
	}
	suite(t, func(*testing.T) art.Backend {
		d := &defective{Backend: &arttest.Backend{}}
		if strings.HasPrefix(*broken, "hosted ") {
			untrained(d)
		}
		apply(d)
		return d
	})
}

// untrained makes the fake one that only answers.
func untrained(d *defective) {
	d.train = func(
		ctx context.Context, m *art.Model, _ []*art.TrajectoryGroup, _ *art.TrainConfig,
	) (*art.TrainResult, error) {
		if _, err := d.Checkpoints(ctx, m); err != nil { // it is closed, or does not know the model
			return nil, err
		}
		return nil, &art.Error{Op: "train", Err: art.ErrUnsupported}
	}
}

// TestRunHosted passes for a fake that only answers.
func TestRunHosted(t *testing.T) {
	backendtest.RunHosted(t, func(*testing.T) art.Backend {
		d := &defective{Backend: &arttest.Backend{}}
		untrained(d)
		afterComplete(func(_ *art.ChatRequest, r *art.ChatResponse) { r.Message.Sample = nil })(d)
		return d
	})
}

// TestRun_NeverPanics: whatever a backend does is a test that fails, and the process of the tests goes on.
func TestRun_NeverPanics(t *testing.T) {
	for name, m := range misbehaviours {
		for _, suite := range []struct{ flag, test string }{{name, m.test}, {"hosted " + name, m.hosted}} {
			if suite.test == "" {
				continue
			}
			t.Run(suite.flag, func(t *testing.T) {
				t.Parallel()
				out, err := exec.Command(os.Args[0], "-test.run=^TestBroken$", "-test.timeout=15s",
					"-broken="+suite.flag).CombinedOutput()
				ended := new(exec.ExitError)
				if !errors.As(err, &ended) || ended.ExitCode() != 1 {
					t.Fatalf("%v, want the exit status of tests that fail\n%s", err, out)
				}
				if !strings.Contains(string(out), "--- FAIL: TestBroken/"+suite.test+" (") {
					t.Errorf("%s did not fail:\n%s", suite.test, out)
				}
			})
		}
	}
}

// Each defect is found by the test that is meant to find it.
func TestRun_FindsDefects(t *testing.T) {
	for name, defect := range defects {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, err := exec.Command(os.Args[0], "-test.run=^TestBroken$", "-broken="+name).CombinedOutput()
			if err == nil {
				t.Fatal("the suite passes")
			}
			found := regexp.MustCompile(`--- FAIL: TestBroken/(\w+)`).FindAllStringSubmatch(string(out), -1)
			for _, f := range found {
				if f[1] == defect.test {
					return
				}
			}
			t.Errorf("%s did not fail:\n%s", defect.test, strings.TrimSpace(string(out)))
		})
	}
}
