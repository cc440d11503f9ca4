package driver_test

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/driver"
	"github.com/goart-dev/art/backend/loop"
	"github.com/goart-dev/art/grpo/credit"
	"github.com/goart-dev/art/internal/dev/arttest"
)

// asked is a backend that counts how often it is asked for what only some backends can do.
type asked struct{ times int }

func (a *asked) DefaultBase(*art.Model) string            { a.times++; return "chosen" }
func (a *asked) Losses() []credit.Loss                    { a.times++; return []credit.Loss{"own"} }
func (a *asked) CheckTrain(*art.TrainConfig) error        { a.times++; return nil }
func (a *asked) LearningRate(*art.Model) (float64, error) { a.times++; return 1, nil }
func (a *asked) CheckGroup(*art.TrajectoryGroup, *art.TrainConfig) credit.Reason {
	a.times++
	return credit.ReasonNoSamples
}

// plain hides the optional interfaces of a backend.
type plain struct{ art.Backend }

// TestPairs: a Model uses each interface of a backend that has it and nothing else, and says that it is missing where
// it is: what the root asserts has the same methods.
func TestPairs(t *testing.T) {
	ctx := t.Context()
	trajectory := art.NewTrajectory(art.User("?"), art.Assistant("!"))
	pair := art.Preference{Chosen: trajectory, Rejected: art.NewTrajectory(art.User("?"), art.Assistant("no"))}
	history := &art.History{Messages: []art.Message{art.User("?")}}
	for name, c := range map[string]struct {
		with func(f *arttest.Backend) art.Backend
		use  func(m *art.Model) error
	}{
		"Logger": {
			func(f *arttest.Backend) art.Backend {
				return struct {
					plain
					driver.Logger
				}{plain{f}, f}
			},
			func(m *art.Model) error { return m.Log(ctx, "val", nil, map[string]float64{"x": 1}) },
		},
		"CheckpointKeeper": {
			func(f *arttest.Backend) art.Backend {
				return struct {
					plain
					driver.CheckpointKeeper
				}{plain{f}, f}
			},
			func(m *art.Model) error { return m.DeleteCheckpoints(ctx, "") },
		},
		"CheckpointRestorer": {
			func(f *arttest.Backend) art.Backend {
				return struct {
					plain
					driver.CheckpointRestorer
				}{plain{f}, f}
			},
			func(m *art.Model) error { _, err := m.Restore(ctx, 0); return err },
		},
		"StateKeeper": {
			func(f *arttest.Backend) art.Backend {
				return struct {
					plain
					driver.StateKeeper
				}{plain{f}, f}
			},
			func(m *art.Model) error { return m.SaveState(ctx, map[string]int{"x": 1}) },
		},
		"SFTTrainer": {
			func(f *arttest.Backend) art.Backend {
				return struct {
					plain
					driver.SFTTrainer
				}{plain{f}, f}
			},
			func(m *art.Model) error { _, err := m.TrainSFT(ctx, []*art.Trajectory{trajectory}, nil); return err },
		},
		"DPOTrainer": {
			func(f *arttest.Backend) art.Backend {
				return struct {
					plain
					driver.DPOTrainer
				}{plain{f}, f}
			},
			func(m *art.Model) error { _, err := m.TrainDPO(ctx, []art.Preference{pair}, nil); return err },
		},
		"HTTPServer": {
			func(f *arttest.Backend) art.Backend {
				return struct {
					plain
					driver.HTTPServer
				}{plain{f}, web{}}
			},
			func(m *art.Model) error {
				_, err := m.HTTPClient().Get("http://model/v1/models") //nolint:bodyclose // there is none
				if errors.Is(err, errAsked) {
					return nil
				}
				return err
			},
		},
		"Pinner": {
			func(f *arttest.Backend) art.Backend {
				return struct {
					plain
					driver.Pinner
				}{plain{f}, f}
			},
			func(m *art.Model) error { _, err := m.Pin(); return err },
		},
		"StepPinner": {
			func(f *arttest.Backend) art.Backend {
				return struct {
					plain
					driver.StepPinner
				}{plain{f}, f}
			},
			func(m *art.Model) error { _, err := m.PinStep(ctx, 0); return err },
		},
		"Tokenizer": {
			func(f *arttest.Backend) art.Backend {
				return struct {
					plain
					driver.Tokenizer
				}{plain{f}, f}
			},
			func(m *art.Model) error { _, err := m.Tokenize(ctx, history, nil); return err },
		},
		"Sampler": {
			func(f *arttest.Backend) art.Backend {
				return struct {
					plain
					driver.Sampler
				}{plain{f}, f}
			},
			func(m *art.Model) error { _, err := m.Sample(ctx, []int32{1}, nil, nil); return err },
		},
		"loop.Trainer": {
			func(f *arttest.Backend) art.Backend {
				return struct {
					plain
					loop.Trainer
				}{plain{f}, f}
			},
			func(m *art.Model) error {
				_, err := m.Publish(ctx, nil, nil)
				if err == nil {
					_, err = m.Snapshot(ctx, "")
				}
				if err == nil {
					err = m.Release(ctx)
				}
				return err
			},
		},
	} {
		without, with := register(t, plain{&arttest.Backend{}}), register(t, c.with(&arttest.Backend{}))
		if err := c.use(without); !errors.Is(err, art.ErrUnsupported) {
			t.Errorf("without %s: error %v, want ErrUnsupported", name, err)
		}
		if err := c.use(with); err != nil {
			t.Errorf("with %s: %v", name, err)
		}
	}
}

// TestPairs_Asked: interfaces that a Model does without are asked where they are there.
func TestPairs_Asked(t *testing.T) {
	for name, with := range map[string]func(f *arttest.Backend, a *asked) art.Backend{
		"BaseChooser": func(f *arttest.Backend, a *asked) art.Backend {
			return struct {
				plain
				driver.BaseChooser
			}{plain{f}, a}
		},
		"TrainChecker": func(f *arttest.Backend, a *asked) art.Backend {
			return struct {
				plain
				driver.TrainChecker
			}{plain{f}, a}
		},
		"RateChooser": func(f *arttest.Backend, a *asked) art.Backend {
			return struct {
				plain
				driver.RateChooser
			}{plain{f}, a}
		},
		"LossProvider": func(f *arttest.Backend, a *asked) art.Backend {
			return struct {
				plain
				driver.LossProvider
			}{plain{f}, a}
		},
	} {
		a := &asked{}
		m := register(t, with(&arttest.Backend{}, a))
		if _, err := m.Train(t.Context(), []*art.TrajectoryGroup{{}}, nil); err != nil {
			t.Fatal(err)
		}
		if a.times == 0 {
			t.Errorf("%s was not asked", name)
		}
	}
}

// TestPairs_GroupChecker: the pipeline asks which groups a training would skip.
func TestPairs_GroupChecker(t *testing.T) {
	a, f := &asked{}, &arttest.Backend{}
	m := register(t, struct {
		plain
		driver.GroupChecker
	}{plain{f}, a})
	_, err := art.Pipeline(t.Context(), m, []int{1}, func(context.Context, int) (*art.Trajectory, error) {
		return art.NewTrajectory(art.User("?")), nil
	}, &art.PipelineOptions{Steps: 1})
	if !errors.Is(err, art.ErrCollapsed) || a.times == 0 {
		t.Errorf("asked %d times, error %v, want ErrCollapsed: it would skip every group", a.times, err)
	}
}

// TestPairs_Streamer: a reply comes in the pieces of a backend that streams, and in one of others.
func TestPairs_Streamer(t *testing.T) {
	for want, b := range map[int]art.Backend{
		1: plain{&arttest.Backend{}},
		2: struct {
			plain
			driver.Streamer
		}{plain{&arttest.Backend{}}, halves{}},
	} {
		got := 0
		_, err := register(t, b).Stream(t.Context(), &art.History{Messages: []art.Message{art.User("?")}}, nil,
			func(art.Piece) error { got++; return nil })
		if err != nil || got != want {
			t.Errorf("%d pieces and error %v, want %d", got, err, want)
		}
	}
}

func register(t *testing.T, b art.Backend) *art.Model {
	t.Helper()
	m := art.NewModel("m", nil)
	if err := m.Register(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	return m
}

var errAsked = errors.New("asked")

// web is an HTTP API of which every request fails.
type web struct{}

func (web) Handler(*art.HandlerOptions) (http.Handler, error) { return nil, errAsked }
func (web) Transport(*art.Model) http.RoundTripper            { return web{} }
func (web) RoundTrip(*http.Request) (*http.Response, error)   { return nil, errAsked }

// halves streams a reply of two pieces.
type halves struct{}

func (halves) Stream(
	_ context.Context, _ *art.Model, _ *art.ChatRequest, piece func(art.Piece) error,
) (*art.ChatResponse, error) {
	if err := errors.Join(piece(art.Piece{Content: "a"}), piece(art.Piece{Content: "b"})); err != nil {
		return nil, err
	}
	return &art.ChatResponse{Message: art.Assistant("ab"), Finish: art.FinishStop}, nil
}
