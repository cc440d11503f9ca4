package gemini

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"

	"google.golang.org/genai"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/hosted"
)

func newRequest(req *art.ChatRequest) ([]*genai.Content, *genai.GenerateContentConfig, error) {
	if len(req.TemplateArgs) > 0 {
		err := fmt.Errorf("%w: Gemini has no TemplateArgs", art.ErrUnsupported)
		return nil, nil, &art.Error{Op: "complete", Err: err, Hint: "leave them out of the ChatOptions"}
	}
	if err := hosted.CheckSettings("Gemini", req.Settings, "PresencePenalty", "FrequencyPenalty"); err != nil {
		return nil, nil, err
	}
	if err := hosted.TextOnly(req.Messages); err != nil {
		return nil, nil, err
	}
	s := req.Settings
	config := &genai.GenerateContentConfig{
		Temperature: genai.Ptr(float32(s.Temperature)), TopP: genai.Ptr(float32(s.TopP)),
		MaxOutputTokens: int32(s.MaxTokens), StopSequences: s.Stop, Seed: genai.Ptr(int32(s.Seed & (1<<31 - 1))),
	}
	if s.TopK > 0 {
		config.TopK = genai.Ptr(float32(s.TopK))
	}
	if s.PresencePenalty != 0 {
		config.PresencePenalty = genai.Ptr(float32(s.PresencePenalty))
	}
	if s.FrequencyPenalty != 0 {
		config.FrequencyPenalty = genai.Ptr(float32(s.FrequencyPenalty))
	}
	c := conversation{names: map[string]string{}}
	for i := range req.Messages {
		m := &req.Messages[i]
		if m.Role == art.RoleSystem || m.Role == art.RoleDeveloper {
			if config.SystemInstruction == nil {
				config.SystemInstruction = &genai.Content{}
			}
			config.SystemInstruction.Parts = append(config.SystemInstruction.Parts, &genai.Part{Text: m.Content})
		} else if err := c.add(m, i); err != nil {
			return nil, nil, err
		}
	}
	return c.contents, config, nil
}

// newTools returns the tools of a request, with their schemas as they are.
func newTools(tools []art.Tool) any {
	type function struct {
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		Parameters  json.RawMessage `json:"parametersJsonSchema,omitempty"`
	}
	var functions []function
	for _, tool := range tools {
		functions = append(functions, function{tool.Name, tool.Description, tool.Parameters})
	}
	return []map[string]any{{"functionDeclarations": functions}}
}

// conversation are the messages of a request but those of the system.
type conversation struct {
	contents []*genai.Content
	names    map[string]string // of functions, by the id of a call
}

func (c *conversation) add(m *art.Message, i int) error {
	switch m.Role {
	case art.RoleTool:
		c.parts(genai.RoleUser, &genai.Part{FunctionResponse: &genai.FunctionResponse{
			ID: m.ToolCallID, Name: cmp.Or(c.names[m.ToolCallID], m.Name), Response: resultOf(m.Content),
		}})
	case art.RoleAssistant:
		if m.Content != "" {
			c.parts(genai.RoleModel, &genai.Part{Text: m.Content})
		}
		for k := range m.ToolCalls {
			call := &m.ToolCalls[k]
			c.names[call.ID] = call.Name
			var arguments map[string]any
			if err := json.Unmarshal([]byte(cmp.Or(call.Arguments, "{}")), &arguments); err != nil {
				err := fmt.Errorf("%w: messages[%d].tool_calls[%d]: the arguments are not a JSON object", art.ErrInvalid, i, k)
				return &art.Error{Op: "complete", Err: err, Hint: "leave the call out, or correct its arguments"}
			}
			c.parts(genai.RoleModel, &genai.Part{
				FunctionCall:     &genai.FunctionCall{ID: call.ID, Name: call.Name, Args: arguments},
				ThoughtSignature: signatureOf(call),
			})
		}
	default:
		c.parts(genai.RoleUser, &genai.Part{Text: m.Content})
	}
	return nil
}

// parts adds to the last content if it is of the same role: the results of parallel calls are one content.
func (c *conversation) parts(role string, part *genai.Part) {
	if n := len(c.contents); n > 0 && c.contents[n-1].Role == role {
		c.contents[n-1].Parts = append(c.contents[n-1].Parts, part)
		return
	}
	c.contents = append(c.contents, &genai.Content{Role: role, Parts: []*genai.Part{part}})
}

// resultOf returns a JSON object as it is, and any other result under the key that the API names.
func resultOf(content string) map[string]any {
	var object map[string]any
	if json.Unmarshal([]byte(content), &object) == nil && object != nil {
		return object
	}
	return map[string]any{"output": content}
}

func newReply(r *genai.GenerateContentResponse) (*hosted.Reply, error) {
	if len(r.Candidates) == 0 {
		message := "the answer has no candidates"
		if r.PromptFeedback != nil {
			message = fmt.Sprintf("the prompt was blocked: %s %s", r.PromptFeedback.BlockReason,
				r.PromptFeedback.BlockReasonMessage)
			return nil, &hosted.Failure{Status: http.StatusBadRequest, Message: message}
		}
		return nil, &hosted.Failure{Status: http.StatusOK, Message: message, Torn: true}
	}
	candidate := r.Candidates[0]
	reply := &hosted.Reply{ID: r.ResponseID, Message: art.Message{Role: art.RoleAssistant}}
	if candidate.Content != nil {
		for _, part := range candidate.Content.Parts {
			if err := addPart(&reply.Message, part); err != nil {
				return nil, &hosted.Failure{Status: http.StatusOK, Message: err.Error(), Torn: true}
			}
		}
	}
	reply.Finish = finish(candidate.FinishReason, len(reply.Message.ToolCalls) > 0)
	if u := r.UsageMetadata; u != nil && u.PromptTokenCount > 0 {
		reply.Usage = &art.Usage{
			PromptTokens: int(u.PromptTokenCount + u.ToolUsePromptTokenCount), CachedTokens: int(u.CachedContentTokenCount),
			CompletionTokens: int(u.CandidatesTokenCount + u.ThoughtsTokenCount),
		}
	}
	return reply, nil
}

func addPart(m *art.Message, part *genai.Part) error {
	switch {
	case part.FunctionCall != nil:
		arguments, err := json.Marshal(part.FunctionCall.Args)
		if part.FunctionCall.Args == nil {
			arguments = []byte("{}")
		}
		if err != nil {
			return err
		}
		call := art.ToolCall{ID: part.FunctionCall.ID, Name: part.FunctionCall.Name, Arguments: string(arguments)}
		m.ToolCalls = append(m.ToolCalls, withSignature(call, part.ThoughtSignature))
	case part.Thought:
		m.Reasoning += part.Text
	default:
		m.Content += part.Text
	}
	return nil
}

// finish returns art's name of a reason to stop. Others keep Google's.
func finish(reason genai.FinishReason, calls bool) string {
	switch {
	case reason == genai.FinishReasonMaxTokens:
		return art.FinishLength
	case reason == genai.FinishReasonStop && calls:
		return art.FinishToolCalls
	case reason == genai.FinishReasonStop, reason == "":
		return art.FinishStop
	}
	return string(reason)
}

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
