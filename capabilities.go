package art

import (
	"context"
	"fmt"
	"net/http"

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
