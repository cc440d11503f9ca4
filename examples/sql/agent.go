package main

import (
	"context"
	"errors"
	"slices"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/examples/sql/world"
)

// maxTurns is how many messages an agent may write for a question: a query, another one if it fails, and the answer.
const maxTurns = 3

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

// greedy is the policy of a model that always takes the likeliest token.
func greedy(model *art.Model) policy { return sampled(model, &art.ChatOptions{Temperature: new(0.0)}) }

// answer lets a policy work on a question, after the messages that it begins with, until it answers or is out of turns.
func answer(ctx context.Context, next policy, begin []art.Message, q *world.Question) (*art.Trajectory, error) {
	t := art.NewTrajectory(slices.Clone(begin)...) // it is appended to
	t.Add(ask(q.Schema, q.Text))
	if !inText {
		t.Tools = tools
	}
	o := outcome{}
	for !o.answered && o.turns < maxTurns {
		o.turns++
		reply, err := next(ctx, &t.History)
		if errors.Is(err, art.ErrContextLength) {
			break // as out of turns
		}
		if err != nil {
			return nil, err
		}
		t.Add(reply)
		c, ok := read(&reply)
		if !ok {
			o.answered = true
			o.missed, o.known = q.Judge(reply.Content)
			break
		}
		result := world.Result{Text: c.problem}
		if c.problem == "" {
			if result, err = q.Store.Query(ctx, c.query); err != nil {
				return nil, err
			}
		}
		if o.ran = o.ran || result.Ran; result.Ran {
			_, found := q.Judge(result.Cell)
			o.found = o.found || found
		}
		t.Add(c.result(result.Text))
	}
	t.Reward, t.Metrics = o.reward(), o.metrics()
	t.Metadata["question"] = q.ID
	if samples := t.Samples(); len(samples) > 0 {
		last := samples[len(samples)-1]
		t.Metrics["tokens"] = float64(len(last.PromptIDs) + len(last.IDs))
	}
	return t, nil
}
