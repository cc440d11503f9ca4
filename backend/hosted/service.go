package hosted

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/goart-dev/art"
)

// Service sends requests to one kind of API. It is safe for concurrent use.
type Service interface {
	// Complete sends one request for the model that the service knows by this name, once: [Backend] repeats it when
	// that may help. The error is a [*Failure] when the service answered.
	Complete(ctx context.Context, model string, req *art.ChatRequest) (*Reply, error)
	// Models returns the names of the models that the service has.
	Models(ctx context.Context) ([]string, error)
}

// TokenCounter is a [Service] that knows the encodings and contexts of some of its models.
type TokenCounter interface {
	// CountPrompt returns a lower bound of the tokens of a prompt. ok is false when the encoding is not known.
	CountPrompt(model string, req *art.ChatRequest) (tokens int, ok bool)
	// ContextLength returns the context of a model, 0 when it is not known.
	ContextLength(model string) int
}

// Reply is what a service answered.
type Reply struct {
	ID      string
	Message art.Message
	Finish  string
	Usage   *art.Usage // nil when the service did not count
}

// Failure is an error that a service answered with.
type Failure struct {
	Status  int // of HTTP; 200 for an answer that cannot be read
	Message string
	Code    string // the service's own, such as "model_not_found" or an error type; may be empty
	Header  http.Header
	// Torn is set for an answer that is not whole, so that another attempt may help.
	Torn bool
}

// Error returns the message of the service.
func (f *Failure) Error() string { return f.Message }

// contextCodes and contextPhrases are how services say that a prompt is too long. The first is OpenAI's and
// llama.cpp's machine-readable code. The phrases are, in order, those of OpenAI, vLLM and OpenRouter; vLLM, of
// prompts; vLLM, of inputs; llama.cpp, and Ollama, which quotes it; Ollama; Ollama; Anthropic; Anthropic with
// max_tokens; Gemini.
var (
	contextCodes   = []string{"context_length_exceeded", "exceed_context_size_error"}
	contextPhrases = []string{
		"maximum context length", "longer than the maximum model length", "exceeds model's maximum",
		"exceeds the available context size", "exceeds the context length", "exceeded max context length",
		"prompt is too long", "exceed context limit", "input token count",
	}
)

// tooLong reports whether the service refused a prompt for its length.
func (f *Failure) tooLong() bool {
	text := strings.ToLower(f.Message)
	return slices.Contains(contextCodes, f.Code) ||
		slices.ContainsFunc(contextPhrases, func(phrase string) bool { return strings.Contains(text, phrase) })
}

// CheckSettings returns an [art.ErrUnsupported] that names the settings, of those that are off by default, that are on
// and not among supported: for a [Service] that has no place for them. Names are those of [art.Sampling]. Temperature,
// TopP, TopK, MaxTokens, Stop and Seed are not checked.
func CheckSettings(service string, s art.Sampling, supported ...string) error {
	var on []string
	for _, setting := range []struct {
		name string
		on   bool
	}{
		{"MinP", s.MinP > 0},
		{"RepetitionPenalty", s.RepetitionPenalty != 0 && s.RepetitionPenalty != 1},
		{"PresencePenalty", s.PresencePenalty != 0},
		{"FrequencyPenalty", s.FrequencyPenalty != 0},
		{"LogitBias", len(s.LogitBias) > 0},
		{"MinTokens", s.MinTokens > 0},
		{"StopTokenIDs", len(s.StopTokenIDs) > 0},
		{"AllowedTokenIDs", s.AllowedTokenIDs != nil},
		{"BadWords", len(s.BadWords) > 0},
		{"IgnoreEOS", s.IgnoreEOS},
		{"TopLogprobs", s.TopLogprobs > 0},
		{"PromptLogprobs", s.PromptLogprobs != nil},
		{"ResponseFormat", s.ResponseFormat != nil},
		{"ToolChoice", s.ToolChoice != nil},
	} {
		if setting.on && !slices.Contains(supported, setting.name) {
			on = append(on, setting.name)
		}
	}
	if len(on) == 0 {
		return nil
	}
	err := fmt.Errorf("%w: %s has no %s", art.ErrUnsupported, service, strings.Join(on, ", "))
	return &art.Error{Op: "complete", Err: err, Hint: "leave them out of the ChatOptions"}
}

// TextOnly returns an [art.ErrUnsupported] when a message has parts that are not text, such as images: for a
// [Service] that sends only the texts.
func TextOnly(messages []art.Message) error {
	for i := range messages {
		data, err := json.Marshal(messages[i])
		if err != nil {
			return err
		}
		var read struct {
			Content json.RawMessage `json:"content"`
		}
		var parts []struct {
			Type string `json:"type"`
		}
		if json.Unmarshal(data, &read) != nil || json.Unmarshal(read.Content, &parts) != nil {
			continue // a string, or null
		}
		for _, part := range parts {
			if part.Type != "text" {
				err := fmt.Errorf("%w: messages[%d] has a part of type %q", art.ErrUnsupported, i, part.Type)
				return &art.Error{Op: "complete", Err: err, Hint: "send texts, or use backend/openai"}
			}
		}
	}
	return nil
}

const (
	// bytesPerToken estimates the tokens of a text, in English about 4.
	bytesPerToken = 4
	// maxBytesPerToken is the length of a token that few texts reach on average, in any encoding.
	maxBytesPerToken = 16
)

// checkContext refuses a prompt that certainly is too long.
func (b *Backend) checkContext(c *call) error {
	counter, _ := b.service.(TokenCounter)
	limit := b.opts.ContextLength
	if limit == 0 && counter != nil {
		limit = counter.ContextLength(c.base)
	}
	size := requestBytes(c.req)
	if limit == 0 || size < limit { // a token has a byte at least
		return nil
	}
	tokens, known := 0, false
	if counter != nil {
		tokens, known = counter.CountPrompt(c.base, c.req)
	}
	if !known {
		tokens = size / maxBytesPerToken
	}
	if tokens < limit {
		return nil
	}
	err := fmt.Errorf("%w: the prompt has %d tokens or more, and the context of %q is %d", art.ErrContextLength, tokens,
		c.base, limit)
	return &art.Error{Op: "complete", Err: err, Hint: "send fewer or shorter messages"}
}

// requestBytes is the length of the texts that a prompt is made of.
func requestBytes(req *art.ChatRequest) int {
	n := 0
	for i := range req.Messages {
		m := &req.Messages[i]
		n += len(m.Content) + len(m.Name)
		for _, call := range m.ToolCalls {
			n += len(call.Name) + len(call.Arguments)
		}
	}
	for i := range req.Tools {
		n += len(req.Tools[i].Name) + len(req.Tools[i].Description) + len(req.Tools[i].Parameters)
	}
	return n
}
