// Package gemini is the backend of Google's Gemini models, over the Gen AI Go SDK. It answers and logs, for judges
// and prompted baselines:
//
//	backend, err := gemini.Open(ctx, &gemini.Options{MaxSpend: 5})
//	model := art.NewModel("judge", &art.ModelOptions{Base: "gemini-2.5-flash", Frozen: true})
//	err = model.Register(ctx, backend)
//
// Package hosted describes what is sent again, how costs are counted, and what the errors are.
//
// # Requests
//
// System and developer messages, wherever they are, become the system instruction. Of the seed its lowest 31 bits
// are sent. Thoughts are the Reasoning of a reply, and are counted with its tokens; the signature of a thought stays
// with the call that it led to, in the field of Google's OpenAI-compatible API, and is sent back. Messages with
// images, arguments of calls that are not a JSON object, and TemplateArgs are errors.
package gemini

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"google.golang.org/genai"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/hosted"
)

// defaultURL is where the models of the Gemini API are.
const defaultURL = "https://generativelanguage.googleapis.com"

// Options are those of all backends of hosted models.
type Options = hosted.Options

// Open prepares the connection; nothing is sent before the first call. opts may be nil.
//
// BaseURL has no version: its default is the environment variable GOOGLE_GEMINI_BASE_URL, and then
// https://generativelanguage.googleapis.com. The default of Key is GEMINI_API_KEY at these two, and that of Prices
// [DefaultPrices] at the latter; other hosts have none.
func Open(ctx context.Context, opts *Options) (*hosted.Backend, error) {
	about := hosted.About{
		Name: "gemini", BaseURL: defaultURL, URLVariable: "GOOGLE_GEMINI_BASE_URL", Prices: DefaultPrices(),
		KeyVariables: map[string]string{"generativelanguage.googleapis.com": "GEMINI_API_KEY"},
	}
	return hosted.New(about, opts, func(c *hosted.Connection) (hosted.Service, error) {
		client, err := genai.NewClient(ctx, clientConfig(c))
		if err != nil {
			return nil, &art.Error{Op: "open", Err: err}
		}
		return &service{client, c.Extra}, nil
	})
}

// clientConfig describes a connection to the SDK.
func clientConfig(c *hosted.Connection) *genai.ClientConfig {
	client := *c.Client
	client.Transport = keepHeaders{client.Transport}
	key := c.Key
	if key == "" {
		key = "none" // without any, the SDK takes that of the environment, which may be for another host
	}
	return &genai.ClientConfig{
		APIKey: key, Backend: genai.BackendGeminiAPI, HTTPClient: &client,
		HTTPOptions: genai.HTTPOptions{BaseURL: c.BaseURL.String() + "/", Headers: c.Headers},
	}
}

type headersKey struct{}

// keepHeaders hands the headers of a response to the context of its request, because the SDK's errors do not have
// them.
type keepHeaders struct{ next http.RoundTripper }

func (k keepHeaders) RoundTrip(req *http.Request) (*http.Response, error) {
	response, err := k.next.RoundTrip(req)
	if to, ok := req.Context().Value(headersKey{}).(*http.Header); ok && err == nil {
		*to = response.Header
	}
	return response, err
}

// service implements [hosted.Service].
type service struct {
	client *genai.Client
	extra  map[string]json.RawMessage // fields of Options.Extra
}

func (s *service) Complete(ctx context.Context, model string, req *art.ChatRequest) (*hosted.Reply, error) {
	contents, config, err := newRequest(req)
	if err != nil {
		return nil, err
	}
	// The SDK does not write tools as they are, because it sorts the keys of their schemas, and has no extra fields.
	config.HTTPOptions = &genai.HTTPOptions{ExtrasRequestProvider: func(body map[string]any) map[string]any {
		if len(req.Tools) > 0 {
			body["tools"] = newTools(req.Tools)
		}
		for name, value := range s.extra {
			if string(value) == "null" {
				delete(body, name)
				continue
			}
			body[name] = value
		}
		return body
	}}
	header := http.Header{}
	response, err := s.client.Models.GenerateContent(context.WithValue(ctx, headersKey{}, &header), model, contents,
		config)
	if err != nil {
		return nil, failure(err, header)
	}
	return newReply(response)
}

func (s *service) Models(ctx context.Context) ([]string, error) {
	page, err := s.client.Models.List(ctx, nil)
	if err != nil {
		return nil, failure(err, nil)
	}
	var names []string
	for _, m := range page.Items {
		names = append(names, strings.TrimPrefix(m.Name, "models/"))
	}
	return names, nil
}

// failure converts an error that the API answered with. A delay in its details becomes a header.
func failure(err error, header http.Header) error {
	var answered genai.APIError
	if !errors.As(err, &answered) {
		return err
	}
	f := &hosted.Failure{Status: answered.Code, Code: answered.Status, Message: answered.Message, Header: header.Clone()}
	for _, detail := range answered.Details {
		delay, ok := detail["retryDelay"].(string) // "34s", of google.rpc.RetryInfo
		if ok && f.Header.Get("Retry-After") == "" && f.Header != nil {
			f.Header.Set("Retry-After", strings.TrimSuffix(delay, "s"))
		}
	}
	if f.Status == http.StatusBadRequest && strings.Contains(f.Message, "API key") {
		f.Status = http.StatusUnauthorized // Google answers 400 to an invalid key
	}
	return f
}

// DefaultPrices returns list prices of Gemini models in US dollars, of late 2025, for prompts of up to 200,000
// tokens. Prices change: hand in your own where money matters.
func DefaultPrices() hosted.Prices {
	return hosted.Prices{
		"gemini-2.5-pro":        {Prompt: 1.25, CachedPrompt: 0.125, Completion: 10},
		"gemini-2.5-flash":      {Prompt: 0.3, CachedPrompt: 0.03, Completion: 2.5},
		"gemini-2.5-flash-lite": {Prompt: 0.1, CachedPrompt: 0.01, Completion: 0.4},
	}
}

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
