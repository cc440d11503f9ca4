// Package anthropic is the backend of Anthropic's models, over its Go SDK. It answers and logs, for judges and
// prompted baselines:
//
//	backend, err := anthropic.Open(ctx, &anthropic.Options{MaxSpend: 5})
//	model := art.NewModel("judge", &art.ModelOptions{Base: "claude-sonnet-4-5", Frozen: true})
//	err = model.Register(ctx, backend)
//
// Package hosted describes what is sent again, how costs are counted, and what the errors are.
//
// # Requests
//
// System and developer messages, wherever they are, become the system prompt. A reply without MaxTokens gets at most
// 8192, as the API needs a number. Temperature and TopP are sent when they are not 1; the API takes
// temperatures up to 1, and its newer models only one of the two. There is no seed: replies are not reproducible.
// The thinking of a reply is its Reasoning, and is not sent back. Messages with images, arguments of calls that are
// not a JSON object, and TemplateArgs are errors.
package anthropic

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/hosted"
)

const (
	defaultURL       = "https://api.anthropic.com"
	defaultMaxTokens = 8192
)

// Options are those of all backends of hosted models.
type Options = hosted.Options

// Open prepares the connection; nothing is sent before the first call. opts may be nil.
//
// BaseURL has no version: its default is the environment variable ANTHROPIC_BASE_URL, and then
// https://api.anthropic.com. The default of Key is ANTHROPIC_API_KEY at these two, and that of Prices [DefaultPrices]
// at the latter; other hosts have none.
func Open(_ context.Context, opts *Options) (*hosted.Backend, error) {
	about := hosted.About{
		Name: "anthropic", BaseURL: defaultURL, URLVariable: "ANTHROPIC_BASE_URL", Prices: DefaultPrices(),
		KeyVariables: map[string]string{"api.anthropic.com": "ANTHROPIC_API_KEY"},
	}
	return hosted.New(about, opts, func(c *hosted.Connection) (hosted.Service, error) {
		return &service{sdk.NewClient(clientOptions(c)...)}, nil
	})
}

// clientOptions describe a connection to the SDK. It reads no environment, does not repeat requests and has no
// time-out: package hosted does all that.
func clientOptions(c *hosted.Connection) []option.RequestOption {
	opts := []option.RequestOption{
		option.WithoutEnvironmentDefaults(), option.WithBaseURL(c.BaseURL.String() + "/"), option.WithHTTPClient(c.Client),
		option.WithMaxRetries(0), option.WithRequestTimeout(24 * time.Hour),
	}
	if c.Key != "" {
		opts = append(opts, option.WithAPIKey(c.Key))
	}
	for name, values := range c.Headers {
		for _, value := range values {
			opts = append(opts, option.WithHeaderAdd(name, value))
		}
	}
	for field, value := range c.Extra {
		if string(value) == "null" {
			opts = append(opts, option.WithJSONDel(field))
			continue
		}
		opts = append(opts, option.WithJSONSet(field, value))
	}
	return opts
}

type service struct{ client sdk.Client }

// Complete implements [hosted.Service].
func (s *service) Complete(ctx context.Context, model string, req *art.ChatRequest) (*hosted.Reply, error) {
	params, err := newParams(model, req)
	if err != nil {
		return nil, err
	}
	message, err := s.client.Messages.New(ctx, *params)
	if err != nil {
		return nil, failure(err)
	}
	return newReply(message), nil
}

// Models implements [hosted.Service].
func (s *service) Models(ctx context.Context) ([]string, error) {
	page, err := s.client.Models.List(ctx, sdk.ModelListParams{})
	if err != nil {
		return nil, failure(err)
	}
	var names []string
	for _, m := range page.Data {
		names = append(names, m.ID)
	}
	return names, nil
}

// failure converts an error that the API answered with.
func failure(err error) error {
	var answered *sdk.Error
	if !errors.As(err, &answered) {
		return err
	}
	var body struct {
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	f := &hosted.Failure{Status: answered.StatusCode, Code: string(answered.Type()), Header: http.Header{}}
	if answered.Response != nil {
		f.Header = answered.Response.Header
	}
	if f.Message = answered.RawJSON(); json.Unmarshal([]byte(f.Message), &body) == nil && body.Error.Message != "" {
		f.Message = body.Error.Message
	}
	return f
}

// DefaultPrices returns list prices of Anthropic's models in US dollars, of late 2025, for prompts of up to 200,000
// tokens. Prices change: hand in your own where money matters.
func DefaultPrices() hosted.Prices {
	return hosted.Prices{
		"claude-opus-4-5":   {Prompt: 5, CachedPrompt: 0.5, Completion: 25},
		"claude-opus-4-1":   {Prompt: 15, CachedPrompt: 1.5, Completion: 75},
		"claude-sonnet-4-5": {Prompt: 3, CachedPrompt: 0.3, Completion: 15},
		"claude-haiku-4-5":  {Prompt: 1, CachedPrompt: 0.1, Completion: 5},
	}
}
