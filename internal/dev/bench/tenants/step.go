package main

import (
	"context"
	"fmt"
	"hash/fnv"
	"time"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/server/child"
)

// spent is the time of a step, and the processor time of its parts in this process and in the server.
type spent struct{ rollouts, training, rolloutsCPU, trainingCPU time.Duration }

// step gathers and trains. s is the server of a model that is not in this process.
func step(ctx context.Context, m *art.Model, n int, s *child.Server) (x spent, err error) {
	before, err := processorTime(s)
	if err != nil {
		return x, err
	}
	start := time.Now()
	questions := make([]string, *groups)
	for i := range questions {
		questions[i] = fmt.Sprintf("Tell me about the number %d.", 100*n+i)
	}
	list, err := art.GatherGroups(ctx, questions, func(ctx context.Context, question string) (*art.Trajectory, error) {
		t := art.NewTrajectory(art.User(question))
		reply, err := m.Chat(ctx, t, nil)
		if err == nil {
			t.Reward = rewardOf(reply.Content)
		}
		return t, err
	}, &art.GatherOptions{GroupSize: *size, Concurrency: *groups * *size, Seed: uint64(n)})
	if err != nil {
		return x, err
	}
	x.rollouts = time.Since(start)
	between, err := processorTime(s)
	if err != nil {
		return x, err
	}
	start = time.Now()
	if _, err := m.Train(ctx, list, &art.TrainConfig{LearningRate: 1e-4}); err != nil {
		return x, err
	}
	x.training = time.Since(start)
	after, err := processorTime(s)
	x.rolloutsCPU, x.trainingCPU = between-before, after-between
	return x, err
}

// rewardOf is 0 to 1, and differs between replies.
func rewardOf(reply string) float64 {
	h := fnv.New32a()
	h.Write([]byte(reply))
	return float64(h.Sum32()%1000) / 999
}
