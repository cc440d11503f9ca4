package ruler_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/ruler"
)

// A rule in place of a model: it prefers short replies that greet.
func Example() {
	rule := ruler.JudgeFunc(func(_ context.Context, items []ruler.Item) ([]ruler.Rating, error) {
		var ratings []ruler.Rating
		for _, item := range items {
			reply := item.Trajectory.Messages[1].Content
			score := 0.1
			if strings.Contains(reply, "ello") {
				score = 1 / float64(len(strings.Fields(reply)))
			}
			ratings = append(ratings, ruler.Rating{ID: item.ID, Explanation: "greets briefly?", Score: score})
		}
		return ratings, nil
	})
	group := &art.TrajectoryGroup{}
	for _, reply := range []string{"Hello!", "Well, hello to you", "No."} {
		group.Trajectories = append(group.Trajectories, art.NewTrajectory(art.User("Greet me."), art.Assistant(reply)))
	}
	judged, err := ruler.New(nil, &ruler.Options{Judges: []ruler.Judge{rule}}).Score(context.Background(), group)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, t := range judged.Trajectories {
		fmt.Println(t.Reward, t.Messages[1].Content)
	}
	// Output:
	// 1 Hello!
	// 0.25 Well, hello to you
	// 0.1 No.
}
