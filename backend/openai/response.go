package openai

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"

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
	reply := &hosted.Reply{
		ID: r.ID, Message: message, Finish: cmp.Or(choice.FinishReason, art.FinishStop), Usage: r.usage(),
	}
	if len(message.ToolCalls) > 0 && reply.Finish == art.FinishStop { // some servers say "stop" for tool calls too
		reply.Finish = art.FinishToolCalls
	}
	reply.Message.Sample = r.sample(req.Settings, reply.Finish)
	return reply, nil
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
	if s.Reshapes() || len(r.PromptTokenIDs) == 0 || len(choice.TokenIDs) == 0 || choice.Logprobs == nil ||
		len(choice.Logprobs.Content) != len(choice.TokenIDs) {
		return nil
	}
	var logprobs []float32
	for _, token := range choice.Logprobs.Content {
		if !(token.Logprob > minLogprob) {
			return nil
		}
		logprobs = append(logprobs, token.Logprob)
	}
	return &art.Sample{
		PromptIDs: r.PromptTokenIDs, IDs: choice.TokenIDs, Logprobs: logprobs, Settings: s, Finish: finish,
	}
}

// problem is the error object of OpenAI, vLLM, OpenRouter and llama.cpp.
type problem struct {
	Message  string          `json:"message"`
	Type     string          `json:"type"`
	Code     json.RawMessage `json:"code"` // a string, the HTTP status, or null
	Metadata struct {
		Raw json.RawMessage `json:"raw"` // OpenRouter's: what the provider behind it answered
	} `json:"metadata"`
}

// failure reads the body of an error:
//
//	{"error": {"message", "type", "code"}}       OpenAI, vLLM, OpenRouter, llama.cpp, Ollama
//	{"error": "message"}                         vLLM without a key, Ollama
//	{"message", "type", "code"}                  older vLLM
//	{"detail": "message"}                        FastAPI
//
// Any other text is the message itself. With status 200 the code is the status.
func failure(status int, header http.Header, body []byte) error {
	var read struct {
		Error  json.RawMessage `json:"error"`
		Detail json.RawMessage `json:"detail"`
		problem
	}
	f := &hosted.Failure{Status: status, Header: header}
	if json.Unmarshal(body, &read) != nil {
		f.Message = string(bytes.TrimSpace(body))
		return f
	}
	p := read.problem
	if present(read.Error) && json.Unmarshal(read.Error, &p) != nil {
		p = problem{Message: text(read.Error)}
	}
	f.Message = cmp.Or(p.Message, text(read.Detail), string(bytes.TrimSpace(body)))
	if raw := text(p.Metadata.Raw); raw != "" {
		f.Message += ": " + raw
	}
	code := text(p.Code)
	number, err := strconv.Atoi(code)
	if err == nil || code == "" {
		code = p.Type
	}
	f.Code = code
	if status == http.StatusOK {
		f.Status = http.StatusBadGateway
		if number >= 400 && number < 600 {
			f.Status = number
		}
	}
	return f
}

// text returns a JSON string, and the JSON itself of other values; "" for null.
func text(raw json.RawMessage) string {
	var s *string
	if json.Unmarshal(raw, &s) == nil {
		if s == nil {
			return ""
		}
		return *s
	}
	return string(raw)
}
