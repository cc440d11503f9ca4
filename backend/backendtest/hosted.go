package backendtest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/goart-dev/art"
)

// RunHosted tests a backend that completes and does not train, as those of models behind an API. open returns a new
// one on which nothing is registered; RunHosted closes it. Base "tiny" must work, and need not be deterministic.
func RunHosted(t *testing.T, open func(t *testing.T) art.Backend) {
	tests(t, opened(t, open), []named{
		{"Register", testRegister},
		{"CompleteUnregistered", testUnregistered},
		{"Reply", testReply},
		{"Frozen", testFrozen},
		{"Together", testTogether},
		{"Cancelled", testHostedCancelled},
		{"Record", testRecord},
		{"TrainUnsupported", testTrainUnsupported},
		{"Logger", testLogger},
		{"StateKeeper", testStateKeeper},
	})
	tests(t, opened(t, open), []named{{"Close", testClose}})
}

// testReply checks what a reply says about itself.
func testReply(t *subtest, b art.Backend) {
	m := register(t, b, nil)
	response := complete(t, m, "What is the colour of grass?", seeded(1))
	if response.Message.Role != art.RoleAssistant {
		t.Errorf("role of the reply is %q", response.Message.Role)
	}
	if want := m.Name() + "@0"; response.Model != want {
		t.Errorf("model of the response is %q, want %q", response.Model, want)
	}
	if response.Finish == "" || response.Usage.PromptTokens == 0 || response.Usage.CompletionTokens == 0 {
		t.Errorf("finish %q, usage %+v", response.Finish, response.Usage)
	}
	if s := response.Message.Sample; s != nil {
		checkSample(t, s)
	}
}

// testTogether checks that requests do not mix.
func testTogether(t *subtest, b art.Backend) {
	m := register(t, b, nil)
	const n = 8
	var errs [n]error
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			errs[i] = protect(func() error {
				_, err := m.Complete(t.Context(), ask(fmt.Sprintf("What comes after %d?", i)), nil)
				return err
			})
		})
	}
	all.Wait()
	for i, err := range errs {
		if err != nil {
			t.Errorf("request %d: %v", i, err)
		}
	}
}

// testHostedCancelled checks that nothing is done for a context that has ended.
func testHostedCancelled(t *subtest, b art.Backend) {
	m := register(t, b, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, call := range map[string]func() error{
		"Complete": func() error { _, err := m.Complete(ctx, ask("Anybody?"), nil); return err },
		"Register": func() error { return describe(t, "-cancelled", nil).Register(ctx, b) },
	} {
		if err := inTime(t, call); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: error is %v, want context.Canceled", name, err)
		}
	}
}

// testRecord checks that a trajectory is recorded from the context.
func testRecord(t *subtest, b art.Backend) {
	m := register(t, b, nil)
	trajectory, err := art.Record(t.Context(), func(ctx context.Context) error {
		_, err := m.Complete(ctx, ask("Hello?"), nil)
		return err
	})
	if err != nil || len(trajectory.Messages) != 3 {
		t.Fatalf("error %v, %d messages; want none and 3", err, len(trajectory.Messages))
	}
}

// testTrainUnsupported checks that a training says that there is none.
func testTrainUnsupported(t *subtest, b art.Backend) {
	m := register(t, b, nil)
	_, err := m.Train(t.Context(), gather(t, m, 1), nil)
	wantError(t, "Train", err, art.ErrUnsupported)
	wantStep(t, m, 0)
}
