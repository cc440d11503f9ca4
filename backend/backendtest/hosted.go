package backendtest

import (
	"context"
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

func testReply(t *subtest, b art.Backend) {
	response := firstReply(t, register(t, b, nil))
	if response.Finish == "" || response.Usage.PromptTokens == 0 || response.Usage.CompletionTokens == 0 {
		t.Errorf("finish %q, usage %+v", response.Finish, response.Usage)
	}
	if s := response.Message.Sample; s != nil {
		checkSample(t, s)
	}
}

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
	wantCancelled(t, map[string]func(context.Context) error{
		"Complete": func(ctx context.Context) error { _, err := m.Complete(ctx, ask("Anybody?"), nil); return err },
		"Register": func(ctx context.Context) error { return describe(t, "-cancelled", nil).Register(ctx, b) },
	})
}

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

func testTrainUnsupported(t *subtest, b art.Backend) {
	m := register(t, b, nil)
	_, err := m.Train(t.Context(), gather(t, m, 1), nil)
	wantError(t, "Train", err, art.ErrUnsupported)
	wantStep(t, m, 0)
}
