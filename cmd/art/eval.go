package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/openai"
	"github.com/goart-dev/art/backend/plot"
	"github.com/goart-dev/art/internal/quantity"
	"github.com/goart-dev/art/ruler"
	"github.com/goart-dev/art/ruler/reward"
)

func init() {
	verbs["eval"] = verb{
		summary: "how well a model or a run answers a file of scenarios",
		args:    "MODEL FILE",
		runs:    true,
		text: `
Answers scenarios, scores the replies, and prints the mean score with its 95 % confidence interval:
Wilson's where all scores are 0 or 1, otherwise by Student's t.
Replies are greedy unless --temperature is set. Scores are from 0 to 1:

  exact     the reply is the answer, but for case, punctuation and articles
  contains  the reply contains the answer, likewise
  f1        words in common, as in SQuAD
  number    the last number of the reply is the answer
  math      the expression in \boxed{} or at the end equals the answer
  json      the first JSON object of the reply equals the answer
  calls     the reply is the tool call that the answer writes as name({"argument": "value"})
  regex     the answer is a regular expression, and the reply matches it
  judge     what the model of --judge says of the reply; it is shown the answer where there is one

With --store SPLIT, trajectories and metrics are stored in the run that MODEL names.

` + scenariosHelp + `

` + models,
		define: func(flags *flag.FlagSet) action {
			e := evaluator{}
			e.play.flags(flags)
			flags.StringVar(&e.check, "check", "exact", "`name` of the score")
			flags.StringVar(&e.judge, "judge", "",
				"`MODEL@URL` of a hosted judge, such as gpt-5.4-mini@https://api.openai.com/v1")
			flags.StringVar(&e.rubric, "rubric", "", "`text` that says to the judge what counts")
			flags.StringVar(&e.store, "store", "", "`split` to store the result under, in the run")
			flags.IntVar(&e.tries, "tries", 1, "`times` that each scenario is answered")
			flags.IntVar(&e.show, "show", 3, "print so `many` of the worst replies")
			flags.BoolVar(&e.asJSON, "json", false, "print one JSON object: score, low, high, scenarios, failures")
			return e.run
		},
	}
}

// evaluator is the verb eval with its flags.
type evaluator struct {
	play          playerOptions
	check, store  string
	judge, rubric string
	tries, show   int
	asJSON        bool
}

// evaluation is what eval prints.
type evaluation struct {
	Model     string  `json:"model"`
	Check     string  `json:"check"`
	Score     float64 `json:"score"`
	Low       float64 `json:"low"`  // of the 95 % confidence interval
	High      float64 `json:"high"` //
	Scenarios int     `json:"scenarios"`
	Failures  int     `json:"failures"`
}

// checks are the scores by name: of a reply and the answer that is wanted.
var checks = map[string]func(reply, want string) float64{
	"exact": func(reply, want string) float64 { return reward.ExactMatch(reply, want) },
	"contains": func(reply, want string) float64 {
		return truth(strings.Contains(reward.Normalize(reply), reward.Normalize(want)))
	},
	"f1":     func(reply, want string) float64 { return reward.F1(reply, want) },
	"number": func(reply, want string) float64 { return reward.Number(reply, want, 0) },
	"math":   func(reply, want string) float64 { return reward.Math(reply, want) },
	"json": func(reply, want string) float64 {
		object, ok := reward.FirstJSON(reply)
		if !ok {
			return 0
		}
		return reward.SameJSON(string(object), want)
	},
	"calls": func(reply, want string) float64 { return truth(strings.TrimSpace(reply) == strings.TrimSpace(want)) },
	"regex": func(reply, want string) float64 {
		pattern, err := regexp.Compile(want)
		return truth(err == nil && pattern.MatchString(reply))
	},
}

func truth(ok bool) float64 {
	if ok {
		return 1
	}
	return 0
}

func (e *evaluator) run(args []string, stdout, stderr io.Writer) (err error) {
	_, ok := checks[e.check]
	byJudge := e.check == "judge"
	switch {
	case len(args) != 2:
		return badUsage("want MODEL and a FILE of scenarios")
	case !ok && !byJudge:
		return badUsage("--check %s: there are %s and judge", e.check, strings.Join(sortedKeys(checks), ", "))
	case byJudge != (e.judge != ""):
		return badUsage("--check judge and --judge MODEL@URL belong together")
	case e.tries < 1:
		return badUsage("--tries %d: want at least 1", e.tries)
	}
	list, err := e.scenarios(args[1])
	if err != nil {
		return err
	}
	score, end, err := e.scorer() // before the model answers: what is wrong with a judge is told at once
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	groups, err := play(args[0], list, e.tries, e.play, stderr)
	if err != nil {
		return err
	}
	result := evaluation{Model: args[0], Check: e.check, Scenarios: len(list)}
	if err := score(list, groups); err != nil {
		return err
	}
	for _, g := range groups {
		result.Failures += len(g.Failures)
	}
	result.Score, result.Low, result.High = plot.RewardInterval(groups)
	if math.IsNaN(result.Score) {
		return fmt.Errorf("every reply failed, of %d; the first: %s", result.Failures, groups[0].Failures[0].Message)
	}
	if e.store != "" {
		if err := e.keep(args[0], groups); err != nil {
			return err
		}
	}
	return writeResult(stdout, e.asJSON, result, e.text(result, list, groups))
}

// scenarios reads those to answer, which all have an answer that can be checked.
func (e *evaluator) scenarios(path string) ([]scenario, error) {
	list, err := readScenarios(path)
	if err != nil {
		return nil, err
	}
	for i, s := range list {
		if s.Answer == nil && e.check != "judge" {
			return nil, fmt.Errorf("%s: scenario %d has no answer to check replies against", path, i+1)
		}
		if e.check != "regex" {
			continue
		}
		if _, err := regexp.Compile(*s.Answer); err != nil {
			return nil, fmt.Errorf("%s: scenario %d: %w", path, i+1, err)
		}
	}
	return list, nil
}

// keep stores the result in a run.
func (e *evaluator) keep(name string, groups []*art.TrajectoryGroup) (err error) {
	r, step, err := findRun(name)
	if err != nil {
		return fmt.Errorf("--store %s: %w", e.store, err)
	}
	run, err := lockRun(r)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, run.Close()) }()
	if err := run.WriteTrajectories(e.store, step, groups); err != nil {
		return err
	}
	return run.Log(e.store, step, art.Metrics(groups...))
}

// text prints the result and the worst replies.
func (e *evaluator) text(r evaluation, list []scenario, groups []*art.TrajectoryGroup) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s %.4f  (95 %%: %.4f to %.4f)  %s", r.Model, r.Check, r.Score, r.Low, r.High,
		quantity.Of(r.Scenarios, "scenario"))
	if e.tries > 1 {
		fmt.Fprintf(&b, " x %d", e.tries)
	}
	if r.Failures > 0 {
		fmt.Fprintf(&b, ", %s", quantity.Of(r.Failures, "failure"))
	}
	b.WriteString("\n")
	order := make([]int, len(groups))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(meanReward(groups[a]), meanReward(groups[b])) })
	for _, i := range order[:min(e.show, len(order))] {
		g := groups[i]
		if len(g.Trajectories) == 0 || meanReward(g) == 1 {
			continue
		}
		fmt.Fprintf(&b, "\n%.2f  %s\n  wanted  %s\n  got     %s\n", meanReward(g),
			indent(list[i].question()), indent(list[i].wanted()), indent(lastReply(g.Trajectories[0])))
	}
	return b.String()
}

// meanReward of a group, 0 for one without trajectories.
func meanReward(g *art.TrajectoryGroup) float64 {
	sum := 0.0
	for _, t := range g.Trajectories {
		sum += t.Reward
	}
	return sum / float64(max(1, len(g.Trajectories)))
}

// scorer returns what sets the rewards of replies, by the check or by the judge, and what ends it.
func (e *evaluator) scorer() (score func([]scenario, []*art.TrajectoryGroup) error, end func() error, err error) {
	if check := checks[e.check]; check != nil {
		score = func(list []scenario, groups []*art.TrajectoryGroup) error {
			for i, g := range groups {
				for _, t := range g.Trajectories {
					t.Reward = check(lastReply(t), *list[i].Answer)
				}
			}
			return nil
		}
		return score, func() error { return nil }, nil
	}
	name, url, ok := strings.Cut(e.judge, "@")
	if !ok {
		return nil, nil, badUsage("--judge %s: want MODEL@URL", e.judge)
	}
	ctx := context.Background()
	backend, err := openai.Open(ctx, &openai.Options{BaseURL: url})
	if err != nil {
		return nil, nil, err
	}
	m := art.NewModel("judge", &art.ModelOptions{Base: name, Frozen: true})
	if err := m.Register(ctx, backend); err != nil {
		return nil, nil, errors.Join(err, backend.Close())
	}
	score = func(list []scenario, groups []*art.TrajectoryGroup) error { return judge(m, list, groups, e.rubric) }
	return score, backend.Close, nil
}

// judgeCalls is how many replies are judged at once.
const judgeCalls = 8

// judge sets the rewards of replies to what the model says of each by itself, so that scores of different models can
// be compared. The first error ends it.
func judge(m *art.Model, list []scenario, groups []*art.TrajectoryGroup, rubric string) error {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	var wait sync.WaitGroup
	slots := make(chan struct{}, judgeCalls)
	for i, g := range groups {
		r := ruler.New(m, &ruler.Options{Rubric: rubricFor(&list[i], rubric)})
		for _, t := range g.Trajectories {
			slots <- struct{}{}
			wait.Go(func() {
				defer func() { <-slots }()
				one, err := r.Score(ctx, &art.TrajectoryGroup{Trajectories: []*art.Trajectory{t}})
				if err != nil {
					cancel(err)
					return
				}
				*t = *one.Trajectories[0]
			})
		}
	}
	wait.Wait()
	return context.Cause(ctx)
}

// rubricFor is what the judge goes by.
func rubricFor(s *scenario, rubric string) string {
	rubric = cmp.Or(rubric,
		"The last reply is right and complete: 1. It is partly right: in between. It is wrong or says nothing: 0.")
	if s.Answer != nil {
		rubric += fmt.Sprintf("\nA right answer is, in these or other words: %q", *s.Answer)
	}
	return rubric
}
