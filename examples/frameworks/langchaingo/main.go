// Command langchaingo trains an agent of langchaingo: its agent for OpenAI's functions, and its executor.
package main

import (
	"context"

	"github.com/tmc/langchaingo/agents"
	"github.com/tmc/langchaingo/chains"
	"github.com/tmc/langchaingo/llms/openai"
	"github.com/tmc/langchaingo/tools"

	"github.com/goart-dev/art/examples/frameworks"
)

func main() { frameworks.Main(example()) }

func example() *frameworks.Example {
	return &frameworks.Example{Name: "langchaingo", Play: frameworks.InProcess(answer)}
}

func answer(ctx context.Context, e *frameworks.Env) (string, error) {
	llm, err := openai.New(openai.WithHTTPClient(e.Client), openai.WithToken("none"), openai.WithModel("gpt-5.4-mini"))
	if err != nil {
		return "", err
	}
	agent := agents.NewOpenAIFunctionsAgent(llm, []tools.Tool{
		tool{frameworks.FindOrder, frameworks.FindOrderAbout, e.Desk.FindOrder},
		tool{frameworks.OrderStatus, frameworks.OrderStatusAbout, e.Desk.OrderStatus},
		tool{frameworks.CancelOrder, frameworks.CancelOrderAbout, e.Desk.CancelOrder},
	}, agents.NewOpenAIOption().WithSystemMessage(frameworks.System))
	return chains.Run(ctx, agents.NewExecutor(agent, agents.WithMaxIterations(frameworks.MaxTurns)), e.Task)
}

// tool is a tool of langchaingo, which has one argument.
type tool struct {
	name, about string
	call        func(argument string) (string, error)
}

func (t tool) Name() string { return t.name }

func (t tool) Description() string { return t.about }

func (t tool) Call(_ context.Context, argument string) (string, error) { return t.call(argument) }
