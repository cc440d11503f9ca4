package main

import (
	"context"
	"errors"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/examples/arte/mailbox"
)

// prompt is the system message. It is as short as a small model likes it.
const prompt = "Call search with a query. Then call read with that id. Then call answer with the number and the id."

// policy writes the next message of an agent.
type policy func(context.Context, *art.History) (art.Message, error)

// sampled is the policy of a model: the one that is trained, or any other.
func sampled(model *art.Model, opts *art.ChatOptions) policy {
	return func(ctx context.Context, h *art.History) (art.Message, error) {
		response, err := model.Complete(ctx, h, opts)
		if err != nil {
			return art.Message{}, err
		}
		return response.Message, nil
	}
}

// run is an agent at work on a question.
type run struct {
	store    *mailbox.Store
	question mailbox.Question
	outcome
}

// answer lets a policy work on a question until it answers, breaks a rule or is out of turns.
func answer(ctx context.Context, next policy, r *run) (*art.Trajectory, error) {
	t := art.NewTrajectory(art.System(prompt), art.User(r.question.Text))
	t.Tools = tools(*level)
	for r.end == working && r.turns < maxTurns {
		r.turns++
		reply, err := next(ctx, &t.History)
		if errors.Is(err, art.ErrContextLength) {
			break // as out of turns
		}
		if err != nil {
			return nil, err
		}
		t.Add(reply)
		if len(reply.ToolCalls) == 0 {
			r.end = noCall
			break
		}
		result, err := r.call(ctx, &reply.ToolCalls[0]) // further calls of the turn are ignored
		if err != nil {
			return nil, err
		}
		t.Add(art.ToolResult(reply.ToolCalls[0].ID, result))
	}
	t.Reward, t.Metrics = r.reward(), r.metrics()
	return t, nil
}
