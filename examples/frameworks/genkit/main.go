// Command genkit trains an agent that is written with Firebase Genkit, over its plugin for OpenAI's API.
package main

import (
	"context"
	"net/http"

	"github.com/firebase/genkit/go/ai"
	"github.com/firebase/genkit/go/genkit"
	"github.com/firebase/genkit/go/plugins/compat_oai"
	"github.com/openai/openai-go/option"

	"github.com/goart-dev/art/examples/frameworks"
)

func main() { frameworks.Main(example()) }

func example() *frameworks.Example {
	a := newAgent(context.Background())
	return &frameworks.Example{Name: "genkit", Play: frameworks.InProcess(a.answer)}
}

// agent is Genkit and a model, which a program sets up once.
type agent struct {
	genkit *genkit.Genkit
	model  ai.Model
}

func newAgent(ctx context.Context) *agent {
	plugin := &compat_oai.OpenAICompatible{
		Provider: "openai", APIKey: "none",
		Opts: []option.RequestOption{option.WithHTTPClient(&http.Client{Transport: perRun{}}), option.WithMaxRetries(0)},
	}
	g := genkit.Init(ctx, genkit.WithPlugins(plugin))
	return &agent{g, plugin.DefineModel("openai", "gpt-5.4-mini", ai.ModelOptions{Supports: &compat_oai.BasicText})}
}

func (a *agent) answer(ctx context.Context, e *frameworks.Env) (string, error) {
	ctx = context.WithValue(ctx, clientKey{}, e.Client)
	return genkit.GenerateText(ctx, a.genkit, ai.WithModel(a.model), ai.WithSystem(frameworks.System),
		ai.WithPrompt("%s", e.Task), ai.WithMaxTurns(frameworks.MaxTurns-1), ai.WithTools(
			ai.NewTool(frameworks.FindOrder, frameworks.FindOrderAbout,
				func(_ *ai.ToolContext, args frameworks.CustomerArgs) (string, error) {
					return e.Desk.FindOrder(args.Customer)
				}),
			ai.NewTool(frameworks.OrderStatus, frameworks.OrderStatusAbout,
				func(_ *ai.ToolContext, args frameworks.OrderArgs) (string, error) {
					return e.Desk.OrderStatus(args.Order)
				}),
			ai.NewTool(frameworks.CancelOrder, frameworks.CancelOrderAbout,
				func(_ *ai.ToolContext, args frameworks.OrderArgs) (string, error) {
					return e.Desk.CancelOrder(args.Order)
				}),
		))
}

// clientKey is the context key of the HTTP client of a run.
type clientKey struct{}

// perRun sends a request by the client of its run: Genkit has one client for all.
type perRun struct{}

func (perRun) RoundTrip(r *http.Request) (*http.Response, error) {
	return r.Context().Value(clientKey{}).(*http.Client).Transport.RoundTrip(r)
}
