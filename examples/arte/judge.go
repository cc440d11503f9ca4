package main

import (
	"context"
	"fmt"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/ruler"
)

// hook is the type of art.GatherOptions.After.
type hook = func(context.Context, *art.TrajectoryGroup) ([]*art.TrajectoryGroup, error)

// after returns what gives the trajectories of a group their rewards: nil for the reward bands, and RULER with a rule
// in place of a language model, which costs nothing and knows the right answer.
func after(judge string) (hook, error) {
	switch judge {
	case "":
		return nil, nil
	case "ruler":
		return ruler.New(nil, &ruler.Options{Judges: []ruler.Judge{ruler.JudgeFunc(compare)}, Chunk: 64}).After, nil
	}
	return nil, fmt.Errorf("-judge is %q, want ruler or nothing", judge)
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
