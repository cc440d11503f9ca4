package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"strings"
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
			out = append(out, difference{i, s.question(), s.Answer,
				[2]string{replies[0][i], replies[1][i]}})
		}
	}
	if d.asJSON {
		return writeJSON(stdout, out)
	}
	return write(stdout, d.text(args, out, len(list)))
}

// replies answers the scenarios with a model. A failure is a reply too.
func (d *differ) replies(name string, list []scenario, stderr io.Writer) ([]string, error) {
	ctx := context.Background()
	p, err := openPlayer(ctx, name, d.play, stderr)
	if err != nil {
		return nil, err
	}
	defer p.close()
	groups, err := p.play(ctx, list, 1, liveLine(stderr))
	if err != nil {
		return nil, err
	}
	out := make([]string, len(groups))
	for i, g := range groups {
		if len(g.Trajectories) == 0 {
			out[i] = "error: " + g.Failures[0].Message
			continue
		}
		out[i] = lastReply(g.Trajectories[0])
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
