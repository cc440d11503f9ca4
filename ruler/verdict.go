package ruler

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/goart-dev/art"
)

// verdict is what the judges say of a group.
type verdict struct {
	list  []subject
	votes []*vote
}

const concurrency = 4

func (r *Ruler) judge(ctx context.Context, g *art.TrajectoryGroup) (*verdict, error) {
	list, err := r.subjectsOf(g)
	if err != nil {
		return nil, &art.Error{Op: "judge", Err: errors.Join(art.ErrInvalid, err), Hint: "a message or a tool has no JSON"}
	}
	task, err := r.newTask(g, list)
	if err != nil {
		return nil, err
	}
	content := ""
	for _, s := range list {
		text, err := contentOf(s.Trajectory)
		if err != nil {
			return nil, err
		}
		content += text
	}
	v := &verdict{list: list}
	for j, judge := range r.judges {
		for i := range r.opts.Votes {
			v.votes = append(v.votes, &vote{r: r, judge: judge, task: task, list: list, seed: r.seedOf(content, j, i)})
		}
	}
	return v, v.ask(ctx)
}

// ask runs the votes. The first failure ends the others.
func (v *verdict) ask(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wait sync.WaitGroup
	slots := make(chan struct{}, concurrency)
	errs := make([]error, len(v.votes))
	for i, one := range v.votes {
		slots <- struct{}{}
		wait.Go(func() {
			defer func() { <-slots }()
			if errs[i] = one.run(ctx); errs[i] != nil {
				cancel(errs[i])
			}
		})
	}
	wait.Wait()
	if slices.ContainsFunc(errs, func(err error) bool { return err != nil }) {
		return context.Cause(ctx)
	}
	return nil
}

func (v *verdict) apply(g *art.TrajectoryGroup) {
	n := float64(len(v.votes))
	for i, s := range v.list {
		var score, pass float64
		criteria := map[string]float64{}
		var explanations []string
		for _, vote := range v.votes {
			r := vote.rating[i]
			score += r.score / n
			if r.pass {
				pass += 1 / n
			}
			for name, value := range r.criteria {
				criteria[name] += value / n
			}
			if r.explanation != "" {
				explanations = append(explanations, "ruler ("+vote.judge.Name()+"): "+r.explanation)
			}
		}
		for _, member := range s.members {
			t := g.Trajectories[member]
			setMetric(&t.Metrics, "independent_reward", t.Reward)
			setMetric(&t.Metrics, "ruler_score", score)
			for name, value := range criteria {
				setMetric(&t.Metrics, "ruler_"+name, value)
			}
			if v.votes[0].task.passFail {
				setMetric(&t.Metrics, "ruler_pass", pass)
			}
			t.Reward = score
			t.Logs = append(t.Logs, explanations...)
		}
	}
	var cost Usage
	again := 0
	for _, vote := range v.votes {
		cost.add(vote.cost)
		again += vote.again
	}
	for key, value := range map[string]int{
		"judge_calls": cost.Calls, "judge_cached": cost.Cached, "judge_prompt_tokens": cost.PromptTokens,
		"judge_completion_tokens": cost.CompletionTokens, "judge_corrections": again,
	} {
		setMetric(&g.Metrics, key, float64(value))
	}
	if len(v.votes) > 1 {
		setMetric(&g.Metrics, "judge_disagreement", v.disagreement())
	}
}

// disagreement is the mean over trajectories of the standard deviation of their scores over the votes.
func (v *verdict) disagreement() float64 {
	sum := 0.0
	for i := range v.list {
		mean, square := 0.0, 0.0
		for _, vote := range v.votes {
			mean += vote.rating[i].score / float64(len(v.votes))
		}
		for _, vote := range v.votes {
			d := vote.rating[i].score - mean
			square += d * d / float64(len(v.votes))
		}
		sum += math.Sqrt(square)
	}
	return sum / float64(len(v.list))
}

// subject is a trajectory to judge, and the indices in the group of all that are equal to it.
type subject struct {
	*art.Trajectory
	members []int
}

// subjectsOf returns the trajectories of a group without repetitions: equal ones are judged once. For rules, which may
// look at metrics, those count too.
func (r *Ruler) subjectsOf(g *art.TrajectoryGroup) ([]subject, error) {
	rules := slices.ContainsFunc(r.judges, func(j Judge) bool { _, rule := j.(JudgeFunc); return rule })
	var list []subject
	index := map[string]int{}
	for i, t := range g.Trajectories {
		key, err := contentOf(t)
		if err != nil {
			return nil, err
		}
		if rules {
			key += fmt.Sprint(t.Metrics) // in the order of keys
		}
		at, ok := index[key]
		if !ok {
			at = len(list)
			index[key] = at
			list = append(list, subject{Trajectory: t})
		}
		list[at].members = append(list[at].members, i)
	}
	return list, nil
}

// contentOf is what a trajectory says, as a text: messages and tools of its histories.
func contentOf(t *art.Trajectory) (string, error) {
	var b bytes.Buffer
	for _, h := range t.Histories() {
		if err := json.NewEncoder(&b).Encode([]any{h.Messages, h.Tools}); err != nil {
			return "", err
		}
	}
	return b.String(), nil
}

// commonPrefix is how many messages the main histories have in common.
func commonPrefix(list []subject) (shared int, err error) {
	if len(list) < 2 {
		return 0, nil
	}
	var first [][]byte
	for i, s := range list {
		texts := make([][]byte, len(s.Messages))
		for k := range s.Messages {
			if texts[k], err = encode(&s.Messages[k]); err != nil {
				return 0, err
			}
		}
		if i == 0 {
			first, shared = texts, len(texts)
		}
		n := 0
		for n < min(shared, len(texts)) && bytes.Equal(texts[n], first[n]) {
			n++
		}
		shared = n
	}
	return shared, nil
}

// encode writes JSON on one line, with < and > as they are.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimRight(b.Bytes(), "\n"), err
}
