package openai

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/hosted"
)

// read returns the body of an answer, and a [*hosted.Failure] unless it is a success in JSON, which some servers and
// proxies send as another type.
func read(response *http.Response) ([]byte, http.Header, error) {
	body, err := io.ReadAll(response.Body)
	switch {
	case response.StatusCode >= 300:
		return nil, nil, failure(response.StatusCode, response.Header, body) // also of a part of the body
	case err != nil:
		return nil, nil, err
	}
	if !json.Valid(body) {
		message := fmt.Sprintf("the answer, of type %q, is not JSON: %.200s", response.Header.Get("Content-Type"), body)
		torn := bytes.HasPrefix(bytes.TrimSpace(body), []byte("{"))
		return nil, nil, &hosted.Failure{Status: http.StatusOK, Message: message, Header: response.Header, Torn: torn}
	}
	return body, response.Header, nil
}

// parse converts an answer.
func parse(body []byte, header http.Header, req *art.ChatRequest) (*hosted.Reply, error) {
	torn := func(format string, args ...any) error {
		message := fmt.Sprintf(format, args...)
		return &hosted.Failure{Status: http.StatusOK, Message: message, Header: header, Torn: true}
	}
	var r response
	if err := json.Unmarshal(body, &r); err != nil {
		return nil, torn("the answer is not a chat completion: %v", err)
	}
	if present(r.Error) {
		return nil, failure(http.StatusOK, header, body)
	}
	if len(r.Choices) == 0 {
		return nil, torn("the answer has no choices")
	}
	choice := &r.Choices[0]
	if present(choice.Error) {
		return nil, failure(http.StatusOK, header, fmt.Appendf(nil, `{"error":%s}`, choice.Error))
	}
	message, err := decodeMessage(choice.Message)
	if err != nil {
		return nil, torn("the message of the answer cannot be read: %v", err)
	}
	reply := &hosted.Reply{ID: r.ID, Message: message, Finish: finish(choice.FinishReason, &message), Usage: r.usage()}
	reply.Message.Sample = r.sample(req.Settings, reply.Finish)
	return reply, nil
}

// finish returns why a reply ended. Some servers say "stop" for tool calls too.
func finish(reason string, m *art.Message) string {
	if len(m.ToolCalls) > 0 && (reason == "" || reason == art.FinishStop) {
		return art.FinishToolCalls
	}
	return cmp.Or(reason, art.FinishStop)
}

// decodeMessage reads a message, with the role and the reasoning where servers write them differently.
func decodeMessage(raw json.RawMessage) (art.Message, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		return art.Message{}, err
	}
	if !present(fields["role"]) {
		fields["role"] = json.RawMessage(`"assistant"`)
		raw, _ = json.Marshal(fields) // was decoded from JSON
	}
	var m art.Message
	if err := json.Unmarshal(raw, &m); err != nil {
		return art.Message{}, err
	}
	if m.Reasoning == "" && present(fields["reasoning"]) {
		_ = json.Unmarshal(fields["reasoning"], &m.Reasoning) // other types than text are not read
	}
	return m, nil
}

// present reports whether a field is there, and not null.
func present(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

// minLogprob is what servers write for a logprob that JSON cannot represent.
const minLogprob = -9999

// sample returns the tokens of the reply if the answer has them, and their logprobs are those of the distribution
// that was sampled from.
func (r *response) sample(s art.Sampling, finish string) *art.Sample {
	choice := &r.Choices[0]
	logprobs := choice.logprobs()
	if s.Reshapes() || len(r.PromptTokenIDs) == 0 || len(choice.TokenIDs) == 0 ||
		len(logprobs) != len(choice.TokenIDs) {
		return nil
	}
	for _, x := range logprobs {
		if !(x > minLogprob) {
			return nil
		}
	}
	return &art.Sample{
		PromptIDs: r.PromptTokenIDs, IDs: choice.TokenIDs, Logprobs: logprobs, Settings: s, Finish: finish,
	}
}
