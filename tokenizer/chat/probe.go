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

// probeReply is a question, a reply of a shape, the results of its calls with an answer, and another question.
func probeReply(shape replyShape) []art.Message {
	reply := art.Message{Role: art.RoleAssistant}
	if shape.content {
		reply.Content = "a"
	}
	if shape.reasoning {
		reply.Reasoning = "a"
	}
	conversation := []art.Message{art.User("a"), {}}
	for i, name := range []string{probe, probeSecond}[:shape.calls] {
		id := []string{"k00000001", "k00000002"}[i]
		reply.ToolCalls = append(reply.ToolCalls, art.ToolCall{ID: id, Name: name, Arguments: "{}"})
		result := art.ToolResult(id, "a")
		result.Name = name
		conversation = append(conversation, result)
	}
	if conversation[1] = reply; shape.calls > 0 {
		conversation = append(conversation, art.Assistant("a"))
	}
	return append(conversation, art.User("a"))
}

// probeTools is a tool that the probes do not call.
func probeTools() []art.Tool {
	return []art.Tool{{Name: probeTool, Description: "a", Parameters: []byte(`{"type": "object", "properties": {}}`)}}
}
