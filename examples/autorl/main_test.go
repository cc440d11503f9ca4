package main

import (
	"context"
	"flag"
	"io"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/examples/agents"
	"github.com/goart-dev/art/examples/agents/auto"
	"github.com/goart-dev/art/internal/dev/arttest"
	"github.com/goart-dev/art/ruler"
)

// defaults are the flags without arguments, with a folder of the test.
func defaults(t *testing.T) *settings {
	t.Helper()
	s := &settings{}
	s.define(flag.NewFlagSet("autorl", flag.ContinueOnError))
	s.dir = t.TempDir()
	return s
}

// perfect is the reply that a task asks for.
func perfect(t *task, input string) string {
	if t == &grammar {
		return "<original>" + input + "</original><corrected>" + correctedOf(input) + "</corrected>"
	}
	product, urgency := complaintOf(input)
	return "product: " + product + "\nurgency: " + urgency
}

func TestTicketIsRight(t *testing.T) {
	const input = "My new kettle leaks on the floor. Call me right now."
	for reply, want := range map[string]bool{
		"product: kettle\nurgency: high":              true,
		" product: kettle \n urgency: high\n":         true,
		"product: kettle\nurgency: low":               false,
		"product: My new kettle\nurgency: high":       false,
		"product: kettle, urgency: high":              false,
		"urgency: high\nproduct: kettle":              false,
		"product: kettle\nurgency: high\nThank you.":  false,
		"Here it is:\nproduct: kettle\nurgency: high": false,
		"Product: kettle\nUrgency: high":              false,
		"":                                            false,
	} {
		require.Equal(t, want, ticketIsRight(input, reply), "%q", reply)
	}
}

func TestTagsAreRight(t *testing.T) {
	const input = "She walk to the market at night."
	for reply, want := range map[string][2]bool{
		"<original>She walk to the market at night.</original><corrected>She walks to the market at night.</corrected>":      {true, true},
		"<original>She walk to the market at night.</original><corrected>He walks.</corrected>\n":                            {true, false},
		"<original>She walk to the market at night.</original><corrected> </corrected>":                                      {false, false},
		"<original>She walks to the market at night.</original><corrected>She walks to the market at night.</corrected>":     {false, false},
		"<original>She walk to the market at night.</original>\n<corrected>She walks to the market at night.</corrected>":    {false, false},
		"<original>She walk to the market at night.</original><corrected>She walks to the market at night.</corrected> Done": {false, false},
		"<original>She walk to the market at night.</original><corrected><b>She walks.</b></corrected>":                      {false, false},
		"<corrected>She walks to the market at night.</corrected>":                                                           {false, false},
		"": {false, false},
	} {
		require.Equal(t, want, [2]bool{tagsAreRight(input, reply), sentenceIsRight(input, reply)}, "%q", reply)
	}
}

// The rule reads each input as it was meant, one product or mistake in it, and the reply that is right by the rule has
// the best grade.
func TestTasks_Inputs(t *testing.T) {
	var wrong []string
	for _, m := range mistakes {
		wrong = append(wrong, m.wrong)
	}
	for name, parts := range map[string][]string{"ticket": products, "grammar": wrong} {
		task, err := findTask(name)
		require.NoError(t, err)
		rng := rand.New(rand.NewPCG(1, 1))
		for range 500 {
			input := task.draw(rng)
			found := 0
			for _, part := range parts {
				found += strings.Count(input, " "+part+" ")
			}
			require.Equal(t, 1, found, input)
			reply := perfect(task, input)
			for _, rule := range task.rules {
				require.True(t, rule.holds(input, reply), "%s: %q", rule.name, reply)
				require.False(t, rule.holds(input, reply+" and more"), "%s: %q", rule.name, reply)
			}
			best, _ := task.grade(input, reply)
			none, _ := task.grade(input, "I see.")
			require.InDelta(t, 1, best, 1e-12, reply)
			require.Less(t, none, 0.1, input)
		}
	}
	_, err := findTask("poem")
	require.ErrorContains(t, err, "want ticket or grammar")
}

// Each thing that a reply has more of what was asked for raises its grade.
func TestTasks_GradesRise(t *testing.T) {
	for input, replies := range map[string][]string{
		"My new kettle leaks on the floor. Call me right now.": {
			"I am sorry to hear that.", "product: floor", "product: My new kettle\nleaks", "product: kettle\nleaks",
			"product: kettle\nurgency: very", "product: kettle\nurgency: low", "product: kettle\nurgency: high\nThank you.",
			"product: kettle\nurgency: high",
		},
		"She walk to the market at night.": {
			"She walks to the market at night.", "<original>She", "<original>She</original>",
			"<original>She walk to the market at night.</original>",
			"<original>She walk to the market at night.</original> <corrected>She</corrected>",
			"<original>She walk to the market at night.</original><corrected>She</corrected>",
			"<original>She walk to the market at night.</original><corrected>She walks to the market at night.</corrected>",
		},
	} {
		task := &ticket
		if strings.HasPrefix(input, "She") {
			task = &grammar
		}
		last := -1.0
		for _, reply := range replies {
			score, why := task.grade(input, reply)
			require.Greater(t, score, last, "%q: %s", reply, why)
			last = score
		}
	}
}

// The judge reads RULER's prompt: what it says of a group is the grade, off by its noise.
func TestJudge_Noise(t *testing.T) {
	judge := art.NewModel("judge", &art.ModelOptions{Frozen: true})
	require.NoError(t, judge.Register(t.Context(), &standInBackend{reply: ticket.judge(1)}))
	r := ruler.New(judge, nil)
	rng := rand.New(rand.NewPCG(1, 1))
	far, sum, n := 0, 0.0, 0
	for range 200 {
		input := ticket.draw(rng)
		g := &art.TrajectoryGroup{}
		for _, reply := range []string{perfect(&ticket, input), "product: tree\nurgency: some\nand\nmore"} {
			trajectory := art.NewTrajectory(art.System("s"), art.User(input))
			trajectory.Add(art.Assistant(reply))
			g.Trajectories = append(g.Trajectories, trajectory)
		}
		judged, err := r.Score(t.Context(), g)
		require.NoError(t, err)
		again, err := r.Score(t.Context(), g)
		require.NoError(t, err)
		for i, x := range judged.Trajectories {
			require.Equal(t, x.Reward, again.Trajectories[i].Reward, "the same question has another answer")
			grade, _ := ticket.grade(input, x.Messages[2].Content)
			off := math.Abs(x.Reward - grade)
			if off > 4*deviation {
				far++
			}
			sum, n = sum+off, n+1
		}
	}
	require.Positive(t, far, "no score is chance")
	require.Less(t, float64(far)/float64(n), chance, "more scores are chance than it says")
	require.InDelta(t, 0.1, sum/float64(n), 0.05, "mean error of the scores")
}

// A stand-in says what it does not understand, and is not trained.
func TestStandIn_Refuses(t *testing.T) {
	for name, reply := range map[string]func([]art.Message) (string, error){
		"understands no prompt": ticket.write(1), "without an attempt": ticket.judge(1),
	} {
		m := art.NewModel("m", &art.ModelOptions{Frozen: true})
		require.NoError(t, m.Register(t.Context(), &standInBackend{reply: reply}))
		_, err := m.Complete(t.Context(), &art.History{Messages: []art.Message{art.User("Hello?")}}, nil)
		require.ErrorContains(t, err, name)
	}
	m := art.NewModel("m", nil)
	require.NoError(t, m.Register(t.Context(), &standInBackend{}))
	_, err := m.Train(t.Context(), []*art.TrajectoryGroup{{}}, nil)
	require.Error(t, err)
}

// With as many inputs as by default, of each seed: a model that knows the task from the first step on gains all, by the
// rule, and the judge sees it through its noise.
func TestTrain_Scripted(t *testing.T) {
	for _, task := range []*task{&ticket, &grammar} {
		s := defaults(t)
		s.task, s.steps = task.name, 1
		b := &arttest.Backend{Reply: func(ctx context.Context, m *art.Model, r *art.ChatRequest) (art.Message, error) {
			input := r.Messages[len(r.Messages)-1].Content
			if m.Step() == 1 || r.Settings.Temperature > 0 && art.Rand(ctx).IntN(2) == 0 {
				return art.Assistant(perfect(task, input)), nil
			}
			return art.Assistant("I see."), nil
		}}
		s.tokens = 500 // the backend's tokens are runes
		gains, err := s.train(t.Context(), task, b, io.Discard)
		require.NoError(t, err)
		require.Len(t, gains, len(task.rules))
		for _, g := range gains {
			require.Equal(t, 150, g.Better, "%v", g)
			require.Equal(t, 150, g.N(), "%v", g)
		}
	}
}

// What each model got right is counted by input.
func TestGains(t *testing.T) {
	const input = "My new kettle leaks on the floor. Call me right now."
	right, wrong := perfect(&ticket, input), "no"
	r := &auto.Result{Plan: &auto.Plan{Held: make([]auto.Input, 12)}}
	for i, n := range []int{4, 3, 2, 1} {
		for range n {
			base, model := right, right
			if i&1 == 1 {
				base = wrong
			}
			if i&2 == 2 {
				model = wrong
			}
			r.Samples = append(r.Samples, auto.Sample{Input: input, Base: base, Model: model})
		}
	}
	require.Equal(t, []agents.Gain{{Both: 4, Better: 3, Worse: 2, Neither: 1, Failed: 2}}, ticket.gains(r))
}

// A step of the built-in model, and the second process finds the run finished and compares the same replies.
func TestRun(t *testing.T) {
	s := defaults(t)
	require.ErrorContains(t, s.run(t.Context(), io.Discard), "-model is missing")
	s.base, s.steps, s.batch, s.group, s.inputs, s.held, s.tokens = "tiny", 1, 1, 4, 2, 4, 12
	var first, second strings.Builder
	require.NoError(t, s.run(t.Context(), &first))
	require.NoError(t, s.run(t.Context(), &second))
	require.NotContains(t, first.String(), "is finished")
	require.Contains(t, second.String(), "is finished: it is at step 1 of 1")
	byRule := func(out string) string {
		_, rest, ok := strings.Cut(out, "by the rule")
		require.True(t, ok, out)
		line, _, _ := strings.Cut(rest, "\n")
		return line
	}
	require.Contains(t, byRule(first.String()), "4 scenarios")
	require.Equal(t, byRule(first.String()), byRule(second.String()))
	s.task = "poem"
	require.ErrorContains(t, s.run(t.Context(), io.Discard), "want ticket or grammar")
}
