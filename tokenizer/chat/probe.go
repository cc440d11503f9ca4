package chat

import "github.com/goart-dev/art"

// Names that no template writes by itself: finding one in rendered text means that the template wrote the message.
const (
	probe      = "x7q9z" // the content of a reply, and the name of a call
	probeKey   = "k8w4y"
	probeValue = "v3j6u"
	probeTool  = "t5m2e"
	probeID    = "p4h8n2c6a" // as long as Mistral's templates demand
	// probeSecond is the name of a second call.
	probeSecond = "s9d1r"
)

// probeConversation is a question, a call, its result, an answer and another question.
func probeConversation() []art.Message {
	call := art.ToolCall{ID: probeID, Name: probe, Arguments: `{"` + probeKey + `": "` + probeValue + `"}`}
	result := art.ToolResult(call.ID, "a")
	result.Name = probe
	return []art.Message{
		art.User("a"), {Role: art.RoleAssistant, ToolCalls: []art.ToolCall{call}}, result, art.Assistant("a"), art.User("a"),
	}
}

// probeTools is a tool that the probes do not call.
func probeTools() []art.Tool {
	return []art.Tool{{Name: probeTool, Description: "a", Parameters: []byte(`{"type": "object", "properties": {}}`)}}
}
