package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/hosted"
	"github.com/goart-dev/art/internal/wire"
)

func (s *service) Complete(ctx context.Context, model string, req *art.ChatRequest) (*hosted.Reply, error) {
	if s.Own && (req.Settings.TopK > 0 || len(req.TemplateArgs) > 0) {
		err := fmt.Errorf("%w: OpenAI has neither TopK nor TemplateArgs", art.ErrUnsupported)
		return nil, &art.Error{Op: "complete", Err: err, Hint: "leave them out of the ChatOptions"}
	}
	if err := s.check(req.Settings); err != nil {
		return nil, err
	}
	body, err := s.body(newRequest(model, req, s.Own))
	if err != nil {
		return nil, &art.Error{Op: "complete", Err: fmt.Errorf("%w: %w", art.ErrInvalid, err)}
	}
	answer, header, err := s.send(ctx, http.MethodPost, "chat/completions", body)
	if err != nil {
		return nil, err
	}
	return parse(answer, header, req)
}

// check refuses settings that the server does not have, or whose answer is not read.
func (s *service) check(settings art.Sampling) error {
	supported := []string{"PresencePenalty", "FrequencyPenalty", "LogitBias", "ToolChoice"}
	f := settings.ResponseFormat
	if !s.Own || f == nil || f.Type != art.FormatRegex && f.Type != art.FormatChoice {
		supported = append(supported, "ResponseFormat")
	}
	if s.Own {
		return hosted.CheckSettings("OpenAI", settings, supported...)
	}
	supported = append(supported, "MinP", "RepetitionPenalty", "MinTokens", "StopTokenIDs", "AllowedTokenIDs", "BadWords",
		"IgnoreEOS")
	return hosted.CheckSettings("backend/openai", settings, supported...)
}

func (s *service) Models(ctx context.Context) ([]string, error) {
	answer, _, err := s.send(ctx, http.MethodGet, "models", nil)
	if err != nil {
		return nil, err
	}
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if err := json.Unmarshal(answer, &list); err != nil {
		return nil, err
	}
	var names []string
	for _, m := range list.Data {
		names = append(names, m.ID)
	}
	return names, nil
}

// body encodes a request, with the extra fields of the options.
func (s *service) body(r *request) ([]byte, error) {
	data, err := json.Marshal(r)
	if err != nil || len(s.Extra) == 0 {
		return data, err
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil {
		return nil, err
	}
	maps.Copy(fields, s.Extra)
	maps.DeleteFunc(fields, func(_ string, value json.RawMessage) bool { return string(value) == "null" })
	return json.Marshal(fields)
}

// send sends a request and returns the body of a successful answer.
func (s *service) send(ctx context.Context, method, path string, body []byte) ([]byte, http.Header, error) {
	req, err := http.NewRequestWithContext(ctx, method, s.BaseURL.JoinPath(path).String(), bytes.NewReader(body))
	if err != nil {
		return nil, nil, err
	}
	req.Header = s.Headers.Clone()
	if req.Header == nil {
		req.Header = http.Header{}
	}
	req.Header.Set("Accept", "application/json")
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if s.Key != "" {
		req.Header.Set("Authorization", "Bearer "+s.Key)
	}
	response, err := s.Client.Do(req)
	if err != nil {
		return nil, nil, err
	}
	defer response.Body.Close()
	return read(response)
}

// outgoing returns messages as they are sent. An assistant's lose the fields that servers return and do not accept.
func outgoing(messages []art.Message, own bool) []art.Message {
	out := make([]art.Message, len(messages))
	for i, m := range messages {
		if m.Role == art.RoleAssistant {
			m = art.Message{
				Role: m.Role, Content: m.Content, Reasoning: m.Reasoning, ToolCalls: m.ToolCalls, Name: m.Name,
			}
			if own {
				m.Reasoning = ""
			}
		}
		out[i] = m
	}
	return out
}

// request is the body of a chat completions request. Its seed is signed, as OpenAI's is.
type request struct {
	wire.ChatRequest
	Seed int64 `json:"seed"`
}

// response is the body of an answer. Messages are decoded leniently, in a second step.
type response struct {
	ID             string           `json:"id"`
	Choices        []responseChoice `json:"choices"`
	Usage          *wire.Usage      `json:"usage"`
	PromptTokenIDs []int32          `json:"prompt_token_ids"` // vLLM's
	Error          json.RawMessage  `json:"error"`            // OpenRouter's, with status 200
}

type responseChoice struct {
	Message      json.RawMessage `json:"message"`
	FinishReason string          `json:"finish_reason"`
	Logprobs     *wire.Logprobs  `json:"logprobs"`
	TokenIDs     []int32         `json:"token_ids"` // vLLM's
	Error        json.RawMessage `json:"error"`     // OpenRouter's
}

// newRequest converts a request. own is set for OpenAI itself.
func newRequest(model string, req *art.ChatRequest, own bool) *request {
	s := req.Settings
	settings := wire.ChatSettings{
		Model: model, Temperature: &s.Temperature, TopP: &s.TopP, Stop: s.Stop, ChatTemplateKwargs: req.TemplateArgs,
	}
	limit := &settings.MaxTokens
	if own {
		limit = &settings.MaxCompletionTokens
		settings.Temperature, settings.TopP = unless(1, s.Temperature), unless(1, s.TopP)
	}
	if s.MaxTokens > 0 {
		*limit = &s.MaxTokens
	}
	if s.TopK > 0 {
		settings.TopK = &s.TopK
	}
	settings.StopTokenIDs, settings.LogitBias, settings.MinTokens = s.StopTokenIDs, s.LogitBias, unless(0, s.MinTokens)
	settings.AllowedTokenIDs, settings.BadWords, settings.IgnoreEOS = s.AllowedTokenIDs, s.BadWords, s.IgnoreEOS
	settings.MinP, settings.RepetitionPenalty = unless(0, s.MinP), unless(0, s.RepetitionPenalty)
	settings.PresencePenalty, settings.FrequencyPenalty = unless(0, s.PresencePenalty), unless(0, s.FrequencyPenalty)
	settings.SetFormat(s.ResponseFormat)
	settings.ToolChoice = wire.NewToolChoice(s.ToolChoice)
	chat := wire.ChatRequest{Messages: outgoing(req.Messages, own), Tools: req.Tools, ChatSettings: settings}
	return &request{ChatRequest: chat, Seed: int64(s.Seed)}
}

// unless returns nil for a value: 1 is a default of OpenAI's API, and 0 is off.
func unless[T int | float64](value, x T) *T {
	if x == value {
		return nil
	}
	return &x
}

// usage converts token counts; nil when the server did not count.
func (r *response) usage() *art.Usage {
	u := r.Usage
	if u == nil || u.PromptTokens <= 0 || u.CompletionTokens < 0 {
		return nil
	}
	return &art.Usage{
		PromptTokens: u.PromptTokens, CachedTokens: u.PromptTokensDetails.CachedTokens, CompletionTokens: u.CompletionTokens,
	}
}
