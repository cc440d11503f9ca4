package main

import (
	"cmp"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/rundir"
	"github.com/goart-dev/art/internal/brief"
	"github.com/goart-dev/art/internal/quantity"
	"github.com/goart-dev/art/internal/runs"
	"github.com/goart-dev/art/tokenizer"
)

func init() {
	verbs["runs show"] = verb{
		summary: "the trajectories of a run, as a person reads chats",
		args:    "RUN",
		runs:    true,
		text: `
Prints what a run did: each trajectory with its messages, tool calls, reward, metrics, and the lines
that were logged for it, such as the explanation of a judge. Without --step it is the newest step
that has trajectories of the split.

With --tokens each sampled token is followed by its probability in percent, and coloured by it on a
terminal: tokens that were unlikely stand out. NO_COLOR turns colours off.

` + runNames,
		define: func(flags *flag.FlagSet) action {
			var s shower
			flags.StringVar(&s.split, "split", "", "`name` of the split; default: val, or what there is")
			flags.IntVar(&s.step, "step", -1, "`number` of the step; default: the newest up to that of RUN")
			flags.IntVar(&s.group, "group", -1, "only the group with this `index`")
			flags.StringVar(&s.sort, "sort", "", "worst or best: order by `reward`")
			flags.IntVar(&s.limit, "limit", 10, "print at most `n` trajectories; 0: all")
			flags.BoolVar(&s.tokens, "tokens", false, "show sampled tokens with their probabilities")
			flags.BoolVar(&s.asJSON, "json", false, "print the groups as JSON")
			return s.run
		},
	}
}

// shower is the verb runs show with its flags.
type shower struct {
	split, sort        string
	step, group, limit int
	tokens, asJSON     bool

	color     bool
	tokenizer *tokenizer.Tokenizer
}

// shown is a trajectory and where it is from.
type shown struct {
	group, index int
	*art.Trajectory
}

func (s *shower) run(args []string, stdout, _ io.Writer) error {
	if len(args) != 1 || s.sort != "" && s.sort != "worst" && s.sort != "best" || s.limit < 0 {
		return badUsage("want one RUN, --sort worst or best, and --limit of 0 or more")
	}
	r, step, err := findRun(args[0])
	if err != nil {
		return err
	}
	if err := s.choose(r, step); err != nil {
		return err
	}
	groups, err := r.ReadTrajectories(s.split, s.step)
	if err != nil {
		return err
	}
	if s.group >= len(groups) {
		return fmt.Errorf("--group %d: split %s of step %d has %s, from 0", s.group, s.split, s.step,
			quantity.Of(len(groups), "group"))
	}
	if s.asJSON {
		return writeJSON(stdout, groups)
	}
	if s.tokens {
		if s.tokenizer, err = openTokenizer(r.Dir()); err != nil {
			return err
		}
	}
	s.color = colors(stdout)
	return s.print(r, groups, stdout)
}

// choose fills in the split, and the step, up to newest, unless it is given.
func (s *shower) choose(r *rundir.Run, newest int) error {
	stored, err := r.Trajectories()
	if err != nil {
		return err
	}
	splits := sortedKeys(stored)
	if len(splits) == 0 {
		return fmt.Errorf("%s has no trajectories yet", r.Dir())
	}
	if s.split == "" {
		s.split = splits[0]
		if slices.Contains(splits, "val") {
			s.split = "val"
		}
	}
	steps := stored[s.split]
	if len(steps) == 0 {
		return fmt.Errorf("--split %s: the run has trajectories of %s", s.split, brief.Names(splits))
	}
	if s.step >= 0 && !slices.Contains(steps, s.step) {
		var have []string
		for _, step := range steps {
			have = append(have, strconv.Itoa(step))
		}
		return fmt.Errorf("--step %d: split %s has trajectories of steps %s", s.step, s.split, brief.Names(have))
	}
	if s.step >= 0 {
		return nil
	}
	at, _ := slices.BinarySearch(steps, newest+1)
	if at == 0 {
		return fmt.Errorf("no trajectories of split %s up to step %d; there are those of steps %v", s.split, newest, steps)
	}
	s.step = steps[at-1]
	return nil
}

// print prints the trajectories.
func (s *shower) print(r *rundir.Run, groups []*art.TrajectoryGroup, w io.Writer) error {
	var list []shown
	failures, shownGroups := 0, 0
	for g, group := range groups {
		if s.group >= 0 && g != s.group {
			continue
		}
		shownGroups++
		failures += len(group.Failures)
		for i, t := range group.Trajectories {
			list = append(list, shown{g, i, t})
		}
	}
	sign := map[string]int{"worst": 1, "best": -1}[s.sort]
	slices.SortStableFunc(list, func(a, b shown) int { return sign * cmp.Compare(a.Reward, b.Reward) })
	total := len(list)
	if s.limit > 0 {
		list = list[:min(s.limit, len(list))]
	}
	var b strings.Builder
	about := r.About()
	fmt.Fprintf(&b, "%s/%s, split %s, step %d: %s in %s, %s", about.Project, about.Name, s.split, s.step,
		quantity.Of(total, "trajectory"), quantity.Of(shownGroups, "group"), quantity.Of(failures, "failure"))
	if len(list) < total {
		fmt.Fprintf(&b, "; the first %d, see --limit", len(list))
	}
	b.WriteString("\n")
	if steps, err := r.Steps(); err == nil && len(steps) > 0 {
		fmt.Fprintf(&b, "%s, the newest of %s\n", quantity.Of(len(steps), "checkpoint"),
			quantity.Bytes(runs.CheckpointBytes(r.Dir(), steps[len(steps)-1])))
	}
	for _, t := range list {
		s.trajectory(&b, t)
	}
	return write(w, b.String())
}

// trajectory writes one.
func (s *shower) trajectory(b *strings.Builder, t shown) {
	head := fmt.Sprintf("== group %d, trajectory %d: reward %.4g", t.group, t.index, t.Reward)
	for _, name := range sortedKeys(t.Metrics) {
		head += fmt.Sprintf(", %s %.4g", name, t.Metrics[name])
	}
	fmt.Fprintf(b, "\n%s\n", s.style("1", head))
	for i, h := range t.Histories() {
		if i > 0 {
			fmt.Fprintf(b, "-- additional history %d\n", i)
		}
		for _, tool := range h.Tools {
			fmt.Fprintf(b, "%s %s  %s\n", s.style("2", "tool     "), printable(tool.Name), printable(tool.Description))
		}
		for j := range h.Messages {
			s.message(b, &h.Messages[j])
		}
	}
	for _, line := range t.Logs {
		fmt.Fprintf(b, "%s %s\n", s.style("33", "log      "), indent(line))
	}
}

// message writes who said what.
func (s *shower) message(b *strings.Builder, m *art.Message) {
	color := map[art.Role]string{art.RoleSystem: "2", art.RoleUser: "36", art.RoleAssistant: "32",
		art.RoleTool: "35"}[m.Role]
	head := s.style(color, fmt.Sprintf("%-9s", m.Role))
	if s.tokens && m.Sample != nil {
		text := ""
		for i, id := range m.Sample.IDs {
			text += s.token(id, m.Sample.Logprobs[i])
		}
		fmt.Fprintf(b, "%s %s\n", head, strings.ReplaceAll(text, "\n", "\n          "))
		return
	}
	if m.Reasoning != "" {
		fmt.Fprintf(b, "%s %s\n", head, indent("("+m.Reasoning+")"))
	}
	if m.Content != "" || len(m.ToolCalls) == 0 {
		fmt.Fprintf(b, "%s %s\n", head, indent(m.Content))
	}
	for _, call := range m.ToolCalls {
		fmt.Fprintf(b, "%s calls %s(%s)\n", head, printable(call.Name), indent(call.Arguments))
	}
}

// token writes a token with its probability in percent.
func (s *shower) token(id int32, logprob float32) string {
	p, color := 100*math.Exp(float64(logprob)), "32"
	switch {
	case p < 10:
		color = "31"
	case p < 50:
		color = "33"
	}
	text := printable(s.tokenizer.Decode([]int32{id}, false))
	return s.style(color, text) + s.style("2", fmt.Sprintf("[%.0f]", p))
}

// style writes a text in a style of the terminal.
func (s *shower) style(code, text string) string { return styled(s.color, code, text) }

func styled(color bool, code, text string) string {
	if !color || code == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// colors reports whether a file is a terminal that wants colors (https://no-color.org).
func colors(w io.Writer) bool {
	return redraws(w) && os.Getenv("NO_COLOR") == ""
}

// indent moves the lines behind the first to the right, and makes the text printable.
func indent(text string) string { return strings.ReplaceAll(printable(text), "\n", "\n          ") }

// printable shows control characters as pictures: what a model writes must not move the cursor or change the title of
// the terminal. Line feeds and tabs stay.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r < 0x20:
			return 0x2400 + r
		case r == 0x7f:
			return 0x2421
		case 0x80 <= r && r < 0xa0, 0x202a <= r && r <= 0x202e, 0x2066 <= r && r <= 0x2069: // C1 and bidirectional controls
			return 0xfffd
		}
		return r
	}, text)
}
