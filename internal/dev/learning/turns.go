package learning

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/goart-dev/art"
)

// Guesses of a number from 1 to guessRange. With hints, halving what is left finds any of them within four.
const guessRange, maxGuesses = 10, 4

// GuessNumber is a game of several turns: guess a number, hear whether it is higher or lower.
func GuessNumber() *Task {
	return &Task{
		Name: "guess", What: "guess a number from 1 to 10 with hints, 4 guesses; reward by the guesses that are left",
		Steps: 50, Every: 10, Aim: AtLeast(0.8), Measure: "numbers found, greedy, of all ten", Context: 128, MaxTokens: 6,
		Rank:  32,
		Start: func() Agent { return guesser{} },
	}
}

type guesser struct{}

// Groups implements Agent.
func (guesser) Groups(ctx context.Context, m *art.Model, step int) ([]*art.TrajectoryGroup, error) {
	return gather(ctx, numbers(), 16, step, func(ctx context.Context, hidden int) (*art.Trajectory, error) {
		return guess(ctx, m, hidden, nil)
	})
}

// Show implements Shower. It shows games of a player that guesses any number that the hints leave.
func (guesser) Show() (games []*art.Trajectory, cfg *art.SFTConfig) {
	random := rand.New(rand.NewPCG(0, 0))
	for range 60 {
		for _, hidden := range numbers() {
			games = append(games, guessAnyLeft(hidden, random))
		}
	}
	return games, &art.SFTConfig{LearningRate: 1e-3, BatchSize: 16, Epochs: 2, Decay: new(0.1)}
}

// guessAnyLeft plays a game by chance.
func guessAnyLeft(hidden int, random *rand.Rand) *art.Trajectory {
	t := askForNumber()
	low, high := 1, guessRange
	for range maxGuesses {
		n := low + random.IntN(high-low+1)
		t.Add(art.Assistant(strconv.Itoa(n)))
		if n == hidden {
			break
		}
		t.Add(art.User(hint(n, hidden)))
		if n < hidden {
			low = n + 1
		} else {
			high = n - 1
		}
	}
	return t
}

// numbers are those that can be hidden.
func numbers() []int {
	var all []int
	for n := 1; n <= guessRange; n++ {
		all = append(all, n)
	}
	return all
}

// Config implements Agent.
func (guesser) Config(int) *art.TrainConfig {
	return &art.TrainConfig{LearningRate: 5e-4, MaxGradNorm: 1, EntropyBonus: 0.02}
}

// Measure implements Agent.
func (guesser) Measure(ctx context.Context, m *art.Model) (map[string]float64, error) {
	return average(ctx, numbers(), func(ctx context.Context, hidden int) (*art.Trajectory, error) {
		return guess(ctx, m, hidden, greedy())
	})
}

// guess plays a game. What is no number ends it.
func guess(ctx context.Context, m *art.Model, hidden int, o *art.ChatOptions) (*art.Trajectory, error) {
	t := askForNumber()
	t.Metrics["value"] = 0
	for turn := range maxGuesses {
		reply, err := m.Chat(ctx, t, o)
		if err != nil {
			return nil, err
		}
		n, err := strconv.Atoi(strings.TrimSpace(reply.Content))
		switch {
		case err != nil || n < 1 || n > guessRange:
			t.Reward = -0.5
			return t, nil
		case n == hidden:
			t.Reward, t.Metrics["value"] = 1-0.1*float64(turn), 1
			return t, nil
		default:
			t.Add(art.User(hint(n, hidden)))
		}
	}
	return t, nil
}

// askForNumber begins a game.
func askForNumber() *art.Trajectory {
	return art.NewTrajectory(art.User(fmt.Sprintf("Guess my number from 1 to %d.", guessRange)))
}

// hint answers a wrong guess.
func hint(guess, hidden int) string {
	if guess < hidden {
		return "higher"
	}
	return "lower"
}

// ToolUse is a task of two turns: call the right one of two tools with the right arguments, then say what it returned.
func ToolUse() *Task {
	return &Task{
		Name: "tool", What: "call the right one of two tools (reward 0.7), then say its result (0.3)", Steps: 60, Every: 5,
		Aim: AtLeast(0.9), Measure: "right calls, greedy, on held-out numbers", Context: 384, MaxTokens: 40,
		Start: func() Agent {
			var all []operation
			for i := range 100 {
				all = append(all, operation{i / 10, i % 10, i%2 == 0})
			}
			a := &caller{}
			a.known, a.unseen = split(all, 25)
			return a
		},
	}
}

// operation is what is asked for: a plus b, or a times b.
type operation struct {
	a, b int
	plus bool
}

type caller struct{ known, unseen []operation }

// tools of the task.
var tools = []art.Tool{numbersTool("add", "Add two numbers."), numbersTool("multiply", "Multiply two numbers.")}

func numbersTool(name, about string) art.Tool {
	return art.Tool{Name: name, Description: about, Parameters: json.RawMessage(
		`{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},"required":["a","b"]}`)}
}

// Groups implements Agent.
func (c *caller) Groups(ctx context.Context, m *art.Model, step int) ([]*art.TrajectoryGroup, error) {
	var asked []operation
	for i := range 12 {
		asked = append(asked, c.known[(step*12+i)%len(c.known)])
	}
	return gather(ctx, asked, 8, step, func(ctx context.Context, o operation) (*art.Trajectory, error) {
		return o.play(ctx, m, nil)
	})
}

// Config implements Agent.
func (c *caller) Config(int) *art.TrainConfig {
	return &art.TrainConfig{LearningRate: 5e-4, MaxGradNorm: 1}
}

// Measure implements Agent.
func (c *caller) Measure(ctx context.Context, m *art.Model) (map[string]float64, error) {
	return average(ctx, c.unseen, func(ctx context.Context, o operation) (*art.Trajectory, error) {
		return o.play(ctx, m, greedy())
	})
}

// wanted returns the question, the name of the right tool, and its result.
func (o operation) wanted() (text, tool string, result int) {
	if o.plus {
		return fmt.Sprintf("Add %d and %d.", o.a, o.b), "add", o.a + o.b
	}
	return fmt.Sprintf("Multiply %d by %d.", o.a, o.b), "multiply", o.a * o.b
}

// play asks, and runs the tool that is called.
func (o operation) play(ctx context.Context, m *art.Model, opts *art.ChatOptions) (*art.Trajectory, error) {
	text, tool, result := o.wanted()
	t := art.NewTrajectory(art.User(text))
	t.Tools = tools
	t.Metrics["value"], t.Metrics["answered"] = 0, 0
	reply, err := m.Chat(ctx, t, opts)
	if err != nil {
		return nil, err
	}
	if !o.isRight(reply.ToolCalls, tool) {
		if len(reply.ToolCalls) == 1 {
			t.Reward = 0.1
		}
		return t, nil
	}
	t.Reward, t.Metrics["value"] = 0.7, 1
	t.Add(art.ToolResult(reply.ToolCalls[0].ID, strconv.Itoa(result)))
	reply, err = m.Chat(ctx, t, opts)
	if errors.Is(err, art.ErrContextLength) {
		return t, nil // by what it said beside the call
	}
	if err != nil {
		return nil, err
	}
	if strings.Contains(reply.Content, strconv.Itoa(result)) {
		t.Reward, t.Metrics["answered"] = 1, 1
	}
	return t, nil
}

// isRight reports whether calls are the one that was wanted.
func (o operation) isRight(calls []art.ToolCall, tool string) bool {
	if len(calls) != 1 || calls[0].Name != tool {
		return false
	}
	var args struct{ A, B *int }
	err := json.Unmarshal([]byte(calls[0].Arguments), &args)
	if err != nil || args.A == nil || args.B == nil {
		return false
	}
	return *args.A == o.a && *args.B == o.b || *args.A == o.b && *args.B == o.a
}
