// Package frameworkstest checks that what the agent of a framework samples is recorded exactly, also when its tools
// fail, when the model calls tools that do not exist, and when it never comes to an end.
package frameworkstest

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/server"
	"github.com/goart-dev/art/examples/frameworks"
)

const rollouts = 50

type played struct {
	t      *art.Trajectory
	answer string
	err    error
	busy   int
	down   bool
}

// Result is what came of the rollouts of a check.
type Result struct {
	Ended    int // runs in which the agent came to an answer
	Failed   int // runs that ended by an error
	Branches int // additional histories: the agent did not repeat exactly what the model has said
}

// Check plays rollouts of an example's agent whose tools fail at random. Each token that was sampled must be in exactly
// one sample, an answer must be what the model said last, and no run may have more turns than allowed.
func Check(t *testing.T, e *frameworks.Example) Result {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	f := &fake{seed: seed, rollouts: e.Rollouts}
	m := art.NewModel(modelName, nil)
	if err := m.Register(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	if e.Start != nil {
		if err := e.Start(t.Context(), f); err != nil {
			t.Fatal(err)
		}
	}
	runs := play(t, e.Play, m, seed)
	var ids []int32
	for _, run := range runs {
		if run.t == nil {
			t.Errorf("a run has no trajectory: %v", run.err)
			continue
		}
		samples := run.t.Samples()
		for _, s := range samples {
			ids = append(ids, s.IDs...)
		}
		if n := len(samples); n > frameworks.MaxTurns {
			t.Errorf("a run has %d turns, at most %d", n, frameworks.MaxTurns)
		} else if last := said(run.t); run.err == nil && run.answer != last {
			t.Errorf("the answer is %q, and the model said %q", run.answer, last)
		}
	}
	slices.Sort(ids)
	if sampled := f.sampled(); !slices.Equal(ids, sampled) {
		t.Errorf("%d tokens are in samples, and %d were sampled", len(ids), len(sampled))
	}
	return summary(t, runs)
}

// play plays the rollouts and returns the runs of the agent, those that failed too.
func play(t *testing.T, inner frameworks.Play, m *art.Model, seed uint64) (runs []played) {
	t.Helper()
	var mu sync.Mutex
	record := func(ctx context.Context, e *frameworks.Env) (*art.Trajectory, string, error) {
		trajectory, answer, err := inner(ctx, e)
		mu.Lock()
		defer mu.Unlock()
		run := played{t: trajectory, answer: answer, err: err}
		run.busy, run.down = e.Desk.Faults()
		runs = append(runs, run)
		return trajectory, answer, err
	}
	rollout := frameworks.Rollout(record, seed, frameworks.Faults{Busy: 0.2, Down: 0.05})(m, nil)
	scenarios, _, _ := frameworks.Scenarios(seed)
	g, err := art.Gather(t.Context(), scenarios[:rollouts], rollout, &art.GatherOptions{Seed: seed, MaxFailureFraction: 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, failure := range g.Failures {
		t.Logf("failed: %s", failure.Message)
	}
	if len(g.Trajectories)+len(g.Failures) != rollouts || len(runs) != rollouts {
		t.Fatalf("%d trajectories, %d failures, %d runs", len(g.Trajectories), len(g.Failures), len(runs))
	}
	return runs
}

// said is the text of the newest reply.
func said(t *art.Trajectory) (text string) {
	newest := int32(0)
	for _, h := range t.Histories() {
		for i := range h.Messages {
			if m := &h.Messages[i]; m.Sample != nil && m.Sample.IDs[0] > newest {
				newest, text = m.Sample.IDs[0], m.Content
			}
		}
	}
	return text
}

// summary counts, and fails the test if nothing has failed or nothing has ended well.
func summary(t *testing.T, runs []played) (r Result) {
	t.Helper()
	busy, down := 0, 0
	for _, run := range runs {
		busy += run.busy
		if run.down {
			down++
		}
		if run.err != nil {
			r.Failed++
		} else {
			r.Ended++
		}
		if run.t != nil {
			r.Branches += len(run.t.AdditionalHistories)
		}
	}
	t.Logf("%+v; the desk was busy %d times, and down in %d runs", r, busy, down)
	if busy == 0 || down == 0 || r.Ended == 0 {
		t.Error("the rollouts test nothing")
	}
	return r
}

const modelName = "player"

// fake is a backend whose n-th reply is sampled as the token n, and says so. Replies call tools at random, some of them
// wrongly, until there are enough results; in some conversations without end.
type fake struct {
	art.Backend // the methods that are not called stay nil
	seed        uint64
	rollouts    *server.Rollouts
	models      func() []*art.Model

	mu  sync.Mutex
	ids []int32
}

func (f *fake) Register(_ context.Context, m *art.Model) (int, error) {
	f.models = func() []*art.Model { return []*art.Model{m} }
	return 3, nil
}

func (f *fake) Transport(m *art.Model) http.RoundTripper {
	return server.Transport(server.Routes(f.models, nil), m.Name())
}

func (f *fake) Handler(opts *art.HandlerOptions) (http.Handler, error) {
	return server.Handler(f.models, &server.Config{Rollouts: f.rollouts}, opts)
}

func (f *fake) Complete(_ context.Context, m *art.Model, req *art.ChatRequest) (*art.ChatResponse, error) {
	f.mu.Lock()
	n := int32(len(f.ids) + 1)
	f.ids = append(f.ids, n)
	f.mu.Unlock()
	reply, finish := f.reply(n, req), art.FinishStop
	if len(reply.ToolCalls) > 0 {
		finish = art.FinishToolCalls
	}
	reply.Sample = &art.Sample{
		PromptIDs: []int32{0}, IDs: []int32{n}, Logprobs: []float32{-float32(n) / 7}, Settings: req.Settings, Step: 3,
		Finish: finish,
	}
	return &art.ChatResponse{
		ID: fmt.Sprint("chatcmpl-", n), Model: m.Name() + "@3", Message: reply, Finish: finish,
		Usage: art.Usage{PromptTokens: 1, CompletionTokens: 1},
	}, nil
}

func (f *fake) reply(n int32, req *art.ChatRequest) art.Message {
	rng := rand.New(rand.NewPCG(f.seed, uint64(n)))
	results := 0
	for i := range req.Messages {
		if req.Messages[i].Role == art.RoleTool {
			results++
		}
	}
	if results > 0 && rng.Float64() < 0.3 || results >= 4 {
		if !endless(req.Messages) {
			return art.Assistant(fmt.Sprintf("Answer %d", n))
		}
	}
	m := art.Message{Role: art.RoleAssistant}
	if rng.Float64() < 0.3 {
		m.Content = fmt.Sprintf("Looking (%d).", n)
	}
	for i := range 1 + rng.IntN(5)/4 {
		m.ToolCalls = append(m.ToolCalls, call(fmt.Sprintf("call-%d-%d", n, i), req.Tools, rng))
	}
	return m
}

// endless tells whether a conversation, one of eight, does not end.
func endless(messages []art.Message) bool {
	at := slices.IndexFunc(messages, func(m art.Message) bool { return m.Role == art.RoleUser })
	h := fnv.New32a()
	_, _ = h.Write([]byte(messages[at].Content)) // a hash does not fail
	return h.Sum32()%8 == 0
}

// call calls a tool. One call of twenty is of a tool that does not exist, and one has arguments that are no JSON.
func call(id string, tools []art.Tool, rng *rand.Rand) art.ToolCall {
	tool := tools[rng.IntN(len(tools))]
	var schema struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	c := art.ToolCall{ID: id, Name: tool.Name, Arguments: "{}"}
	if err := json.Unmarshal(tool.Parameters, &schema); err == nil {
		for name := range schema.Properties {
			c.Arguments = fmt.Sprintf(`{%q: "%d"}`, name, 1000+rng.IntN(9000))
		}
	}
	switch luck := rng.Float64(); {
	case luck < 0.05:
		c.Name = "no_such_tool"
	case luck < 0.1:
		c.Arguments = strings.TrimSuffix(c.Arguments, "}")
	}
	return c
}

func (f *fake) sampled() []int32 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.ids)
}
