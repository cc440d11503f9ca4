package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/examples/agents"
)

// GenerateOptions say how scenarios are generated.
type GenerateOptions struct {
	// Model writes the scenarios: the base model itself, or a hosted one.
	Model *art.Model
	// Want is the number of scenarios. Default 24.
	Want int
	// PerCall is the most scenarios of a call. Default 8.
	PerCall int
	// MaxCalls bounds the calls. Default: three times as many as are needed at best.
	MaxCalls int
	// Instructions are added to the prompt: what kind of tasks, in which language, about what data.
	Instructions string
	// FreeText asks for JSON in the text of the reply only, for services that cannot restrict replies to a schema.
	FreeText bool
	// Chat are the settings. Default: those of the model.
	Chat art.ChatOptions
	// Logger receives what was left out. nil discards.
	Logger *slog.Logger
}

// Generate has a model write scenarios for what a server offers. Answers that are no JSON, and scenarios that are
// empty, out of range or like another one, are left out and reported in the calls; each call counts. When too few are
// left, the error wraps [agents.ErrTooFew] and those that there are are returned too.
func Generate(ctx context.Context, about *Description, o *GenerateOptions) ([]Scenario, []agents.Call, error) {
	if o == nil || o.Model == nil {
		return nil, nil, invalid("generate", fmt.Errorf("GenerateOptions.Model is nil"), "give the model that writes")
	}
	offer, err := describe(about)
	if err != nil {
		return nil, nil, err
	}
	want := o.Want
	if want == 0 {
		want = 24
	}
	list, calls, err := agents.Collect(ctx, &agents.Collection[Scenario]{
		Model: o.Model, Key: "scenarios", Item: scenarioSchema, FreeText: o.FreeText,
		Want: want, PerCall: o.PerCall, MaxCalls: o.MaxCalls, Chat: o.Chat, Logger: o.Logger,
		Check: checkGenerated,
		Text:  func(s Scenario) string { return s.Task },
		Prompt: func(n int, have []Scenario) []art.Message {
			return generatePrompt(offer, o.Instructions, n, have)
		},
	}, nil)
	for i := range list {
		list[i].ID, list[i].Want = fmt.Sprintf("g%03d", i+1), nil
		list[i].Task = strings.TrimSpace(list[i].Task)
	}
	return list, calls, err
}

var scenarioSchema = json.RawMessage(`{"type":"object","properties":{` +
	`"task":{"type":"string","minLength":1,"maxLength":400},"difficulty":{"type":"integer","minimum":1,"maximum":5}},` +
	`"required":["task","difficulty"],"additionalProperties":false}`)

// checkGenerated is [Scenario.check], and wants a difficulty.
func checkGenerated(s Scenario) error {
	if s.Difficulty == 0 {
		return fmt.Errorf("%.80q has no difficulty", s.Task)
	}
	return s.check()
}

// generatePrompt asks for n scenarios beside those that there are.
func generatePrompt(offer, instructions string, n int, have []Scenario) []art.Message {
	var b strings.Builder
	fmt.Fprintf(&b, "An assistant has these tools and resources:\n\n%s\n\nWrite %d tasks that a user could give it.\n",
		offer, n)
	b.WriteString(`- Each can be done with these tools alone, and its end can be told from what they return.
- A task says what is wanted and not how: it does not name the tools.
- Some need one call, some several, some the result of one call in the next. Use different tools.
- "difficulty" is 1 for a single call up to 5 for many calls and a decision.
- Ask at the end for what the user wants to know, so that the assistant has something to report.
`)
	if instructions != "" {
		fmt.Fprintf(&b, "\n%s\n", instructions)
	}
	if len(have) > 0 {
		b.WriteString("\nThese tasks there are already; write others:\n")
		for _, s := range have[max(0, len(have)-40):] {
			fmt.Fprintf(&b, "- %s\n", s.Task)
		}
	}
	b.WriteString("\n" + `Answer with JSON only: {"scenarios": [{"task": "...", "difficulty": 1}, ...]}`)
	return []art.Message{art.User(b.String())}
}

// describe writes tools and resources, one a line.
func describe(about *Description) (string, error) {
	var lines []string
	for i := range about.Tools {
		line, err := json.Marshal(about.Tools[i])
		if err != nil {
			return "", err
		}
		lines = append(lines, string(line))
	}
	for _, r := range about.Resources {
		line, err := json.Marshal(map[string]any{"resource": r})
		if err != nil {
			return "", err
		}
		lines = append(lines, string(line))
	}
	return strings.Join(lines, "\n"), nil
}
