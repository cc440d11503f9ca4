package frameworks

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/examples/agents"
	"github.com/goart-dev/art/examples/agents/mcp"
	"github.com/goart-dev/art/internal/dev/arttest"
)

// solve does what a scenario wants at a desk, as often as it takes.
func solve(d *Desk, s mcp.Scenario) (string, error) {
	last := ""
	for _, c := range s.Want.Calls {
		for last = busyText; last == busyText; {
			for _, value := range c.Args {
				var err error
				if last, err = d.Call(c.Tool, value); err != nil {
					return "", err
				}
			}
		}
	}
	return last, nil
}

// Each scenario can be solved with the three tools, also when they are busy; training, validation and test are about
// different tasks.
func TestScenarios_Solvable(t *testing.T) {
	train, val, test := Scenarios(3)
	seen := map[string]bool{}
	for _, list := range [][]mcp.Scenario{train, val, test} {
		if len(list) < 50 {
			t.Errorf("%d scenarios", len(list))
		}
		for _, s := range list {
			if seen[s.Task] {
				t.Errorf("%q is there twice", s.Task)
			}
			seen[s.Task] = true
			d := NewDesk(3, Faults{Busy: 0.5}, rand.New(rand.NewPCG(1, 2)))
			answer, err := solve(d, s)
			run := art.NewTrajectory()
			err = errors.Join(err, score(3, s, d, run, answer, nil))
			if err != nil || run.Reward != 1 || run.Metrics["solved"] != 1 {
				t.Errorf("%q: %q earns %v, %v", s.Task, answer, run.Reward, err)
			}
		}
	}
}

// play plays one scenario with an agent of a model that says yes.
func play(t *testing.T, agent Agent, faults Faults) (*art.Trajectory, error) {
	t.Helper()
	m := art.NewModel("m", nil)
	if err := m.Register(t.Context(), &arttest.Backend{Reply: arttest.Script("yes")}); err != nil {
		t.Fatal(err)
	}
	train, _, _ := Scenarios(1)
	return Rollout(InProcess(agent), 1, faults)(m, nil)(t.Context(), train[0])
}

// What the agent does wrong is a rollout that earns little; what it cannot help is a failure.
func TestRollout_WhoseFault(t *testing.T) {
	chat := func(ctx context.Context, e *Env) error {
		_, err := e.Model.Chat(ctx, art.NewTrajectory(art.User(e.Task)), e.Chat)
		return err
	}
	confused := func(ctx context.Context, e *Env) (string, error) {
		return "", errors.Join(chat(ctx, e), errors.New("no such tool"))
	}
	got, err := play(t, confused, Faults{})
	if err != nil || got.Reward != 0 || got.Metrics["completed"] != 0 || len(got.Logs) != 1 ||
		got.Metadata[agents.ScenarioKey] == nil {
		t.Errorf("%+v, %v", got, err)
	}
	for name, agent := range map[string]Agent{
		"desk": func(ctx context.Context, e *Env) (string, error) {
			_, err := e.Desk.OrderStatus("1")
			return "", errors.Join(chat(ctx, e), err)
		},
		"model": func(ctx context.Context, e *Env) (string, error) {
			return "", errors.Join(chat(ctx, e), &art.Error{Op: "complete", Err: art.ErrClosed})
		},
		"nothing": func(context.Context, *Env) (string, error) { return "yes", nil },
	} {
		if got, err := play(t, agent, Faults{Down: 1}); err == nil {
			t.Errorf("%s: a rollout that earns %v", name, got.Reward)
		}
	}
}

// A call that cannot be read, which a framework passes on as text, is no answer.
func TestRollout_BrokenCall(t *testing.T) {
	for answer, completed := range map[string]float64{"done": 1, `<tool_call>{"name": "find`: 0} {
		got, err := play(t, func(ctx context.Context, e *Env) (string, error) {
			_, err := e.Model.Chat(ctx, art.NewTrajectory(art.User(e.Task)), e.Chat)
			return answer, err
		}, Faults{})
		if err != nil || got.Metrics["completed"] != completed {
			t.Errorf("%q: %+v, %v", answer, got, err)
		}
	}
}

// roundTrip is a transport.
type roundTrip func(*http.Request) (*http.Response, error)

// RoundTrip implements [http.RoundTripper].
func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// The run decides how replies are sampled, and nothing else of a request changes.
func TestSampledBy(t *testing.T) {
	var got string
	status := http.StatusOK
	next := roundTrip(func(r *http.Request) (*http.Response, error) {
		body, err := io.ReadAll(r.Body)
		if got = string(body); int64(len(body)) != r.ContentLength {
			t.Errorf("the length is %d of %d", r.ContentLength, len(body))
		}
		return &http.Response{StatusCode: status, Body: http.NoBody}, err
	})
	const tools = `[{"type":"function","function":{"name":"b","parameters":{"z":1,"a":2}}}]`
	s := &sampledBy{next: next, opts: &art.ChatOptions{Temperature: new(0.0), MaxTokens: new(9)}}
	send := func() {
		body := `{"temperature":0.7,"max_completion_tokens":5000,"tools":` + tools + `}`
		r, err := http.NewRequestWithContext(t.Context(), "POST", "http://x/v1", bytes.NewReader([]byte(body)))
		if err != nil {
			t.Fatal(err)
		}
		response, err := (&http.Client{Transport: s}).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
	}
	send()
	if !strings.Contains(got, tools) || !strings.Contains(got, `"temperature":0,`) || s.failed.Load() ||
		!strings.Contains(got, `"max_tokens":9`) || strings.Contains(got, "5000") {
		t.Error(got)
	}
	s.opts = nil
	if send(); strings.Contains(got, "temperature") || !strings.Contains(got, "5000") {
		t.Error(got)
	}
	status = http.StatusBadGateway
	if send(); !s.failed.Load() {
		t.Error("a failure of the model is not noted")
	}
}

// Two steps and the comparison, with the built-in model and an agent without a framework; then again, when the run is
// finished.
func TestRun(t *testing.T) {
	if testing.Short() {
		t.Skip("trains")
	}
	s := &settings{
		base: "tiny", dir: t.TempDir(), seed: 1, steps: 2, batch: 2, group: 4, every: 1, count: 4, context: 256, reply: 8,
		concurrency: 8, rate: 1e-3,
	}
	e := &Example{Name: "plain", Play: InProcess(func(ctx context.Context, e *Env) (string, error) {
		x := art.NewTrajectory(art.User(e.Task))
		reply, err := e.Model.Chat(ctx, x, e.Chat)
		if err != nil {
			return "", err
		}
		return reply.Content, nil
	})}
	for range 2 {
		if err := s.run(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
}
