package main

import (
	"context"
	"encoding/json"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/grpo/dataset"
)

// constant is the schedule of art sft under which the learning rate does not fall.
const constant = string(art.ScheduleConstant)

// setSchedule translates --schedule.
func (s *sftVerb) setSchedule() error {
	switch shape := art.Schedule(s.schedule); shape {
	case art.ScheduleConstant, art.ScheduleLinear, art.ScheduleCosine:
		s.cfg.Schedule = shape
	default:
		return badUsage("--schedule %s: want %s, %s or %s", shape, constant, art.ScheduleLinear, art.ScheduleCosine)
	}
	return nil
}

// countSteps reads the files once, if the learning rate depends on the number of steps.
func (s *sftVerb) countSteps(ctx context.Context, files []string) error {
	if s.schedule == constant && s.cfg.Warmup == 0 {
		return nil
	}
	examples := 0
	for _, err := range dataset.Stream[json.RawMessage](files, nil) {
		if err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		examples++
	}
	s.steps = s.epochs * ((examples + s.size - 1) / s.size)
	if s.maxSteps > 0 {
		s.steps = min(s.steps, s.maxSteps)
	}
	return nil
}

// part is what a step, counted from 0, is of the run. It depends on nothing else, so that a run that goes on has the
// rates of one that was never stopped.
func (s *sftVerb) part(step int) art.SchedulePart {
	if s.steps == 0 {
		return art.SchedulePart{}
	}
	return art.SchedulePart{From: float64(step) / float64(s.steps), To: float64(step+1) / float64(s.steps)}
}
