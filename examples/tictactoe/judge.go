package main

import (
	"context"
	"fmt"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/ruler"
)

// hook is the type of art.GatherOptions.After.
type hook = func(context.Context, *art.TrajectoryGroup) ([]*art.TrajectoryGroup, error)

// after returns what gives the games of a group their rewards: nil for the reward of the game itself, and RULER with a
// rule in place of a language model.
func after(judge string) (hook, error) {
	switch judge {
	case "":
		return nil, nil
	case "ruler":
		return ruler.New(nil, &ruler.Options{Judges: []ruler.Judge{ruler.JudgeFunc(compare)}, Chunk: 64}).After, nil
	}
	return nil, fmt.Errorf("-judge is %q, want ruler or nothing", judge)
}

// compare rates games as a spectator would: won, drawn, lost, broken off with what is no move; of those that did not
// end well, a longer one is a little better.
func compare(_ context.Context, items []ruler.Item) ([]ruler.Rating, error) {
	var ratings []ruler.Rating
	for _, item := range items {
		m := item.Trajectory.Metrics
		score, text := 0.25+0.01*m["moves"], "lost"
		switch {
		case m["illegal"] == 1:
			score, text = 0.01*m["moves"], "no move"
		case m["won"] == 1:
			score, text = 1, "won"
		case m["not_lost"] == 1:
			score, text = 0.85, "drawn"
		}
		ratings = append(ratings, ruler.Rating{ID: item.ID, Explanation: text, Score: score})
	}
	return ratings, nil
}
