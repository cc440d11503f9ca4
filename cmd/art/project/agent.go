package project

import (
	"context"

	"github.com/goart-dev/art"
)

// Questions are the scenarios: what the agent is given. Replace them by your own type, and read it from a file.
var Questions = []string{"yes or no", "maybe, yes or no?", "Answer with yes, no or maybe.", "no, maybe or yes"}

// Answer is the agent: one rollout. It may call the model as often as it likes, and tools in between; what the model
// writes is recorded, and the reward says how good it was.
func Answer(ctx context.Context, model *art.Model, question string, opts *art.ChatOptions) (*art.Trajectory, error) {
	t := art.NewTrajectory(art.User(question))
	reply, err := model.Chat(ctx, t, opts)
	if err != nil {
		return nil, err
	}
	t.Reward = score(question, reply.Content)
	t.Metrics["right"] = 0
	if t.Reward == 1 {
		t.Metrics["right"] = 1
	}
	return t, nil
}
