package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/hosted"
	"github.com/goart-dev/art/backend/openai"
	"github.com/goart-dev/art/ruler"
)

// scorer returns what sets the rewards of replies, by the check or by the judge, and what ends it.
func (e *evaluator) scorer() (score func([]scenario, []*art.TrajectoryGroup) error, end func() error, err error) {
	if e.check != "judge" {
		return e.byCheck, func() error { return nil }, nil
	}
	j, err := openJudge(e.judge)
	if err != nil {
		return nil, nil, err
	}
	score = func(list []scenario, groups []*art.TrajectoryGroup) error { return j.score(list, groups, e.rubric) }
	return score, j.close, nil
}

// byCheck sets the rewards of replies to the scores of the check.
func (e *evaluator) byCheck(list []scenario, groups []*art.TrajectoryGroup) error {
	check := checks[e.check]
	for i, g := range groups {
		for _, t := range g.Trajectories {
			t.Reward = check(lastReply(t), *list[i].Answer)
		}
	}
	return nil
}

// judgeCalls is how many replies are judged at once.
const judgeCalls = 8

// evalJudge scores replies by a hosted model.
type evalJudge struct {
	backend *hosted.Backend
	model   *art.Model
}

// openJudge connects to the judge that MODEL@URL names.
func openJudge(at string) (j *evalJudge, err error) {
	name, url, ok := strings.Cut(at, "@")
	if !ok {
		return nil, badUsage("--judge %s: want MODEL@URL", at)
	}
	j = &evalJudge{}
	ctx := context.Background()
	if j.backend, err = openai.Open(ctx, &openai.Options{BaseURL: url}); err != nil {
		return nil, err
	}
	j.model = art.NewModel("judge", &art.ModelOptions{Base: name, Frozen: true})
	if err := j.model.Register(ctx, j.backend); err != nil {
		return nil, errors.Join(err, j.close())
	}
	return j, nil
}

// close ends the connection.
func (j *evalJudge) close() error { return j.backend.Close() }

// score sets the rewards of replies to what the judge says of each by itself, so that scores of different models can
// be compared. The first error ends it.
func (j *evalJudge) score(list []scenario, groups []*art.TrajectoryGroup, rubric string) error {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	var wait sync.WaitGroup
	slots := make(chan struct{}, judgeCalls)
	for i, g := range groups {
		r := ruler.New(j.model, &ruler.Options{Rubric: rubricFor(&list[i], rubric)})
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
	if rubric == "" {
		rubric = "The last reply is right and complete: 1. It is partly right: in between. It is wrong or says nothing: 0."
	}
	if s.Answer != nil {
		rubric += fmt.Sprintf("\nA right answer is, in these or other words: %q", *s.Answer)
	}
	return rubric
}
