// Command openaigo trains an agent that is written with OpenAI's client, openai-go, and a loop of its own.
package main

import (
	"context"
	"errors"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/goart-dev/art/examples/frameworks"
)

func main() { frameworks.Main(example()) }

func example() *frameworks.Example {
	return &frameworks.Example{Name: "openai-go", Play: frameworks.InProcess(answer)}
}

// answer is the agent: it calls tools until the model answers.
func answer(ctx context.Context, e *frameworks.Env) (string, error) {
	client := openai.NewClient(option.WithHTTPClient(e.Client), option.WithAPIKey("none"), option.WithMaxRetries(0))
	params := openai.ChatCompletionNewParams{
		Model: "gpt-5.4-mini",
		Messages: []openai.ChatCompletionMessageParamUnion{
			openai.SystemMessage(frameworks.System), openai.UserMessage(e.Task),
		},
		Tools: []openai.ChatCompletionToolUnionParam{
			tool(frameworks.FindOrder, frameworks.FindOrderAbout, "customer"),
			tool(frameworks.OrderStatus, frameworks.OrderStatusAbout, "order"),
			tool(frameworks.CancelOrder, frameworks.CancelOrderAbout, "order"),
		},
	}
	for range frameworks.MaxTurns {
		response, err := client.Chat.Completions.New(ctx, params)
		if err != nil {
			return "", err
		}
		message := response.Choices[0].Message
		if len(message.ToolCalls) == 0 {
			return message.Content, nil
		}
		params.Messages = append(params.Messages, message.ToParam())
		for _, c := range message.ToolCalls {
			result, err := e.Desk.CallJSON(c.Function.Name, []byte(c.Function.Arguments))
			if err != nil {
				return "", err
			}
			params.Messages = append(params.Messages, openai.ToolMessage(result, c.ID))
		}
	}
	return "", errors.New("too many turns")
}

func tool(name, about, parameter string) openai.ChatCompletionToolUnionParam {
	return openai.ChatCompletionFunctionTool(openai.FunctionDefinitionParam{
		Name: name, Description: openai.String(about), Parameters: openai.FunctionParameters{
			"type": "object", "required": []string{parameter},
			"properties": map[string]any{parameter: map[string]any{"type": "string"}},
		},
	})
}
