package openai

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/goart-dev/art/backend/hosted"
)

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
