// Command adk trains an agent that is written with Google's Agent Development Kit. The model is reached in process: see
// the package llm, which any agent of ADK can use.
package main

import (
	"context"
	"errors"
	"strings"

	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/agent/llmagent"
	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/runner"
	"google.golang.org/adk/v2/session"
	"google.golang.org/adk/v2/tool"
	"google.golang.org/adk/v2/tool/functiontool"
	"google.golang.org/genai"

	"github.com/goart-dev/art/examples/frameworks"
	"github.com/goart-dev/art/examples/frameworks/adk/llm"
)

func main() { frameworks.Main(example()) }

func example() *frameworks.Example {
	return &frameworks.Example{Name: "adk", Play: frameworks.InProcess(answer)}
}

// answer runs the agent in a session of its own.
func answer(ctx context.Context, e *frameworks.Env) (string, error) {
	clerk, err := newAgent(llm.New(e.Model, e.Chat), e.Desk)
	if err != nil {
		return "", err
	}
	r, err := runner.New(runner.Config{
		AppName: "desk", Agent: clerk, SessionService: session.InMemoryService(), AutoCreateSession: true,
	})
	if err != nil {
		return "", err
	}
	var answer strings.Builder
	turns := 0
	task := genai.NewContentFromText(e.Task, genai.RoleUser)
	for event, err := range r.Run(ctx, "user", "session", task, agent.RunConfig{}) {
		if err != nil {
			return "", err
		}
		if event.Content == nil || event.Content.Role != genai.RoleModel {
			continue
		}
		if turns++; event.IsFinalResponse() {
			for _, p := range event.Content.Parts {
				answer.WriteString(p.Text)
			}
		} else if turns == frameworks.MaxTurns {
			return "", errors.New("too many turns")
		}
	}
	return answer.String(), nil
}

func newAgent(m model.LLM, desk *frameworks.Desk) (agent.Agent, error) {
	find, errFind := functiontool.New(
		functiontool.Config{Name: frameworks.FindOrder, Description: frameworks.FindOrderAbout},
		func(_ agent.Context, args frameworks.CustomerArgs) (string, error) {
			return desk.FindOrder(args.Customer)
		})
	status, errStatus := functiontool.New(
		functiontool.Config{Name: frameworks.OrderStatus, Description: frameworks.OrderStatusAbout},
		func(_ agent.Context, args frameworks.OrderArgs) (string, error) { return desk.OrderStatus(args.Order) })
	cancel, errCancel := functiontool.New(
		functiontool.Config{Name: frameworks.CancelOrder, Description: frameworks.CancelOrderAbout},
		func(_ agent.Context, args frameworks.OrderArgs) (string, error) { return desk.CancelOrder(args.Order) })
	if err := errors.Join(errFind, errStatus, errCancel); err != nil {
		return nil, err
	}
	return llmagent.New(llmagent.Config{
		Name: "clerk", Model: m, Instruction: frameworks.System, Tools: []tool.Tool{find, status, cancel},
	})
}
