package main

import (
	"context"
	"fmt"
	"math"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/ruler"
)

// hook is the type of art.GatherOptions.After.
type hook = func(context.Context, *art.TrajectoryGroup) ([]*art.TrajectoryGroup, error)

// after returns what gives the trajectories of a group their rewards: nil for the reward of the game itself, and RULER
// with a rule in place of a language model, which costs nothing and knows the game.
func after(judge string) (hook, error) {
	switch judge {
	case "":
		return nil, nil
	case "ruler":
		return ruler.New(nil, &ruler.Options{Judges: []ruler.Judge{ruler.JudgeFunc(compare)}, Chunk: 64}).After, nil
	}
	return nil, fmt.Errorf("-judge is %q, want ruler or nothing", judge)
}

// compare rates games as somebody who looks at the last boards would: a game that was won, then one that came further,
// then one with more on the board; a word that is no move is worst.
func compare(_ context.Context, items []ruler.Item) ([]ruler.Rating, error) {
	var ratings []ruler.Rating
	for _, item := range items {
		m := item.Trajectory.Metrics
		score, text := 0.0, "it broke off with what is no move"
		if m["invalid_move"] == 0 {
			far := min(1, math.Log2(max(1, m["max_value"]))/math.Log2(float64(*target)))
			score = 0.1 + 0.6*far + 0.1*min(1, m["board_value"]/float64(2**target)) + 0.2*m["win"]
			text = fmt.Sprintf("the highest tile is %.0f, all tiles are %.0f", m["max_value"], m["board_value"])
		}
		ratings = append(ratings, ruler.Rating{ID: item.ID, Explanation: text, Score: score})
	}
	return ratings, nil
}
