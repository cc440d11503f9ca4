package auto

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/examples/agents"
)

// ErrAlike is wrapped by the error of inputs that differ too little.
var ErrAlike = errors.New("the inputs are too much alike")

// Plan is what the writer wrote.
type Plan struct {
	Task   string  `json:"task"`
	System string  `json:"system"`
	Rubric string  `json:"rubric"`
	Train  []Input `json:"train"`
	Held   []Input `json:"held"`
	// Examples are those of the project.
	Examples []Example `json:"examples,omitempty"`
	// Spread is that of all inputs.
	Spread float64 `json:"spread"`
}

// plan reads the plan, or has it written. Inputs that were written before the process was stopped are kept.
func (p *Project) plan(ctx context.Context) (*Plan, error) {
	plan := &Plan{}
	err := readJSON(filepath.Join(p.Dir, "plan.json"), plan)
	if err == nil && (plan.Task != p.Task || len(plan.Train) == 0 || len(plan.Held) == 0) {
		err := fmt.Errorf("%w: %s has a plan for the task %q", art.ErrInvalid, p.Dir, plan.Task)
		return plan, &art.Error{Op: "auto", Err: err, Hint: "take another folder"}
	}
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return plan, err
	}
	inputs, err := p.inputs(ctx)
	if err != nil {
		return nil, err
	}
	texts := make([]string, len(inputs))
	for i, in := range inputs {
		texts[i] = in.Text
	}
	plan = &Plan{Task: p.Task, System: p.System, Rubric: p.Rubric, Examples: p.Examples, Spread: agents.Spread(texts)}
	if plan.Spread < p.MinSpread {
		return nil, &art.Error{Op: "auto", Err: fmt.Errorf("%w: their spread is %.2f, want %.2f", ErrAlike, plan.Spread,
			p.MinSpread), Hint: "describe what differs between inputs, take a stronger writer, or lower MinSpread; " +
			"inputs.json has them, delete it to have others written"}
	}
	if plan.System == "" {
		prompt := "Write the instruction for a model that does this task:\n\n" + p.Task + "\n\nAddress the model, say what " +
			"it gets and what its whole reply must be. A few sentences, no examples, nothing but the instruction."
		if plan.System, err = p.write(ctx, prompt, 2000); err != nil {
			return nil, fmt.Errorf("the system prompt: %w", err)
		}
	}
	if plan.Rubric == "" {
		prompt := "Somebody compares replies of a model to this task:\n\n" + p.Task + "\n\nWrite what makes a reply good, " +
			"the most important first: three to six lines, each begins with \"- \". What can be checked comes before taste. " +
			"Nothing but the lines."
		if plan.Rubric, err = p.write(ctx, prompt, 4000); err != nil {
			return nil, fmt.Errorf("the rubric: %w", err)
		}
	}
	rng := rand.New(rand.NewPCG(p.Seed, 0xa070))
	rng.Shuffle(len(inputs), func(i, j int) { inputs[i], inputs[j] = inputs[j], inputs[i] })
	plan.Held, plan.Train = inputs[:p.Held], inputs[p.Held:]
	return plan, writeJSON(filepath.Join(p.Dir, "plan.json"), plan)
}

// inputs has them written, beside those of an earlier process.
func (p *Project) inputs(ctx context.Context) ([]Input, error) {
	path := filepath.Join(p.Dir, "inputs.json")
	var have []Input
	if err := readJSON(path, &have); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	list, _, err := agents.Collect(ctx, &agents.Collection[Input]{
		Model: p.Writer, Key: "inputs", Item: inputSchema, FreeText: p.FreeText, Want: p.Inputs + p.Held, Logger: p.Logger,
		Text: func(in Input) string { return in.Text },
		Check: func(in Input) error {
			if strings.TrimSpace(in.Text) == "" {
				return errors.New("an input is empty")
			}
			return nil
		},
		Prompt: func(n int, have []Input) []art.Message { return inputsPrompt(p.Task, n, have) },
	}, have)
	for i := range list {
		list[i].ID = fmt.Sprintf("i%03d", i+1)
	}
	return list, errors.Join(err, writeJSON(path, list)) // what there is is kept for the next process
}

var inputSchema = json.RawMessage(`{"type":"object","properties":{"input":{"type":"string","minLength":1,` +
	`"maxLength":600}},"required":["input"],"additionalProperties":false}`)

func (p *Project) write(ctx context.Context, prompt string, most int) (string, error) {
	response, err := p.Writer.Complete(ctx, &art.History{Messages: []art.Message{art.User(prompt)}},
		&art.ChatOptions{Temperature: new(0.3), MaxTokens: &p.MaxTokens})
	if err != nil {
		return "", err
	}
	text := strings.TrimSpace(response.Message.Content)
	if text == "" || len(text) > most {
		err := fmt.Errorf("%s wrote %d bytes, want 1 to %d", p.Writer.Name(), len(text), most)
		return "", &art.Error{Op: "auto", Err: err, Hint: "take another writer, or set System and Rubric"}
	}
	return text, nil
}

func inputsPrompt(task string, n int, have []Input) []art.Message {
	var b strings.Builder
	fmt.Fprintf(&b, "A model does this task:\n\n%s\n\nWrite %d inputs that people would really give it. "+
		"Write the inputs only, not what the model answers. Vary subject, length, tone and difficulty.\n", task, n)
	if len(have) > 0 {
		b.WriteString("These there are already; write others:\n")
		for _, in := range have[max(0, len(have)-30):] {
			fmt.Fprintf(&b, "- %s\n", in.Text)
		}
	}
	b.WriteString(`Answer with JSON only: {"inputs": [{"input": "..."}, ...]}`)
	return []art.Message{art.User(b.String())}
}

func readJSON(path string, v any) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(content, v); err != nil {
		return &art.Error{Op: "auto", Err: fmt.Errorf("%w: %s: %w", art.ErrCorrupt, path, err), Hint: "delete or correct it"}
	}
	return nil
}

// writeJSON replaces a file of the project at once.
func writeJSON(path string, v any) error {
	content, err := json.MarshalIndent(v, "", "\t")
	if err != nil {
		return err
	}
	return writeFile(path, content)
}

func writeFile(path string, content []byte) error {
	next := path + ".new"
	if err := os.WriteFile(next, content, 0o644); err != nil {
		return err
	}
	return os.Rename(next, path)
}
