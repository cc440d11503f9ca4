package main

import (
	"context"
	"fmt"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/examples/agents"
	"github.com/goart-dev/art/examples/agents/mcp"
)

// learnFrom has the teacher of -teacher show how, in the first step of a run: see [agents.Training.Distill]. Where
// there is no checker, rollouts are kept that were completed and in which no call failed.
func (s *settings) learnFrom(ctx context.Context, t *agents.Training[mcp.Scenario], m *models) error {
	if s.teacher == "" || t.Model.Step() > 0 {
		return nil
	}
	teacher, err := m.find(ctx, "teacher", s.teacher)
	if err != nil {
		return err
	}
	keep := func(x *art.Trajectory) bool { return x.Metrics["completed"] == 1 && x.Metrics["tool_errors"] == 0 }
	if t.Checked {
		keep = nil
	}
	d, err := t.Distill(ctx, teacher, s.demos, keep, &art.SFTConfig{
		LearningRate: s.rate, BatchSize: 16, Epochs: 3, Seed: s.seed,
	})
	if err != nil {
		return err
	}
	fmt.Printf("teacher %s: %d of %d rollouts are shown, %d failed, %d were left out\n", teacher.Name(), d.Kept,
		d.Rollouts, d.Failures, len(d.Skipped))
	return nil
}
