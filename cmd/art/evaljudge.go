package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/openai"
	"github.com/goart-dev/art/ruler"
)

// scored returns the groups with the scores of their replies as rewards.
func (e *evaluator) scored(list []scenario, groups []*art.TrajectoryGroup) ([]*art.TrajectoryGroup, error) {
	if e.check == "judge" {
		return e.judged(list, groups)
	}
	check := checks[e.check]
	for i, g := range groups {
		for _, t := range g.Trajectories {
			t.Reward = check(lastReply(t), *list[i].Answer)
		}
	}
	return groups, nil
}

// judged asks the judge about each reply by itself, so that scores of different models can be compared.
func (e *evaluator) judged(list []scenario, groups []*art.TrajectoryGroup) (out []*art.TrajectoryGroup, err error) {
	name, url, ok := strings.Cut(e.judge, "@")
	if !ok {
		return nil, badUsage("--judge %s: want MODEL@URL", e.judge)
	}
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "art-judge-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	backend, err := openai.Open(ctx, &openai.Options{BaseURL: url, Dir: dir})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, backend.Close()) }()
	judge := art.NewModel("judge", &art.ModelOptions{Base: name, Frozen: true})
	if err := judge.Register(ctx, backend); err != nil {
		return nil, err
	}
	for i, g := range groups {
		r := ruler.New(judge, &ruler.Options{Rubric: e.rubricFor(&list[i])})
		for _, t := range g.Trajectories {
			one, err := r.Score(ctx, &art.TrajectoryGroup{Trajectories: []*art.Trajectory{t}})
			if err != nil {
				return nil, err
			}
			*t = *one.Trajectories[0]
		}
	}
	return groups, nil
}

// rubricFor is what the judge goes by.
func (e *evaluator) rubricFor(s *scenario) string {
	rubric := e.rubric
	if rubric == "" {
		rubric = "The last reply is right and complete: 1. It is partly right: in between. It is wrong or says nothing: 0."
	}
	if s.Answer != nil {
		rubric += fmt.Sprintf("\nA right answer is, in these or other words: %q", *s.Answer)
	}
	return rubric
}
