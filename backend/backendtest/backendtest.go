// Package backendtest is the contract of [art.Backend] as tests. Every backend runs it:
//
//	func TestContract(t *testing.T) {
//		backendtest.Run(t, func(t *testing.T) art.Backend { return open(t) })
//	}
//
// It works for fakes and for small real models: replies have at most 4 tokens, and their content does not matter.
// Optional interfaces ([driver.Logger], [driver.CheckpointKeeper], [driver.SFTTrainer], [driver.DPOTrainer],
// loop.Trainer, [driver.HTTPServer]) are tested when the backend implements them.
//
// [Run] is for backends that train: replies need an [art.Sample]. A backend that answers and does not train, as those
// of models behind an API, runs [RunHosted]. Models have the base "tiny", and prompts fewer than 256 tokens: a context
// of 256 is enough. Errors are an [*art.Error] that wraps the error of package art which says what is wrong.
//
// What a backend does wrong is a test that fails: also where a method panics or does not return. Only a panic on a
// goroutine of the backend ends the process.
package backendtest

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/driver"
)

const maxTokens = 4

// Run tests a backend that trains. open returns a new one without registered models; Run closes it. The base model
// "tiny" must work.
func Run(t *testing.T, open func(t *testing.T) art.Backend) {
	tests(t, opened(t, open), []named{
		{"Register", testRegister},
		{"CompleteUnregistered", testUnregistered},
		{"Sample", testSample},
		{"Frozen", testFrozen},
		{"Seed", testSeed},
		{"Concurrent", testConcurrent},
		{"MaxTokens", testMaxTokens},
		{"Cancelled", testCancelled},
		{"Train", testTrain},
		{"TrainWhileServing", testTrainWhileServing},
		{"TrainNothing", testTrainNothing},
		{"TrainInvalid", testTrainInvalid},
		{"Logger", testLogger},
		{"TrainRow", testTrainRow},
		{"CheckpointKeeper", testCheckpointKeeper},
		{"CheckpointRestorer", testRestorer},
		{"StateKeeper", testStateKeeper},
		{"Sampler", testSampler},
		{"SampleIDs", testSampleIDs},
		{"Tokenizer", testTokenizer},
		{"Streamer", testStreamer},
		{"SFTTrainer", testSFTTrainer},
		{"DPOTrainer", testDPOTrainer},
		{"Trainer", testTrainer},
		{"HTTPServer", testHTTPServer},
	})
	tests(t, opened(t, open), []named{{"Close", testClose}})
}

// register makes a model named after the test. opts may be nil.
func register(t *subtest, b art.Backend, opts *art.ModelOptions) *art.Model {
	t.Helper()
	m := describe(t, "", opts)
	must(t, "Register", m.Register(t.Context(), b))
	return m
}

// describe makes a model named after the test, with short replies.
func describe(t *subtest, suffix string, opts *art.ModelOptions) *art.Model {
	t.Helper()
	var o art.ModelOptions
	if opts != nil {
		o = *opts
	}
	limit := maxTokens
	o.Project, o.Base, o.Chat.MaxTokens = "backendtest", "tiny", &limit
	return art.NewModel(strings.ReplaceAll(t.Name(), "/", "-")+suffix, &o)
}

func ask(question string) *art.History {
	return &art.History{Messages: []art.Message{art.System("Answer in one word."), art.User(question)}}
}

func complete(t *subtest, m *art.Model, question string, opts *art.ChatOptions) *art.ChatResponse {
	t.Helper()
	response, err := m.Complete(t.Context(), ask(question), opts)
	must(t, "Complete", err)
	if response == nil {
		t.Fatal("Complete: neither a response nor an error")
	}
	return response
}

func sampled(t *subtest, m *art.Model, question string, opts *art.ChatOptions) *art.Sample {
	t.Helper()
	return sampleOf(t, complete(t, m, question, opts))
}

func sampleOf(t *subtest, response *art.ChatResponse) *art.Sample {
	t.Helper()
	if response.Message.Sample == nil {
		t.Fatal("the reply has no Sample; a backend that answers and does not train is tested by RunHosted")
	}
	return response.Message.Sample
}

func seeded(seed uint64) *art.ChatOptions { return &art.ChatOptions{Seed: &seed} }

// gather makes groups of real completions, with alternating rewards 0 and 1.
func gather(t *subtest, m *art.Model, groups int) []*art.TrajectoryGroup {
	t.Helper()
	questions := []string{"What is the colour of the sky?", "What do cows drink?", "How are you?"}[:groups]
	play := func(ctx context.Context, question string) (*art.Trajectory, error) {
		trajectory := art.NewTrajectory(ask(question).Messages...)
		err := protect(func() error { _, err := m.Chat(ctx, trajectory, nil); return err })
		return trajectory, err
	}
	out, err := art.GatherGroups(t.Context(), questions, play, &art.GatherOptions{GroupSize: 2})
	must(t, "GatherGroups", err)
	for _, g := range out {
		for i, trajectory := range g.Trajectories {
			trajectory.Reward = float64(i)
		}
	}
	return out
}

// must stops the test at an error.
func must(t *subtest, what string, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// wantError checks that err is an *art.Error that wraps target.
func wantError(t *subtest, what string, err, target error) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Errorf("%s: error is %v, want %v", what, err, target)
		return
	}
	if typed := new(art.Error); !errors.As(err, &typed) {
		t.Errorf("%s: error is a %T, want an *art.Error", what, err)
	}
}

func wantStep(t *subtest, m *art.Model, want int) {
	t.Helper()
	if got := m.Step(); got != want {
		t.Errorf("step is %d, want %d", got, want)
	}
}

// wantServed checks that the model is at a step, and that the next reply comes from it.
func wantServed(t *subtest, m *art.Model, want int) {
	t.Helper()
	wantStep(t, m, want)
	if got := sampled(t, m, "What is the colour of the sky?", nil).Step; got != want {
		t.Errorf("the next reply is of step %d, want %d", got, want)
	}
}

func testRegister(t *subtest, b art.Backend) {
	m := describe(t, "", nil)
	step, err := b.Register(t.Context(), m)
	if err != nil || step != 0 {
		t.Fatalf("Register of a new run: step %d, error %v; want 0 and none", step, err)
	}
	if _, err := b.Register(t.Context(), m); err == nil {
		t.Error("a model could be registered twice")
	}
	if err := describe(t, "", nil).Register(t.Context(), b); err == nil {
		t.Error("a second model of the same project and name could be registered: a run has one owner")
	}
	if err := describe(t, "-other", nil).Register(t.Context(), b); err != nil {
		t.Errorf("Register of another model: %v", err)
	}
}

// testClose checks that every method of a closed backend returns ErrClosed, except for History.
func testClose(t *subtest, b art.Backend) {
	m := register(t, b, nil)
	groups := gather(t, m, 1)
	if _, ok := b.(driver.Logger); ok {
		must(t, "Log", m.Log(t.Context(), "val", groups, nil))
	}
	must(t, "Close", b.Close())
	if keeper, ok := b.(driver.CheckpointKeeper); ok {
		rows, err := keeper.History(t.Context(), m)
		if _, logs := b.(driver.Logger); err != nil || logs && len(rows) == 0 {
			t.Errorf("History after Close: %d rows, error %v; want what was logged, which trackers may have missed",
				len(rows), err)
		}
		_, err = keeper.Checkpoints(t.Context(), m)
		wantError(t, "Checkpoints", err, art.ErrClosed)
	}
	_, err := m.Complete(t.Context(), ask("Still there?"), nil)
	wantError(t, "Complete", err, art.ErrClosed)
	_, err = m.Train(t.Context(), groups, nil)
	wantError(t, "Train", err, art.ErrClosed)
	wantError(t, "Register", describe(t, "-late", nil).Register(t.Context(), b), art.ErrClosed)
	if _, ok := b.(driver.Logger); ok {
		wantError(t, "Log", m.Log(t.Context(), "train", groups, nil), art.ErrClosed)
	}
	if _, ok := b.(driver.SFTTrainer); ok {
		_, err := m.TrainSFT(t.Context(), lessons(), nil)
		wantError(t, "TrainSFT", err, art.ErrClosed)
	}
	if _, ok := b.(driver.DPOTrainer); ok {
		_, err := m.TrainDPO(t.Context(), preferences(), nil)
		wantError(t, "TrainDPO", err, art.ErrClosed)
	}
}
