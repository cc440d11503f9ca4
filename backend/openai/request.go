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
)

// Complete implements [hosted.Service].
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

// Models implements [hosted.Service].
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
