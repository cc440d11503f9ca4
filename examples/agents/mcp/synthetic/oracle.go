package synthetic

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/examples/agents/mcp"
)

// Oracle writes replies that solve scenarios, which it knows by their tasks: what can be reached, and what to learn
// from. It is the Reply of a fake backend.
func Oracle(lists ...[]mcp.Scenario) func(context.Context, *art.Model, *art.ChatRequest) (art.Message, error) {
	byTask := map[string]mcp.Scenario{}
	for _, list := range lists {
		for _, s := range list {
			byTask[s.Task] = s
		}
	}
	return func(_ context.Context, _ *art.Model, r *art.ChatRequest) (art.Message, error) {
		replies := 0
		for _, m := range r.Messages {
			if m.Role == art.RoleAssistant {
				replies++
			}
		}
		s, ok := byTask[r.Messages[1].Content]
		if !ok || s.Want == nil {
			return art.Message{}, fmt.Errorf("the oracle does not know the task %q", r.Messages[1].Content)
		}
		call := mcp.Call{Tool: mcp.CompleteTool, Args: map[string]string{"summary": s.Want.Answer}}
		if s.Want.Answer == "" {
			call.Args["summary"] = "done"
		}
		if replies < len(s.Want.Calls) {
			call = s.Want.Calls[replies]
		}
		return CallMessage(fmt.Sprintf("call_%d", replies+1), call)
	}
}

// CallMessage is a reply with one call.
func CallMessage(id string, call mcp.Call) (art.Message, error) {
	args, err := json.Marshal(call.Args)
	return art.Message{Role: art.RoleAssistant, ToolCalls: []art.ToolCall{
		{ID: id, Name: call.Tool, Arguments: string(args)},
	}}, err
}
