package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/examples/agents"
	"github.com/goart-dev/art/grpo/dataset"
)

// Scenario is a task for the agent.
type Scenario struct {
	ID string `json:"id"`
	// Task is what the user asks for.
	Task string `json:"task"`
	// Difficulty is 1 to 5, 0 when nobody said.
	Difficulty int `json:"difficulty,omitempty"`
	// Want is what a [Checker] compares with; it is empty for scenarios that a judge is for.
	Want *Want `json:"want,omitempty"`
}

// Want is what solves a scenario.
type Want struct {
	// Calls that change data, as somebody who knows the task makes them.
	Calls []Call `json:"calls,omitempty"`
	// Answer is what the summary must say. Empty: anything.
	Answer string `json:"answer,omitempty"`
}

// Call is a call of a tool.
type Call struct {
	Tool string            `json:"tool"`
	Args map[string]string `json:"args,omitempty"`
}

// Checker says how well a trajectory solves its scenario, from 0 to 1. An error, or a number out of this range such as
// NaN, fails the rollout.
type Checker func(ctx context.Context, s Scenario, t *art.Trajectory) (float64, error)

// Split deals scenarios into two thirds to train on and a third to validate with, by seed. Two or more scenarios give
// both at least one.
func Split(scenarios []Scenario, seed uint64) (train, val []Scenario) {
	order := rand.New(rand.NewPCG(seed, 0x5917)).Perm(len(scenarios))
	held := (len(scenarios) + 1) / 3
	for i, at := range order {
		if i < held {
			val = append(val, scenarios[at])
		} else {
			train = append(train, scenarios[at])
		}
	}
	return train, val
}

// Store writes scenarios into DIR/train.jsonl and DIR/val.jsonl, and what the server offers into DIR/server.jsonl. It
// does not overwrite: a folder that has scenarios is an error.
func Store(dir string, about *Description, train, val []Scenario) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(dir, "server.jsonl")); err == nil {
		return invalid("store", fmt.Errorf("%s has scenarios already", dir), "load them, or take another folder")
	}
	if err := writeJSONL(filepath.Join(dir, "train.jsonl"), train...); err != nil {
		return err
	}
	if err := writeJSONL(filepath.Join(dir, "val.jsonl"), val...); err != nil {
		return err
	}
	return writeJSONL(filepath.Join(dir, "server.jsonl"), about) // the last: it says that the others are complete
}

// Load reads what [Store] wrote. Without scenarios in the folder the error wraps [os.ErrNotExist]. A server that now
// offers other tools than those that the scenarios were made for is an error.
func Load(dir string, now *Description) (train, val []Scenario, err error) {
	if _, err := os.Stat(filepath.Join(dir, "server.jsonl")); err != nil {
		return nil, nil, err
	}
	before, err := readJSONL[Description](filepath.Join(dir, "server.jsonl"))
	if err != nil {
		return nil, nil, err
	}
	if len(before) != 1 {
		return nil, nil, invalid("load", fmt.Errorf("%s/server.jsonl has %d lines, want 1", dir, len(before)),
			"delete the folder to generate scenarios again")
	}
	if now != nil {
		if difference := before[0].differs(now); difference != "" {
			return nil, nil, invalid("load", fmt.Errorf("the server's tools are not those of the scenarios in %s: %s", dir,
				difference), "take another folder, so that scenarios are generated for the new tools")
		}
	}
	if train, err = readScenarios(filepath.Join(dir, "train.jsonl")); err != nil {
		return nil, nil, err
	}
	val, err = readScenarios(filepath.Join(dir, "val.jsonl"))
	return train, val, err
}

func readScenarios(path string) ([]Scenario, error) {
	list, err := readJSONL[Scenario](path)
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for i, s := range list {
		err := s.check()
		switch {
		case s.ID == "":
			err = errors.New("it has no id")
		case seen[s.ID]:
			err = fmt.Errorf("the id %q is there twice", s.ID)
		}
		if err != nil {
			return nil, invalid("load", fmt.Errorf("%s, scenario %d: %w", path, i+1, err), "correct the file")
		}
		seen[s.ID] = true
	}
	return list, nil
}

const maxTask = 2000

func (s Scenario) check() error {
	switch {
	case strings.TrimSpace(s.Task) == "":
		return errors.New("the task is empty")
	case len(s.Task) > maxTask:
		return fmt.Errorf("the task has %d bytes, at most %d", len(s.Task), maxTask)
	case s.Difficulty < 0 || s.Difficulty > 5:
		return fmt.Errorf("the difficulty is %d, want 1 to 5", s.Difficulty)
	}
	return nil
}

func writeJSONL[T any](path string, records ...T) error {
	file, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name()) // fails after the rename, as it should
	err = errors.Join(dataset.WriteJSONL(file, records...), file.Sync(), file.Close())
	if err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}

func readJSONL[T any](path string) ([]T, error) {
	var list []T
	for record, err := range dataset.Stream[T]([]string{path}, nil) {
		if err != nil {
			return nil, err
		}
		list = append(list, record.Value)
	}
	return list, nil
}

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
	list, calls, err := agents.Collect(ctx, &agents.Collection[Scenario]{
		Model: o.Model, Key: "scenarios", Item: scenarioSchema, FreeText: o.FreeText,
		Want: cmp.Or(o.Want, 24), PerCall: o.PerCall, MaxCalls: o.MaxCalls, Chat: o.Chat, Logger: o.Logger,
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
	var items []any
	for _, t := range about.Tools {
		items = append(items, t)
	}
	for _, r := range about.Resources {
		items = append(items, map[string]any{"resource": r})
	}
	lines := make([]string, len(items))
	for i, item := range items {
		line, err := json.Marshal(item)
		if err != nil {
			return "", err
		}
		lines[i] = string(line)
	}
	return strings.Join(lines, "\n"), nil
}
