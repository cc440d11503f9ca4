package backendtest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/goart-dev/art"
)

func testUnregistered(t *subtest, b art.Backend) {
	request := &art.ChatRequest{
		Messages: ask("Who are you?").Messages, Settings: art.Sampling{Temperature: 1, TopP: 1, MaxTokens: maxTokens},
	}
	_, err := b.Complete(t.Context(), describe(t, "", nil), request)
	wantError(t, "Complete", err, art.ErrNotRegistered)
}

// firstReply returns the reply of seed 1 to a question, and checks whose it is.
func firstReply(t *subtest, m *art.Model) *art.ChatResponse {
	t.Helper()
	response := complete(t, m, "What is the colour of grass?", seeded(1))
	if response.Message.Role != art.RoleAssistant {
		t.Errorf("role of the reply is %q", response.Message.Role)
	}
	if want := m.Name() + "@0"; response.Model != want {
		t.Errorf("model of the response is %q, want %q", response.Model, want)
	}
	return response
}

func testSample(t *subtest, b art.Backend) {
	response := firstReply(t, register(t, b, nil))
	s := sampleOf(t, response)
	checkSample(t, s)
	if s.Step != 0 || s.Finish != response.Finish || s.Settings.Seed != 1 || s.Settings.MaxTokens != maxTokens {
		t.Errorf("sample has step %d, finish %q, settings %+v; the response has finish %q", s.Step, s.Finish, s.Settings,
			response.Finish)
	}
	if u := response.Usage; u.PromptTokens != len(s.PromptIDs) || u.CompletionTokens != len(s.IDs) {
		t.Errorf("usage %+v of %d prompt and %d sampled ids", u, len(s.PromptIDs), len(s.IDs))
	}
}

// checkSample checks that the lists of a sample have equal lengths and hold logprobs.
func checkSample(t *subtest, s *art.Sample) {
	t.Helper()
	if len(s.PromptIDs) == 0 || len(s.IDs) == 0 || len(s.IDs) != len(s.Logprobs) {
		t.Errorf("%d prompt ids, %d ids, %d logprobs", len(s.PromptIDs), len(s.IDs), len(s.Logprobs))
	}
	if s.Sampled != nil && len(s.Sampled) != len(s.IDs) || s.Forced != nil && len(s.Forced) != len(s.IDs) {
		t.Errorf("%d ids, %d logprobs as sampled, %d marks of forced ones", len(s.IDs), len(s.Sampled), len(s.Forced))
	}
	for i, x := range append(slices.Clone(s.Logprobs), s.Sampled...) {
		// A distribution that sums to 1 only approximately may give slightly more than 0.
		if x := float64(x); math.IsNaN(x) || math.IsInf(x, 0) || x > 1e-4 {
			t.Errorf("logprob %d is %v", i, x)
		}
	}
}

func testFrozen(t *subtest, b art.Backend) {
	m := register(t, b, &art.ModelOptions{Frozen: true})
	if complete(t, m, "Are you frozen?", nil).Message.Sample != nil {
		t.Error("the reply of a frozen model has a Sample")
	}
	_, err := m.Train(t.Context(), gather(t, m, 1), nil)
	wantError(t, "Train", err, art.ErrFrozen)
	wantStep(t, m, 0)
}

func sameReply(t *subtest, a, b *art.ChatResponse) bool {
	return a.Message.Content == b.Message.Content && slices.Equal(sampleOf(t, a).IDs, sampleOf(t, b).IDs) &&
		a.Finish == b.Finish
}

// testSeed checks that a seed determines a reply at temperature 1, and that greedy replies need none.
func testSeed(t *subtest, b art.Backend) {
	m := register(t, b, nil)
	const question = "Tell me a word."
	first := complete(t, m, question, seeded(7))
	if again := complete(t, m, question, seeded(7)); !sameReply(t, first, again) {
		t.Errorf("same request and seed, other reply: %q and %q", first.Message.Content, again.Message.Content)
	}
	zero, one, two := 0.0, uint64(1), uint64(2)
	greedy := complete(t, m, question, &art.ChatOptions{Temperature: &zero, Seed: &one})
	if other := complete(t, m, question, &art.ChatOptions{Temperature: &zero, Seed: &two}); !sameReply(t, greedy, other) {
		t.Errorf("greedy replies differ: %q and %q", greedy.Message.Content, other.Message.Content)
	}
	for seed := range uint64(32) {
		if !sameReply(t, first, complete(t, m, question, seeded(seed))) {
			return
		}
	}
	t.Error("32 seeds, one reply: the seed has no effect")
}

// together makes 8 requests at once, with or without seeds, and returns their replies and what makes one alone.
func together(
	t *subtest, m *art.Model, seeds bool,
) (replies [8]*art.ChatResponse, alone func(i int) *art.ChatResponse) {
	t.Helper()
	question := func(i int) string { return fmt.Sprintf("What comes after %d?", i%3) }
	opts := func(i int) *art.ChatOptions {
		if seeds {
			return seeded(uint64(i))
		}
		return nil
	}
	var errs [len(replies)]error
	var all sync.WaitGroup
	for i := range replies {
		all.Go(func() {
			errs[i] = protect(func() (err error) {
				replies[i], err = m.Complete(t.Context(), ask(question(i)), opts(i))
				return err
			})
		})
	}
	all.Wait()
	must(t, "one of the requests", errors.Join(errs[:]...))
	return replies, func(i int) *art.ChatResponse { return complete(t, m, question(i), opts(i)) }
}

func testConcurrent(t *subtest, b art.Backend) {
	replies, alone := together(t, register(t, b, nil), true)
	for i, reply := range replies {
		if want := alone(i); !sameReply(t, want, reply) {
			t.Errorf("request %d: %q alone, %q among others", i, want.Message.Content, reply.Message.Content)
		}
	}
}

func testMaxTokens(t *subtest, b art.Backend) {
	m := register(t, b, nil)
	for seed := range uint64(8) {
		limit := 1 + int(seed)%3
		response := complete(t, m, "Tell me everything.", &art.ChatOptions{MaxTokens: &limit, Seed: &seed})
		n := len(sampleOf(t, response).IDs)
		if n > limit {
			t.Errorf("%d tokens, the limit is %d", n, limit)
		}
		if n < limit && response.Finish == art.FinishLength {
			t.Errorf("finish is %q after %d of %d tokens", response.Finish, n, limit)
		}
	}
}

// testCancelled checks that a context that has ended stops each method.
func testCancelled(t *subtest, b art.Backend) {
	m := register(t, b, nil)
	groups := gather(t, m, 1)
	wantCancelled(t, map[string]func(context.Context) error{
		"Complete": func(ctx context.Context) error { _, err := m.Complete(ctx, ask("Anybody?"), nil); return err },
		"Train":    func(ctx context.Context) error { _, err := m.Train(ctx, groups, nil); return err },
		"Register": func(ctx context.Context) error { return describe(t, "-cancelled", nil).Register(ctx, b) },
	})
	wantServed(t, m, 0)
}

// wantCancelled checks that calls return the error of a context that has ended.
func wantCancelled(t *subtest, calls map[string]func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, call := range calls {
		if err := inTime(t, func() error { return call(ctx) }); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: error is %v, want context.Canceled", name, err)
		}
	}
}

// inTime returns what call returns, and an error when it panics or takes too long.
func inTime(t *subtest, call func() error) error {
	done, limit := make(chan error, 1), timeLimit(t.T)
	go func() { done <- protect(call) }()
	select {
	case err := <-done:
		return err
	case <-time.After(limit):
		return fmt.Errorf("it did not return within %v", limit)
	}
}

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

func testTogether(t *subtest, b art.Backend) { together(t, register(t, b, nil), false) }

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
