package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/local"
	"github.com/goart-dev/art/grpo/dataset"
)

func init() {
	verbs["runs diff"] = verb{
		summary: "the same scenarios at two steps, or with two models",
		args:    "MODEL MODEL FILE",
		runs:    true,
		text: `
Answers scenarios with both, and prints what differs: such as two steps of a run, run:NAME@0 and
run:NAME@best. Replies are greedy unless --temperature is set; the seeds are the same then.

` + scenariosHelp + `

` + models,
		define: func(flags *flag.FlagSet) action {
			d := differ{}
			d.play.flags(flags)
			flags.BoolVar(&d.all, "all", false, "print equal replies too")
			flags.BoolVar(&d.asJSON, "json", false, "print JSON")
			return d.run
		},
	}
}

// flags defines those of verbs that answer scenarios.
func (o *playerOptions) flags(flags *flag.FlagSet) {
	flags.StringVar(&o.toolFormat, "tool-format", "", toolFormatUsage)
	flags.Float64Var(&o.temperature, "temperature", 0, "0 is greedy")
	flags.IntVar(&o.maxTokens, "max-tokens", 256, "most `tokens` of a reply; 0 is the rest of the context")
	flags.IntVar(&o.context, "context", 0, "`tokens` of prompt and reply; 0 is that of the model, if it fits into memory")
	flags.Uint64Var(&o.seed, "seed", 0, "`seed` of sampling")
}

// differ is the verb runs diff with its flags.
type differ struct {
	play        playerOptions
	all, asJSON bool
}

// difference are two replies to a scenario.
type difference struct {
	Scenario int       `json:"scenario"`
	Prompt   string    `json:"prompt"`
	Answer   *string   `json:"answer,omitempty"`
	Replies  [2]string `json:"replies"`
}

func (d *differ) run(args []string, stdout, stderr io.Writer) error {
	if len(args) != 3 {
		return badUsage("want two of MODEL and a FILE of scenarios")
	}
	list, err := readScenarios(args[2])
	if err != nil {
		return err
	}
	var replies [2][]string
	for i, name := range args[:2] {
		if replies[i], err = d.replies(name, list, stderr); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	out := []difference{}
	for i, s := range list {
		if d.all || replies[0][i] != replies[1][i] {
			out = append(out, difference{i, s.question(), s.Answer, [2]string{replies[0][i], replies[1][i]}})
		}
	}
	return writeResult(stdout, d.asJSON, out, d.text(args, out, len(list)))
}

// replies answers the scenarios with a model. A failure is a reply too.
func (d *differ) replies(name string, list []scenario, stderr io.Writer) ([]string, error) {
	groups, err := play(name, list, 1, d.play, stderr)
	if err != nil {
		return nil, err
	}
	out := make([]string, len(groups))
	for i, g := range groups {
		if len(g.Trajectories) == 0 {
			out[i] = "error: " + g.Failures[0].Message
		} else {
			out[i] = lastReply(g.Trajectories[0])
		}
	}
	return out, nil
}

// text prints the differences.
func (d *differ) text(names []string, list []difference, total int) string {
	var b strings.Builder
	differ := 0
	for _, s := range list {
		if s.Replies[0] != s.Replies[1] {
			differ++
		}
		fmt.Fprintf(&b, "== %d: %s\n", s.Scenario, indent(s.Prompt))
		if s.Answer != nil {
			fmt.Fprintf(&b, "   wanted   %s\n", indent(*s.Answer))
		}
		for i, reply := range s.Replies {
			fmt.Fprintf(&b, "%s %-8s %s\n", []string{"-", "+"}[i], names[i], indent(reply))
		}
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, "replies that differ: %d of %d\n", differ, total)
	return b.String()
}

// scenario is a line of a file of tasks: a conversation to reply to, and the answer that is wanted, if there is one.
type scenario struct {
	Messages []art.Message `json:"messages"`
	Tools    []art.Tool    `json:"tools,omitempty"`
	Answer   *string       `json:"answer,omitempty"`
}

// scenariosHelp is what the help of verbs says about FILE.
const scenariosHelp = `FILE has one JSON object a line: {"messages": [...], "tools": [...], "answer": "..."}. tools and
answer may be absent. A last message of the assistant is the answer if there is no other.`

// readScenarios reads a file of scenarios.
func readScenarios(path string) ([]scenario, error) {
	list, err := readRecords[scenario](path)
	if err == nil && len(list) == 0 {
		err = fmt.Errorf("%s has no scenarios", path)
	}
	return list, err
}

// readRecords reads all lines of a file of JSONL.
func readRecords[T any](path string) (list []T, err error) {
	for record, err := range dataset.Stream[T]([]string{path}, nil) {
		if err != nil {
			return nil, err
		}
		list = append(list, record.Value)
	}
	return list, nil
}

// UnmarshalJSON reads a line.
func (s *scenario) UnmarshalJSON(line []byte) error {
	type plain scenario
	if err := json.Unmarshal(line, (*plain)(s)); err != nil {
		return err
	}
	if last := len(s.Messages) - 1; last >= 0 && s.Messages[last].Role == art.RoleAssistant {
		if s.Answer == nil {
			s.Answer = new(s.Messages[last].Content)
		}
		s.Messages = slices.Clip(s.Messages[:last]) // a reply that is appended must not take the place of the answer
	}
	if len(s.Messages) == 0 {
		return errors.New("there are no messages to reply to")
	}
	return nil
}

// question is the last message.
func (s *scenario) question() string { return s.Messages[len(s.Messages)-1].Content }

// wanted is the answer, if there is one.
func (s *scenario) wanted() string {
	if s.Answer == nil {
		return "-"
	}
	return *s.Answer
}

// playerOptions say how to answer.
type playerOptions struct {
	maxTokens   int
	temperature float64
	seed        uint64
	context     int
	toolFormat  string
	sampled     bool // replies have samples
}

// openPlayer loads what MODEL names, until done. Nothing is stored of it. progress gets the bar of a download.
func openPlayer(
	ctx context.Context, name string, o playerOptions, progress io.Writer,
) (m *art.Model, done func() error, err error) {
	s, err := find(name)
	if err != nil {
		return nil, nil, err
	}
	b, done, err := openScratch(ctx, local.Options{Progress: progress, Context: o.context})
	if err != nil {
		return nil, nil, err
	}
	opts := &art.ModelOptions{Base: s.path, Seed: o.seed, Adapter: s.adapter, Frozen: s.adapter == "" && !o.sampled,
		ToolFormat: o.toolFormat}
	if o.maxTokens > 0 {
		opts.Chat.MaxTokens = &o.maxTokens
	}
	opts.Chat.Temperature = &o.temperature
	m = art.NewModel("model", opts)
	if err := m.Register(ctx, b); err != nil {
		return nil, nil, errors.Join(err, done())
	}
	return m, done, nil
}

// play answers each scenario tries times with what MODEL names.
func play(
	name string, list []scenario, tries int, o playerOptions, stderr io.Writer,
) (groups []*art.TrajectoryGroup, err error) {
	ctx := context.Background()
	m, done, err := openPlayer(ctx, name, o, stderr)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, done()) }()
	return art.GatherGroups(ctx, list, func(ctx context.Context, s scenario) (*art.Trajectory, error) {
		t := art.NewTrajectory(s.Messages...)
		t.Tools = s.Tools
		_, err := m.Chat(ctx, t, nil)
		return t, err
	}, &art.GatherOptions{GroupSize: tries, Concurrency: 32, MaxFailureFraction: 1, Events: liveLine(stderr)})
}

// lastReply is what the model said, with its calls.
func lastReply(t *art.Trajectory) string {
	m := t.Messages[len(t.Messages)-1]
	text := m.Content
	for _, call := range m.ToolCalls {
		text += fmt.Sprintf("%s(%s)", call.Name, call.Arguments)
	}
	return text
}
