package mcp_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/examples/agents/mcp"
	"github.com/goart-dev/art/examples/agents/mcp/synthetic"
)

// inProcess is the server of a domain in this process.
func inProcess(d synthetic.Domain, seed uint64) *mcp.Server {
	return mcp.InProcess(d.Name, func() *sdk.Server { return d.Serve(seed) }, nil)
}

// Somebody who knows the tasks solves each of them, by the checker, and an agent that ends at once none.
func TestRun_Solved(t *testing.T) {
	for _, d := range synthetic.Domains {
		train, val := d.Scenarios(1, 2)
		list := append(train[:60:60], val[:60]...)
		agent := &mcp.Agent{Server: inProcess(d, 1), Check: d.Checker(1), MaxTurns: 4}
		oracle := scripted(t, synthetic.Oracle(train, val), false)
		for name, c := range map[string]struct {
			model  *art.Model
			solved float64
		}{
			"oracle": {oracle, 1},
			"idle":   {scripted(t, calls(call(mcp.CompleteTool, "summary", "open 1234 8:00")), false), 0},
		} {
			g, err := art.Gather(t.Context(), list, agent.Rollout(c.model, nil), nil)
			if err != nil {
				t.Fatalf("%s, %s: %v", d.Name, name, err)
			}
			if m := art.Metrics(g); m["solved"] != c.solved || m["completed"] != 1 || m["tool_errors"] != 0 {
				t.Errorf("%s, %s: %v", d.Name, name, m)
			}
		}
	}
}

// What the agent does wrong is said to it, and the rollout goes on.
func TestRun_Mistakes(t *testing.T) {
	replies := []art.Message{
		art.Assistant("I think"),
		{ToolCalls: []art.ToolCall{{ID: "a", Name: "no_tool", Arguments: "{}"}, {ID: "b", Name: "poke", Arguments: "{"}}},
		{ToolCalls: []art.ToolCall{{ID: "c", Name: "poke", Arguments: "[1]"}, {ID: "d", Name: mcp.ReadTool, Arguments: "{}"}}},
		{ToolCalls: []art.ToolCall{{ID: "e", Name: mcp.CompleteTool, Arguments: `{"summary": 3}`}}},
		{ToolCalls: []art.ToolCall{
			{ID: "f", Name: mcp.CompleteTool, Arguments: `{"summary": "x"}`}, {ID: "g", Name: "poke", Arguments: "{}"},
		}},
	}
	model := scripted(t, func(_ context.Context, _ *art.Model, r *art.ChatRequest) (art.Message, error) {
		n := 0
		for _, m := range r.Messages {
			if m.Role == art.RoleAssistant {
				n++
			}
		}
		m := replies[n]
		m.Role = art.RoleAssistant
		return m, nil
	}, false)
	agent := &mcp.Agent{Server: mcp.InProcess("odd", func() *sdk.Server { return odd("") }, nil)}
	got, err := agent.Run(t.Context(), model, mcp.Scenario{ID: "s", Task: "Poke."}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var results []string
	for _, m := range got.Messages[3:] {
		if m.Role != art.RoleAssistant {
			results = append(results, m.Content)
		}
	}
	want := []string{
		"Call a tool, or complete_task when the task is done.", `Error: There is no tool "no_tool".`,
		"Error: The arguments are no JSON object.", "Error: The arguments are no JSON object.",
		`Error: There is no tool "read_resource".`, "Error: complete_task wants a summary.", "ok",
		"Not carried out: the task has ended.",
	}
	if fmt.Sprintf("%q", results) != fmt.Sprintf("%q", want) {
		t.Errorf("the agent reads\n%q, want\n%q", results, want)
	}
	m := got.Metrics
	if m["turns"] != 5 || m["calls"] != 6 || m["tool_errors"] != 5 || m["completed"] != 1 || m["out_of_turns"] != 0 {
		t.Errorf("%v", m)
	}
	if s, ok := mcp.Summary(got); s != "x" || !ok {
		t.Errorf("summary %q, %v", s, ok)
	}
}

// A model that answers in words can complete its task with them.
func TestRun_TextCompletes(t *testing.T) {
	replies := calls(call("poke"))
	model := scripted(t, func(ctx context.Context, m *art.Model, r *art.ChatRequest) (art.Message, error) {
		if len(r.Messages) > 2 {
			return art.Assistant("It is poked."), nil
		}
		return replies(ctx, m, r)
	}, false)
	server := mcp.InProcess("odd", func() *sdk.Server { return odd("") }, nil)
	agent := &mcp.Agent{Server: server, MaxTurns: 3, TextCompletes: true}
	got, err := agent.Run(t.Context(), model, mcp.Scenario{ID: "s", Task: "Poke."}, nil)
	if err != nil || got.Metrics["turns"] != 2 || got.Metrics["completed"] != 1 {
		t.Fatalf("%v, %v", got, err)
	}
	if s, ok := mcp.Summary(got); s != "It is poked." || !ok {
		t.Errorf("summary %q, %v", s, ok)
	}
}

// Turns end a rollout, and so does a context that is full.
func TestRun_Limits(t *testing.T) {
	agent := &mcp.Agent{Server: mcp.InProcess("odd", func() *sdk.Server { return odd("") }, nil), MaxTurns: 3}
	got, err := agent.Run(t.Context(), scripted(t, calls(call("poke")), false), mcp.Scenario{ID: "s", Task: "Poke."}, nil)
	if err != nil || got.Metrics["turns"] != 3 || got.Metrics["out_of_turns"] != 1 {
		t.Errorf("%v, %v", got, err)
	}
	full := func(after int) *art.Model {
		return scripted(t, func(_ context.Context, _ *art.Model, r *art.ChatRequest) (art.Message, error) {
			if len(r.Messages) > after {
				return art.Message{}, &art.Error{Op: "complete", Err: art.ErrContextLength}
			}
			return synthetic.CallMessage("c", call("poke"))
		}, false)
	}
	got, err = agent.Run(t.Context(), full(3), mcp.Scenario{ID: "s", Task: "Poke."}, nil)
	if err != nil || got.Metrics["turns"] != 1 || got.Metrics["out_of_context"] != 1 || got.Metrics["out_of_turns"] != 0 {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := agent.Run(t.Context(), full(0), mcp.Scenario{ID: "s", Task: "Poke."}, nil); err == nil {
		t.Error("a task that does not fit the context is no error")
	}
}

// A rollout that a server fails is a failure with a reason, and those beside it go on.
func TestGather_BadServers(t *testing.T) {
	model := scripted(t, func(_ context.Context, _ *art.Model, r *art.ChatRequest) (art.Message, error) {
		if len(r.Messages) > 2 {
			return synthetic.CallMessage("c2", call(mcp.CompleteTool, "summary", "poked"))
		}
		return synthetic.CallMessage("c1", call("poke", "how", r.Messages[1].Content))
	}, false)
	short := mcp.Options{CallTimeout: time.Second}
	known := &mcp.Description{Tools: []art.Tool{{Name: "prod"}}}
	for name, c := range map[string]struct {
		agent *mcp.Agent
		want  string
	}{
		"hang":    {&mcp.Agent{Server: mcp.InProcess("h", func() *sdk.Server { return odd("hang") }, &short)}, "no answer within 1s"},
		"crash":   {&mcp.Agent{Server: command(t, "crash", mcp.Options{})}, "out of cheese"},
		"changes": {&mcp.Agent{Server: mcp.InProcess("g", func() *sdk.Server { return odd("grow") }, nil)}, "changed its tools"},
	} {
		list := []mcp.Scenario{{ID: "1", Task: "fine"}, {ID: "2", Task: "hard"}, {ID: "3", Task: "fine"}}
		g, err := art.Gather(t.Context(), list, c.agent.Rollout(model, nil), &art.GatherOptions{MaxFailures: 1})
		if err != nil || len(g.Trajectories) != 2 || len(g.Failures) != 1 ||
			!strings.Contains(g.Failures[0].Message, c.want) {
			t.Errorf("%s: %v, %+v; want one failure with %q", name, err, g.Failures, c.want)
		}
		c.agent.Known = known
		_, err = c.agent.Run(t.Context(), model, mcp.Scenario{ID: "1", Task: "fine"}, nil)
		if err == nil || !strings.Contains(err.Error(), "prod is gone, poke is new") {
			t.Errorf("%s: other tools than the scenarios are for: %v", name, err)
		}
	}
}

// Instructions in a result stay in one message of the tool, and do not end the task.
func TestRun_Injection(t *testing.T) {
	agent := &mcp.Agent{Server: mcp.InProcess("odd", func() *sdk.Server { return odd("inject") }, nil), MaxTurns: 2}
	got, err := agent.Run(t.Context(), scripted(t, calls(call("poke")), false), mcp.Scenario{ID: "s", Task: "Poke."}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if m := got.Messages[3]; m.Role != art.RoleTool || m.Content != injection || got.Metrics["completed"] != 0 {
		t.Errorf("%+v, %v", m, got.Metrics)
	}
}

// A checker that is broken fails the rollout with a reason.
func TestRun_Checker(t *testing.T) {
	agent := &mcp.Agent{Server: mcp.InProcess("odd", func() *sdk.Server { return odd("") }, nil), MaxTurns: 1}
	for _, score := range []float64{math.NaN(), math.Inf(1), -0.1, 1.1} {
		agent.Check = func(context.Context, mcp.Scenario, *art.Trajectory) (float64, error) { return score, nil }
		_, err := agent.Run(t.Context(), scripted(t, calls(call("poke")), false), mcp.Scenario{ID: "s", Task: "Poke."}, nil)
		if err == nil || !strings.Contains(err.Error(), "the checker gave") {
			t.Errorf("%v: %v", score, err)
		}
	}
}
