// Command eino trains an agent that is a graph of eino: a node that asks the model, a node that calls tools, and a
// branch between them.
package main

import (
	"context"
	"errors"

	"github.com/cloudwego/eino-ext/components/model/openai"
	"github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/components/tool/utils"
	"github.com/cloudwego/eino/compose"
	"github.com/cloudwego/eino/schema"

	"github.com/goart-dev/art/examples/frameworks"
)

func main() { frameworks.Main(example()) }

func example() *frameworks.Example {
	return &frameworks.Example{Name: "eino", Play: frameworks.InProcess(answer)}
}

func answer(ctx context.Context, e *frameworks.Env) (string, error) {
	graph, err := newGraph(ctx, e)
	if err != nil {
		return "", err
	}
	reply, err := graph.Invoke(ctx, []*schema.Message{schema.SystemMessage(frameworks.System), schema.UserMessage(e.Task)})
	if err != nil {
		return "", err
	}
	return reply.Content, nil
}

func newTools(desk *frameworks.Desk) ([]tool.BaseTool, []*schema.ToolInfo, error) {
	find, errFind := utils.InferTool(frameworks.FindOrder, frameworks.FindOrderAbout,
		func(_ context.Context, args frameworks.CustomerArgs) (string, error) {
			return desk.FindOrder(args.Customer)
		})
	status, errStatus := utils.InferTool(frameworks.OrderStatus, frameworks.OrderStatusAbout,
		func(_ context.Context, args frameworks.OrderArgs) (string, error) {
			return desk.OrderStatus(args.Order)
		})
	cancel, errCancel := utils.InferTool(frameworks.CancelOrder, frameworks.CancelOrderAbout,
		func(_ context.Context, args frameworks.OrderArgs) (string, error) {
			return desk.CancelOrder(args.Order)
		})
	if err := errors.Join(errFind, errStatus, errCancel); err != nil {
		return nil, nil, err
	}
	var infos []*schema.ToolInfo
	list := []tool.BaseTool{find, status, cancel}
	for _, t := range list {
		info, err := t.Info(context.Background())
		if err != nil {
			return nil, nil, err
		}
		infos = append(infos, info)
	}
	return list, infos, nil
}

func newGraph(ctx context.Context, e *frameworks.Env) (compose.Runnable[[]*schema.Message, *schema.Message], error) {
	tools, infos, err := newTools(e.Desk)
	if err != nil {
		return nil, err
	}
	chat, err := openai.NewChatModel(ctx, &openai.ChatModelConfig{
		Model: "gpt-5.4-mini", APIKey: "none", HTTPClient: e.Client,
	})
	if err != nil {
		return nil, err
	}
	withTools, err := chat.WithTools(infos)
	if err != nil {
		return nil, err
	}
	toolsNode, err := compose.NewToolNode(ctx, &compose.ToolsNodeConfig{Tools: tools})
	if err != nil {
		return nil, err
	}
	g := compose.NewGraph[[]*schema.Message, *schema.Message](
		compose.WithGenLocalState(func(context.Context) *conversation { return &conversation{} }))
	for _, add := range []func() error{
		func() error { return g.AddChatModelNode("model", withTools, compose.WithStatePreHandler(remember)) },
		func() error { return g.AddToolsNode("tools", toolsNode, compose.WithStatePreHandler(rememberReply)) },
		func() error { return g.AddEdge(compose.START, "model") },
		func() error { return g.AddBranch("model", compose.NewGraphBranch(next, ends)) },
		func() error { return g.AddEdge("tools", "model") },
	} {
		if err := add(); err != nil {
			return nil, err
		}
	}
	return g.Compile(ctx, compose.WithMaxRunSteps(2*frameworks.MaxTurns))
}

type conversation struct{ messages []*schema.Message }

// remember adds what is new to the conversation, and hands all of it to the model.
func remember(_ context.Context, added []*schema.Message, c *conversation) ([]*schema.Message, error) {
	c.messages = append(c.messages, added...)
	return c.messages, nil
}

func rememberReply(_ context.Context, reply *schema.Message, c *conversation) (*schema.Message, error) {
	c.messages = append(c.messages, reply)
	return reply, nil
}

// ends are where the branch may go.
var ends = map[string]bool{"tools": true, compose.END: true}

func next(_ context.Context, reply *schema.Message) (string, error) {
	if len(reply.ToolCalls) > 0 {
		return "tools", nil
	}
	return compose.END, nil
}
