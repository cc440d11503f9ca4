package gemini

import (
	"encoding/json"

	"github.com/goart-dev/art"
)

// signedCall is the part of a call's JSON that Google's OpenAI-compatible API keeps the signature of a thought in.
// Models that think refuse a call that is sent back without its signature.
type signedCall struct {
	ExtraContent struct {
		Google struct {
			ThoughtSignature []byte `json:"thought_signature,omitempty"`
		} `json:"google"`
	} `json:"extra_content"`
}

// message wraps a call, which has JSON only as a part of one.
type message struct {
	ToolCalls []json.RawMessage `json:"tool_calls"`
}

// signatureOf returns the signature of a call, nil when it has none.
func signatureOf(call *art.ToolCall) []byte {
	data, err := json.Marshal(art.Message{Role: art.RoleAssistant, ToolCalls: []art.ToolCall{*call}})
	var outer message
	if err != nil || json.Unmarshal(data, &outer) != nil || len(outer.ToolCalls) != 1 {
		return nil
	}
	var signed signedCall
	if json.Unmarshal(outer.ToolCalls[0], &signed) != nil {
		return nil
	}
	return signed.ExtraContent.Google.ThoughtSignature
}

// withSignature returns the call with a signature, if there is one.
func withSignature(call art.ToolCall, signature []byte) art.ToolCall {
	if len(signature) == 0 {
		return call
	}
	data, err := json.Marshal(map[string]any{"role": art.RoleAssistant, "tool_calls": []any{map[string]any{
		"id": call.ID, "type": "function", "function": map[string]string{"name": call.Name, "arguments": call.Arguments},
		"extra_content": map[string]any{"google": map[string]any{"thought_signature": signature}},
	}}})
	var signed art.Message
	if err != nil || json.Unmarshal(data, &signed) != nil {
		return call // not reached: the JSON is that of a call
	}
	return signed.ToolCalls[0]
}
