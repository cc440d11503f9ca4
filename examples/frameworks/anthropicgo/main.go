// Command anthropicgo trains an agent that is written with Anthropic's client, anthropic-sdk-go, and a loop of its own.
package main

import (
	"context"
	"errors"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"github.com/goart-dev/art/examples/frameworks"
)

func main() { frameworks.Main(example()) }

func example() *frameworks.Example {
	return &frameworks.Example{Name: "anthropic-sdk-go", Play: frameworks.InProcess(answer)}
}

// answer is the agent: it calls tools until the model answers.
func answer(ctx context.Context, e *frameworks.Env) (string, error) {
	client := anthropic.NewClient(option.WithHTTPClient(e.Client), option.WithAPIKey("none"), option.WithMaxRetries(0))
	params := anthropic.MessageNewParams{
		Model: "claude-sonnet-4-6", MaxTokens: 64,
		System:   []anthropic.TextBlockParam{{Text: frameworks.System}},
		Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock(e.Task))},
		Tools: []anthropic.ToolUnionParam{
			tool(frameworks.FindOrder, frameworks.FindOrderAbout, "customer"),
			tool(frameworks.OrderStatus, frameworks.OrderStatusAbout, "order"),
			tool(frameworks.CancelOrder, frameworks.CancelOrderAbout, "order"),
		},
	}
	for range frameworks.MaxTurns {
		message, err := client.Messages.New(ctx, params)
		if err != nil {
			return "", err
		}
		text, results, err := carryOut(e.Desk, message.Content)
		if err != nil || len(results) == 0 {
			return text, err
		}
		params.Messages = append(params.Messages, message.ToParam(), anthropic.NewUserMessage(results...))
	}
	return "", errors.New("too many turns")
}

// carryOut calls the tools of a reply, and returns its text and their results.
func carryOut(desk *frameworks.Desk, content []anthropic.ContentBlockUnion) (
	text string, results []anthropic.ContentBlockParamUnion, err error,
) {
	for _, block := range content {
		switch block.Type {
		case "text":
			text += block.Text
		case "tool_use":
			result, err := desk.CallJSON(block.Name, block.Input)
			if err != nil {
				return "", nil, err
			}
			results = append(results, anthropic.NewToolResultBlock(block.ID, result, false))
		}
	}
	return text, results, nil
}

func tool(name, about, parameter string) anthropic.ToolUnionParam {
	return anthropic.ToolUnionParam{OfTool: &anthropic.ToolParam{
		Name: name, Description: anthropic.String(about), InputSchema: anthropic.ToolInputSchemaParam{
			Properties: map[string]any{parameter: map[string]any{"type": "string"}}, Required: []string{parameter},
		},
	}}
}
