package hosted

import (
	"context"
	"net/http"
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
	for _, code := range contextCodes {
		if f.Code == code {
			return true
		}
	}
	text := strings.ToLower(f.Message)
	for _, phrase := range contextPhrases {
		if strings.Contains(text, phrase) {
			return true
		}
	}
	return false
}
