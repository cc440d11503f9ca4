package art

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/goart-dev/art/grpo/credit"
)

// What only some backends can do: the interfaces that backend/driver documents, which cannot be used here since that
// package imports this one. A test there holds each pair together.
type (
	baseChooser interface {
		DefaultBase(m *Model) string
	}
	logger interface {
		Log(ctx context.Context, m *Model, split string, step int, groups []*TrajectoryGroup,
			metrics map[string]float64) error
	}
	checkpointKeeper interface {
		Checkpoints(ctx context.Context, m *Model) ([]int, error)
		History(ctx context.Context, m *Model) ([]HistoryRow, error)
		DeleteCheckpoints(ctx context.Context, m *Model, keep []int) error
	}
	checkpointRestorer interface {
		Restore(ctx context.Context, m *Model, step int) (next int, err error)
	}
	stateKeeper interface {
		SaveState(ctx context.Context, m *Model, patch any) error
		LoadState(ctx context.Context, m *Model, v any) (found bool, err error)
	}
	lossProvider interface {
		Losses() []credit.Loss
	}
	groupChecker interface {
		CheckGroup(g *TrajectoryGroup, cfg *TrainConfig) credit.Reason
	}
	trainChecker interface {
		CheckTrain(cfg *TrainConfig) error
	}
	rateChooser interface {
		LearningRate(m *Model) (float64, error)
	}
	sftTrainer interface {
		TrainSFT(ctx context.Context, m *Model, trajectories []*Trajectory, cfg *SFTConfig) (*TrainResult, error)
	}
	dpoTrainer interface {
		TrainDPO(ctx context.Context, m *Model, pairs []Preference, cfg *DPOConfig) (*TrainResult, error)
	}
	httpServer interface {
		Handler(opts *HandlerOptions) (http.Handler, error)
		Transport(m *Model) http.RoundTripper
	}
	pinner interface {
		Pin(m *Model) (pinned func(ctx context.Context) context.Context, step int, err error)
	}
	stepPinner interface {
		PinStep(ctx context.Context, m *Model, step int) (pinned func(ctx context.Context) context.Context, err error)
	}
	streamer interface {
		Stream(ctx context.Context, m *Model, req *ChatRequest, piece func(Piece) error) (*ChatResponse, error)
	}
	tokenizer interface {
		Tokenize(ctx context.Context, m *Model, req *ChatRequest, reply *Message) (prompt, ids []int32, err error)
		Encode(ctx context.Context, m *Model, text string, special bool) ([]int32, error)
		Decode(ctx context.Context, m *Model, ids []int32) (string, error)
		TokenBytes(ctx context.Context, m *Model, ids []int32) ([][]byte, error)
	}
	sampler interface {
		Logprobs(ctx context.Context, m *Model, ids []int32) (logprobs []float32, step int, err error)
		Sample(ctx context.Context, m *Model, prompt []int32, s Sampling, piece func(Piece) error) (*ChatResponse, error)
	}
)

// The part of backend/loop's Trainer that makes steps and models.
type (
	publisher interface {
		Publish(ctx context.Context, m *Model, groups []*TrajectoryGroup, metrics map[string]float64) (step int, err error)
	}
	snapshotter interface {
		Snapshot(ctx context.Context, m *Model, path string, s *Model) error
	}
	releaser interface {
		Release(ctx context.Context, m *Model) error
	}
)

// capability returns the backend as the optional interface T, which name is called for authors of backends.
func capability[T any](m *Model, op, name string) (T, error) {
	var none T
	b, err := m.registered(op)
	if err != nil {
		return none, err
	}
	if t, ok := b.(T); ok {
		return t, nil
	}
	return none, &Error{op, fmt.Errorf("%w: %T", ErrUnsupported, b),
		"use a backend that implements " + name + ", such as backend/local"}
}

// trainable is capability for a model that can be trained.
func trainable[T any](m *Model, op, name string) (T, error) {
	t, err := capability[T](m, op, name)
	if err == nil {
		err = m.Trainable(op)
	}
	return t, err
}

// Publish makes the training state the next step: requests that start after it returns are answered by it, and it is
// stored as a step of [Model.Train] is. groups are what was trained on and metrics what was measured, stored under
// split "train" and the step before; both may be nil. It returns the new step.
func (m *Model) Publish(
	ctx context.Context, groups []*TrajectoryGroup, metrics map[string]float64,
) (step int, err error) {
	t, err := trainable[publisher](m, "publish", "loop.Trainer")
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
	t, err := trainable[snapshotter](m, "snapshot", "loop.Trainer")
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
