package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/openai"
	"github.com/goart-dev/art/ruler"
)

// hook is the type of art.GatherOptions.After.
type hook = func(context.Context, *art.TrajectoryGroup) ([]*art.TrajectoryGroup, error)

// after returns what gives the trajectories of a group their rewards: nil for the reward bands; RULER with a rule in
// place of a language model, which costs nothing and knows the right answer; or RULER with a model behind a URL.
func after(ctx context.Context, judge string) (hook, error) {
	name, url, hosted := strings.Cut(judge, "@")
	switch {
	case judge == "":
		return nil, nil
	case judge == "ruler":
		return ruler.New(nil, &ruler.Options{Judges: []ruler.Judge{ruler.JudgeFunc(compare)}, Chunk: 64}).After, nil
	case hosted:
		m, err := prompted(ctx, url, name)
		return ruler.New(m, &ruler.Options{OnFailure: ruler.Drop, Cache: filepath.Join(*dir, "judge")}).After, err
	}
	return nil, fmt.Errorf("-judge is %q, want ruler, MODEL@URL or nothing", judge)
}

// compare rates runs as somebody who knows the answer would: right before wrong, fewer turns before more, and of those
// that are not right the one that came closer.
func compare(_ context.Context, items []ruler.Item) ([]ruler.Rating, error) {
	var ratings []ruler.Rating
	for _, item := range items {
		m := item.Trajectory.Metrics
		score := 0.1*m["format"] + 0.1*m["found"] + 0.15*m["read"] + 0.15*m["cited"]
		text := "the answer is not right"
		if m["right"] == 1 {
			score, text = 0.8+0.1*m["cited"]+0.1*(1-m["turns"]/maxTurns), "the answer is right"
		}
		ratings = append(ratings, ruler.Rating{ID: item.ID, Explanation: text, Score: min(1, score)})
	}
	return ratings, nil
}

// prompted returns a model behind an OpenAI-compatible URL, which runs the same rollouts as the trained one. Its
// backend stays open until the program ends.
func prompted(ctx context.Context, url, name string) (*art.Model, error) {
	backend, err := openai.Open(ctx, &openai.Options{BaseURL: url, Dir: *dir})
	if err != nil {
		return nil, err
	}
	run := strings.NewReplacer("/", "-", ":", "-", "@", "-").Replace(name)
	m := art.NewModel("hosted-"+run, &art.ModelOptions{Project: "arte", Base: name, Frozen: true,
		Chat: art.ChatOptions{MaxTokens: new(512)}})
	return m, m.Register(ctx, backend)
}
