//go:build cgo

package xla_test

import (
	"errors"
	"io"
	"sync/atomic"
	"testing"

	"github.com/gomlx/compute"
	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/device/cpu"
	"github.com/goart-dev/art/backend/device/xla"
	"github.com/goart-dev/art/backend/local"
	"github.com/goart-dev/art/internal/graphx/graphtest"
)

// failing is the error of all calls of the device "failing" from now on; nil for none.
var failing atomic.Pointer[error]

func init() {
	compute.Register("failing", func(string) (compute.Backend, error) {
		on, err := cpu.New(nil)
		if err != nil {
			return nil, err
		}
		return graphtest.HookedOn(on, graphtest.Hooks{Run: func() error {
			if err := failing.Load(); err != nil {
				return *err
			}
			return nil
		}}), nil
	})
}

// TestFault_Run: a device that fails as a GPU does, in sampling and in training, gives errors that say which failure it
// is and what to do. The run stays at its newest step. It goes on when the device does, and on another one.
func TestFault_Run(t *testing.T) {
	defer failing.Store(nil)
	for text, want := range map[string]error{
		"PJRT error (code=8): RESOURCE_EXHAUSTED: Out of memory while trying to allocate 17179869184 bytes": xla.ErrMemory,
		"PJRT error (code=13): INTERNAL: CUDA_ERROR_LAUNCH_FAILED: unspecified launch failure":              xla.ErrLost,
	} {
		t.Run(want.Error(), func(t *testing.T) {
			failing.Store(nil)
			dir := t.TempDir()
			open := func(device string) (*art.Model, *local.Backend) {
				b, err := local.Open(t.Context(), &local.Options{
					Dir: dir, Device: device, Slots: 4, Context: 64, Progress: io.Discard,
				})
				require.NoError(t, err)
				m := art.NewModel("m", &art.ModelOptions{Seed: seed, Chat: art.ChatOptions{
					MaxTokens: new(6), Temperature: new(2.0),
				}})
				require.NoError(t, m.Register(t.Context(), b))
				return m, b
			}
			m, b := open("failing")
			groups, err := art.GatherGroups(t.Context(), []string{"7+5="}, play(m), &art.GatherOptions{GroupSize: 6})
			require.NoError(t, err)
			train := func(m *art.Model) error {
				_, err := m.Train(t.Context(), groups, &art.TrainConfig{LearningRate: 1e-3})
				return err
			}
			require.NoError(t, train(m))
			before := greedy(t, m)

			broken := xla.Fault("xla:cuda", errors.New(text))
			failing.Store(&broken)
			_, chat := m.Chat(t.Context(), art.NewTrajectory(art.User("7+5=")), nil)
			_, _, score := b.Logprobs(t.Context(), m, before.IDs)
			for op, err := range map[string]error{"complete": chat, "logprobs": score, "train": train(m)} {
				require.ErrorIs(t, err, art.ErrDevice, op)
				require.ErrorIs(t, err, want)
				require.NotErrorIs(t, err, art.ErrInvalid)
				var typed *xla.Error
				require.ErrorAs(t, err, &typed)
				require.Equal(t, "xla:cuda", typed.Device)
				require.ErrorContains(t, err, map[error]string{xla.ErrMemory: "smaller Slots", xla.ErrLost: "another one"}[want])
			}
			require.Equal(t, 1, m.Step())

			if errors.Is(want, xla.ErrMemory) { // the device lives on
				failing.Store(nil)
				require.Equal(t, before.Logprobs, greedy(t, m).Logprobs)
				require.NoError(t, b.Close())
				failing.Store(&broken)
			} else {
				require.NoError(t, b.Close())
			}
			m, b = open("cpu")
			require.Equal(t, 1, m.Step())
			require.Equal(t, before.Logprobs, greedy(t, m).Logprobs)
			require.NoError(t, train(m))
			require.Equal(t, 2, m.Step())
			require.NoError(t, b.Close())
		})
	}
}
