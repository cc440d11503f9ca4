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
	"context"
	"encoding/json"
	"errors"
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

// RoundTrip implements [http.RoundTripper].
func (k keepHeaders) RoundTrip(req *http.Request) (*http.Response, error) {
	response, err := k.next.RoundTrip(req)
	if to, ok := req.Context().Value(headersKey{}).(*http.Header); ok && err == nil {
		*to = response.Header
	}
	return response, err
}

type service struct {
	client *genai.Client
	extra  map[string]json.RawMessage // fields of Options.Extra
}

// Complete implements [hosted.Service].
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

// Models implements [hosted.Service].
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
