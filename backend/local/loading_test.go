package local

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art"
)

// held is a backend whose loads of one folder wait until they are let go, or given up.
type held struct {
	*Backend
	base  string
	began chan struct{} // a value for each load that has started
	gate  chan struct{} // closed to let go
	loads atomic.Int32
}

func hold(t *testing.T) *held {
	h := &held{Backend: open(t, t.TempDir()), base: tinyFolder(t, func(map[string]any) {}), began: make(chan struct{}, 10),
		gate: make(chan struct{})}
	h.onLoad = func(ctx context.Context, path string) {
		if path != h.base {
			return
		}
		h.loads.Add(1)
		h.began <- struct{}{}
		select {
		case <-h.gate:
		case <-ctx.Done():
		}
	}
	return h
}

// start registers a model on the held base in the background.
func (h *held) start(ctx context.Context, name string) (*art.Model, <-chan error) {
	m, done := art.NewModel(name, &art.ModelOptions{Base: h.base, Frozen: true}), make(chan error, 1)
	go func() { done <- m.Register(ctx, h.Backend) }()
	return m, done
}

// soon waits for the end of what must not wait.
func soon(t *testing.T, done <-chan error) error {
	t.Helper()
	select {
	case err := <-done:
		return err
	case <-time.After(time.Minute):
		t.Fatal("it waits for a load")
		return nil
	}
}

// TestRegister_OthersGoOn: while a base model is loaded other models are listed, registered and answer, and all that
// register on it share one load. One lock held everything up.
func TestRegister_OthersGoOn(t *testing.T) {
	h := hold(t)
	tiny := art.NewModel("tiny", nil)
	require.NoError(t, tiny.Register(t.Context(), h.Backend))
	first, firstDone := h.start(t.Context(), "first")
	<-h.began
	second, secondDone := h.start(t.Context(), "second")
	others := make(chan error, 1)
	go func() {
		_, err := tiny.Complete(t.Context(), ask("2+2?"), &art.ChatOptions{MaxTokens: new(2)})
		later := art.NewModel("later", nil)
		err = errors.Join(err, later.Register(t.Context(), h.Backend))
		_, notYet := h.Complete(t.Context(), first, &art.ChatRequest{})
		if !errors.Is(notYet, art.ErrNotRegistered) {
			err = errors.Join(err, errors.New("a model answers before it is there"), notYet)
		}
		if n := len(h.registered()); n != 2 {
			err = errors.Join(err, errors.New("not 2 models are listed"))
		}
		others <- err
	}()
	require.NoError(t, soon(t, others))
	again := make(chan error, 1)
	go func() { _, err := h.Register(t.Context(), first); again <- err }()
	require.ErrorContains(t, soon(t, again), "registered already")

	close(h.gate)
	require.NoError(t, soon(t, firstDone))
	require.NoError(t, soon(t, secondDone))
	require.EqualValues(t, 1, h.loads.Load())
	require.Same(t, h.models[first].base, h.models[second].base)
}

// TestRegister_Cancelled: a caller that is cancelled does not wait, the load continues for the others, and ends when
// nobody waits.
func TestRegister_Cancelled(t *testing.T) {
	h := hold(t)
	why := errors.New("enough")
	impatient, cancel := context.WithCancelCause(t.Context())
	_, firstDone := h.start(impatient, "first")
	<-h.began
	patient, stop := context.WithCancelCause(t.Context())
	_, secondDone := h.start(patient, "second")
	waits := func(n int) {
		require.Eventually(t, func() bool {
			h.mu.Lock()
			defer h.mu.Unlock()
			l := h.bases[baseKey{h.base, "float32", "", 0}]
			return l != nil && l.wait == n
		}, time.Minute, time.Millisecond)
	}
	waits(2)
	cancel(why)
	require.ErrorIs(t, soon(t, firstDone), why)
	waits(1)
	stop(why)
	require.ErrorIs(t, soon(t, secondDone), why)

	_, thirdDone := h.start(t.Context(), "third")
	<-h.began
	close(h.gate)
	require.NoError(t, soon(t, thirdDone))
	require.EqualValues(t, 2, h.loads.Load(), "the first was given up, and the next began anew")
	require.Len(t, h.bases, 1)
}

// TestClose_DuringLoad: a registration is given up, and Close does not wait for its load to end by itself.
func TestClose_DuringLoad(t *testing.T) {
	h := hold(t)
	_, done := h.start(t.Context(), "first")
	<-h.began
	closed := make(chan error, 1)
	go func() { closed <- h.Close() }()
	require.ErrorIs(t, soon(t, done), art.ErrClosed)
	require.NoError(t, soon(t, closed))
	require.Zero(t, booked(t, h.memory))
	_, err := h.Register(t.Context(), art.NewModel("late", nil))
	require.ErrorIs(t, err, art.ErrClosed)
}

// TestRegister_FailedLoad: all waiting callers get the error, and the next one tries again.
func TestRegister_FailedLoad(t *testing.T) {
	h := hold(t)
	weights := filepath.Join(h.base, "model.safetensors")
	content, err := os.ReadFile(weights)
	require.NoError(t, err)
	require.NoError(t, os.Truncate(weights, 100))
	_, first := h.start(t.Context(), "first")
	<-h.began
	close(h.gate)
	require.ErrorIs(t, soon(t, first), art.ErrBaseModel)
	require.Empty(t, h.bases)
	require.Zero(t, booked(t, h.memory))
	require.NoError(t, os.WriteFile(weights, content, 0o600))
	_, second := h.start(t.Context(), "first")
	require.NoError(t, soon(t, second))
}

// TestRegister_Many: models on two bases are registered, listed and closed at once.
func TestRegister_Many(t *testing.T) {
	h := hold(t)
	close(h.gate)
	var wg sync.WaitGroup
	for i, name := range []string{"a", "b", "c", "d"} {
		wg.Go(func() {
			m := art.NewModel(name, &art.ModelOptions{Base: []string{"tiny", h.base}[i%2], Frozen: true})
			if err := m.Register(t.Context(), h.Backend); err != nil && !errors.Is(err, art.ErrClosed) {
				t.Error(err)
			}
			h.registered()
		})
	}
	wg.Go(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	wg.Wait()
}

// TestRegister_Experts: a mixture of experts is registered with default options, which are those of its layers that
// adapters attach to, and a run continues. It failed with "no layer is called gate_proj".
func TestRegister_Experts(t *testing.T) {
	base, dir := expertsFolder(t), t.TempDir()
	for range 2 {
		b := open(t, dir)
		m := art.NewModel("m", &art.ModelOptions{Base: base})
		require.NoError(t, m.Register(t.Context(), b))
		targets := b.models[m].policy.adapter.Config().Targets
		require.ElementsMatch(t, []string{"q_proj", "k_proj", "v_proj", "o_proj"}, targets)
		require.NoError(t, b.Close())
	}
	b := open(t, dir)
	same := art.NewModel("m",
		&art.ModelOptions{Base: base, LoRA: art.LoRA{Targets: []string{"q_proj", "k_proj", "v_proj", "o_proj"}}})
	require.NoError(t, same.Register(t.Context(), b), "the same targets, named")
}

// TestTrain_Experts: the logprobs of the trainer are those of the sampler of a mixture of experts too, when an adapter
// is trained and when all weights are.
func TestTrain_Experts(t *testing.T) {
	base := expertsFolder(t)
	learn(t, base, art.LoRA{}, Options{Dir: t.TempDir()})
	m := art.NewModel("all", &art.ModelOptions{Base: base, Seed: 4, Full: true, Chat: art.ChatOptions{MaxTokens: new(7)}})
	require.NoError(t, m.Register(t.Context(), open(t, t.TempDir())))
	fullStep(t, m)
}

// TestRegister_OldTargets: runs that recorded all default targets, as those before did, go on.
func TestRegister_OldTargets(t *testing.T) {
	dir := t.TempDir()
	targets := []string{"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"}
	for _, l := range []art.LoRA{{Targets: targets}, {}} {
		b := open(t, dir)
		require.NoError(t, art.NewModel("m", &art.ModelOptions{LoRA: l}).Register(t.Context(), b))
		require.NoError(t, b.Close())
	}
	frozen := &art.ModelOptions{Base: expertsFolder(t), Frozen: true, LoRA: art.LoRA{Targets: targets}}
	for range 2 {
		b := open(t, dir)
		require.NoError(t, art.NewModel("frozen", frozen).Register(t.Context(), b))
		require.NoError(t, b.Close())
		frozen.LoRA = art.LoRA{}
	}
}
