// Package mcp trains an agent for the tools of any MCP server (Model Context Protocol): the address or the command of
// a server in, a trained agent out. It is ART's MCP-RL.
//
//	server, err := mcp.Open("https://example.com/mcp", nil) // or a command: "npx some-server"
//	about, err := server.Describe(ctx)
//	scenarios, _, err := mcp.Generate(ctx, about, &mcp.GenerateOptions{Model: generator, Want: 24})
//	train, val := mcp.Split(scenarios, seed)
//	agent := &mcp.Agent{Server: server, Known: about}
//	outcome, err := (&agents.Training[mcp.Scenario]{Model: model, Rollout: agent.Rollout, Train: train, Val: val,
//		After: judge.After, Control: base, Referee: judge}).Run(ctx)
//
// # A rollout
//
// Each rollout has a session of its own. The agent gets the server's tools and one more, complete_task, which ends the
// rollout. It has a number of turns; in each the model replies once, and all tool calls of the reply are carried out
// in their order. Results are cut to a number of characters, and the text says so. What a tool says is wrong goes back
// to the model as the result of the call.
//
// A server that does not answer in time, ends, sends a message that is too large, or offers other tools than those
// that the scenarios were made for fails the rollout: with a reason, as a [art.Failure] of its group. The others go
// on. No call is ever made twice.
//
// What a server returns is data: it becomes the content of tool messages only, whatever it says. A checker looks at
// what was done, see package synthetic, and package ruler tells its judge not to follow what trajectories say.
package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/examples/agents"
)

// Names of the tools that the agent has beside those of the server.
const (
	CompleteTool = "complete_task" // ends a rollout, with a summary
	ReadTool     = "read_resource" // reads a resource, with Agent.Resources
)

// Agent works on scenarios with the tools of a server.
type Agent struct {
	Server *Server
	// Known is what the server offered when the scenarios were made: a rollout in which it offers other tools fails.
	// nil: any tools are fine.
	Known *Description
	// MaxTurns is how many replies the model may write. Default 10.
	MaxTurns int
	// System is the system message. Default: what to do, how many turns there are, and how to end.
	System string
	// TextCompletes makes a reply without a call complete the task too, with its text as the summary, as small models
	// answer. By default the agent is told to call a tool, and has one turn less.
	TextCompletes bool
	// Resources offers the tool read_resource where the server has resources.
	Resources bool
	// Check gives the reward. nil leaves it 0: a judge gives it.
	Check Checker
}

// Rollout returns what [art.GatherGroups] runs for each scenario. opts may be nil.
func (a *Agent) Rollout(
	model *art.Model, opts *art.ChatOptions,
) func(context.Context, Scenario) (*art.Trajectory, error) {
	return func(ctx context.Context, s Scenario) (*art.Trajectory, error) { return a.Run(ctx, model, s, opts) }
}

// Run works on a scenario in a session of its own. It returns an error when the server or the model failed, and not
// when the agent did.
//
// Metrics: "completed" (complete_task was called, or see TextCompletes), "turns", "calls", "tool_errors",
// "out_of_turns", "out_of_context", and with a checker "solved" (it said 1).
func (a *Agent) Run(ctx context.Context, model *art.Model, s Scenario, opts *art.ChatOptions) (*art.Trajectory, error) {
	session, err := a.Server.Connect(ctx)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err := session.Close(); err != nil {
			a.Server.opts.Logger.Warn("a session did not close", "server", a.Server.name, "err", err)
		}
	}()
	about := session.Description()
	if a.Known != nil {
		if difference := a.Known.differs(about); difference != "" {
			return nil, session.failure("tools", fmt.Errorf("the server's tools are not those of the scenarios: %s", difference))
		}
	}
	r := &rollout{agent: a, session: session, model: model, opts: opts, t: a.begin(s, about)}
	if err := r.work(ctx); err != nil {
		return nil, err
	}
	return r.t, r.finish(ctx, s)
}

func (a *Agent) begin(s Scenario, about *Description) *art.Trajectory {
	system := a.System
	if system == "" {
		system = fmt.Sprintf("Do the task with the tools, in at most %d turns. Then call %s with a summary of the result.",
			a.maxTurns(), CompleteTool)
	}
	t := art.NewTrajectory(art.System(system), art.User(s.Task))
	t.Tools = append(t.Tools, about.Tools...)
	if a.Resources && len(about.Resources) > 0 {
		t.Tools = append(t.Tools, art.Tool{Name: ReadTool, Description: "Read a resource.", Parameters: json.RawMessage(
			`{"type": "object", "properties": {"uri": {"type": "string"}}, "required": ["uri"]}`)})
	}
	t.Tools = append(t.Tools, art.Tool{
		Name: CompleteTool, Description: "End the task.", Parameters: json.RawMessage(
			`{"type": "object", "properties": {"summary": {"type": "string"}}, "required": ["summary"]}`)})
	t.Metadata[agents.ScenarioKey], t.Metadata["task"] = s.ID, s.Task
	if s.Difficulty > 0 {
		t.Metadata["difficulty"] = s.Difficulty
	}
	return t
}

func (a *Agent) maxTurns() int { return cmp.Or(a.MaxTurns, 10) }

type rollout struct {
	agent   *Agent
	session *Session
	model   *art.Model
	opts    *art.ChatOptions
	t       *art.Trajectory

	turns, calls, toolErrors int
	completed, outOfContext  bool
}

// nudge is what the agent reads after a reply without a call.
const nudge = "Call a tool, or " + CompleteTool + " when the task is done."

// work lets the model reply until the task is completed or its turns, or its context, are used up.
func (r *rollout) work(ctx context.Context) error {
	for r.turns < r.agent.maxTurns() && !r.completed {
		reply, err := r.model.Chat(ctx, r.t, r.opts)
		if errors.Is(err, art.ErrContextLength) && r.turns > 0 {
			r.outOfContext = true
			return nil
		}
		if err != nil {
			return err
		}
		r.turns++
		if len(reply.ToolCalls) == 0 { // a tool call that could not be read is none
			if r.agent.TextCompletes {
				r.completed = true
			} else if r.turns < r.agent.maxTurns() {
				r.t.Add(art.User(nudge))
			}
		}
		for i := range reply.ToolCalls {
			if err := r.call(ctx, &reply.ToolCalls[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// call carries out one call and adds what the model gets to read. Calls after complete_task are not carried out.
func (r *rollout) call(ctx context.Context, c *art.ToolCall) error {
	if r.completed {
		r.t.Add(art.ToolResult(c.ID, "Not carried out: the task has ended."))
		return nil
	}
	r.calls++
	text, failed, err := r.carryOut(ctx, c)
	if err != nil {
		return err
	}
	if failed {
		r.toolErrors++
		text = "Error: " + text
	}
	r.t.Add(art.ToolResult(c.ID, text))
	return nil
}

func (r *rollout) carryOut(ctx context.Context, c *art.ToolCall) (text string, failed bool, err error) {
	arguments := json.RawMessage(cmp.Or(c.Arguments, "{}"))
	var args map[string]any
	if err := json.Unmarshal(arguments, &args); err != nil || args == nil {
		return "The arguments are no JSON object.", true, nil
	}
	switch {
	case c.Name == CompleteTool:
		if _, isText := args["summary"].(string); !isText {
			return "complete_task wants a summary.", true, nil
		}
		r.completed = true
		return "ok", false, nil
	case c.Name == ReadTool && r.offered(ReadTool):
		uri, isText := args["uri"].(string)
		if !isText {
			return "read_resource wants a uri.", true, nil
		}
		return r.session.Read(ctx, uri)
	case !r.offered(c.Name):
		return fmt.Sprintf("There is no tool %.60q.", c.Name), true, nil
	}
	return r.session.Call(ctx, c.Name, arguments)
}

func (r *rollout) offered(name string) bool {
	return slices.ContainsFunc(r.t.Tools, func(t art.Tool) bool { return t.Name == name })
}

func (r *rollout) finish(ctx context.Context, s Scenario) error {
	m := r.t.Metrics
	m["completed"], m["turns"], m["calls"] = one(r.completed), float64(r.turns), float64(r.calls)
	m["tool_errors"], m["out_of_context"] = float64(r.toolErrors), one(r.outOfContext)
	m["out_of_turns"] = one(!r.completed && !r.outOfContext)
	if r.agent.Check == nil {
		return nil
	}
	score, err := r.agent.Check(ctx, s, r.t)
	if err != nil {
		return fmt.Errorf("check: %w", err)
	}
	if math.IsNaN(score) || score < 0 || score > 1 {
		err := fmt.Errorf("the checker gave %v, want 0 to 1", score)
		return &art.Error{Op: "check", Err: err, Hint: "correct the checker"}
	}
	r.t.Reward, m["solved"] = score, one(score == 1)
	return nil
}

// Summary returns what the agent said when it completed its task. ok is false when it did not.
func Summary(t *art.Trajectory) (summary string, ok bool) {
	if t.Metrics["completed"] != 1 {
		return "", false
	}
	for _, m := range t.Messages {
		for _, c := range m.ToolCalls {
			var args struct{ Summary *string }
			if c.Name != CompleteTool {
				continue
			}
			if err := json.Unmarshal([]byte(c.Arguments), &args); err == nil && args.Summary != nil {
				return *args.Summary, true
			}
		}
	}
	return t.Messages[len(t.Messages)-1].Content, true // see Agent.TextCompletes
}

func one(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
