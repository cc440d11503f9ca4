package art

import (
	"context"
	"time"
)

// Publish makes the training state the next step: requests that start after it returns are answered by it, and it is
// stored as a step of [Model.Train] is. groups are what was trained on and metrics what was measured, stored under
// split "train" and the step before; both may be nil. It returns the new step.
func (m *Model) Publish(
	ctx context.Context, groups []*TrajectoryGroup, metrics map[string]float64,
) (step int, err error) {
	t, err := trainable[publisher](m, "publish")
	if err != nil {
		return 0, err
	}
	l := &learning{m, time.Now(), m.Step() + 1, groups}
	step, err = t.Publish(ctx, m, groups, metrics)
	if _, err := l.end(&TrainResult{Step: step, Metrics: metrics}, err); err != nil {
		return 0, err
	}
	return step, nil
}

// Snapshot returns a model that samples with weights as they are now: those of path, see loop.LoadWeights, or those
// of the training state when path is "". Later training does not change it. It has the name, options and step of m,
// answers like a registered model, with a [Sample] in each reply, and has no run of its own: it can be neither trained
// nor logged. [Model.Release] frees its memory.
func (m *Model) Snapshot(ctx context.Context, path string) (*Model, error) {
	t, err := trainable[snapshotter](m, "snapshot")
	if err != nil {
		return nil, err
	}
	s := NewModel(m.name, &m.opts)
	s.snapshot = true
	if err := t.Snapshot(ctx, m, path, s); err != nil {
		return nil, err
	}
	s.backend = m.backend
	s.reached(m.Step())
	return s, nil
}

// Release makes the backend forget the model and free its memory. What is stored stays; another [Model] of the same
// name can be registered afterwards. The model is of no use any more.
func (m *Model) Release(ctx context.Context) error {
	t, err := capability[releaser](m, "release", "loop.Trainer")
	if err != nil {
		return err
	}
	return t.Release(ctx, m)
}

// trainable returns the backend of a model that can be trained as T, a part of backend/loop's Trainer.
func trainable[T any](m *Model, op string) (T, error) {
	t, err := capability[T](m, op, "loop.Trainer")
	if err == nil {
		err = m.Trainable(op)
	}
	return t, err
}
