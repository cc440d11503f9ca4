package reward_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"slices"
	"strings"
	"testing"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/dev/arttest"
	"github.com/goart-dev/art/ruler/reward"
)

// register registers a model with a backend that replies by a script.
func register(t *testing.T, name string, backend *arttest.Backend) *art.Model {
	t.Helper()
	m := art.NewModel(name, nil)
	if err := m.Register(t.Context(), backend); err != nil {
		t.Fatal(err)
	}
	return m
}

// replier returns a backend that replies by a function of the request.
func replier(reply func(req *art.ChatRequest) (art.Message, error)) *arttest.Backend {
	return &arttest.Backend{Reply: func(_ context.Context, _ *art.Model, req *art.ChatRequest) (art.Message, error) {
		return reply(req)
	}}
}

// saying returns a model that gives its replies one after the other.
func saying(t *testing.T, replies ...string) *art.Model {
	return register(t, "m", replier(func(req *art.ChatRequest) (art.Message, error) {
		turn := 0
		for _, m := range req.Messages {
			if m.Role == art.RoleAssistant {
				turn++
			}
		}
		return art.Assistant(replies[min(turn, len(replies)-1)]), nil
	}))
}

// chat is an agent that replies once.
func chat(m *art.Model) reward.Agent {
	return func(ctx context.Context, t *art.Trajectory) error {
		_, err := m.Chat(ctx, t, nil)
		return err
	}
}

// texts writes a conversation as "role: text".
func texts(messages []art.Message) []string {
	var out []string
	for _, m := range messages {
		out = append(out, string(m.Role)+": "+m.Content)
	}
	return out
}

// A user who wants a table talks to an agent. The agent's replies are samples; what the user writes is its context.
func ExampleUser() {
	ctx := context.Background()
	play := func(name string, replies ...string) *art.Model {
		m := art.NewModel(name, nil)
		if err := m.Register(ctx, &arttest.Backend{Reply: arttest.Script(replies...)}); err != nil {
			log.Fatal(err)
		}
		return m
	}
	agent := play("agent", "For when?", "You have a table at eight.")
	user := &reward.User{
		Model:   play("user", "A table for two, please.", "At eight.", "###DONE###"),
		Persona: "You want a table for two at eight. You tell the time only when asked.",
	}
	t := art.NewTrajectory(art.System("You take reservations."))
	end, err := user.Talk(ctx, t, func(ctx context.Context, t *art.Trajectory) error {
		_, err := agent.Chat(ctx, t, nil)
		return err
	})
	fmt.Println(end.Satisfied, end.Turns, len(t.Samples()), err)
	// Output: true 2 2 <nil>
}

func TestUser_Satisfied(t *testing.T) {
	ann := saying(t, "A table for two.", " At eight. ", "Thank you! ###DONE###\n")
	user := &reward.User{Model: ann, Persona: "You want a table for two at eight."}
	agent := saying(t, "When?", "Done.")
	trajectory := art.NewTrajectory(art.System("You take reservations."))
	end, err := user.Talk(t.Context(), trajectory, chat(agent))
	if err != nil || end != (reward.Ending{Satisfied: true, Turns: 2, Last: "Thank you!"}) {
		t.Errorf("ended with %+v, %v", end, err)
	}
	want := []string{
		"system: You take reservations.", "user: A table for two.", "assistant: When?", "user: At eight.", "assistant: Done.",
	}
	if got := texts(trajectory.Messages); !slices.Equal(got, want) {
		t.Errorf("trajectory is %q", got)
	}
	if n := len(trajectory.Samples()); n != 2 {
		t.Errorf("%d samples, want those of the agent", n)
	}
}

// What the model that plays the user sees: its role, and the conversation from the other side, without the stop signal.
func TestUser_View(t *testing.T) {
	var seen [][]string
	model := register(t, "user", replier(func(req *art.ChatRequest) (art.Message, error) {
		seen = append(seen, texts(req.Messages[1:]))
		system := req.Messages[0].Content
		if !strings.Contains(system, "You are Ann.") || !strings.Contains(system, "STOP") {
			return art.Message{}, fmt.Errorf("the prompt is %q", system)
		}
		return art.Assistant(fmt.Sprint("message ", len(seen))), nil
	}))
	user := &reward.User{Model: model, Persona: "You are Ann.", Greeting: "Yes?", MaxTurns: 2, Stop: "STOP"}
	end, err := user.Talk(t.Context(), art.NewTrajectory(), chat(saying(t, "Say STSTOPOP, STOP!", "So.")))
	if err != nil || end != (reward.Ending{Turns: 2, Last: "message 3"}) {
		t.Errorf("ended with %+v, %v", end, err)
	}
	want := []string{"user: Yes?", "assistant: message 1", "user: Say , !", "assistant: message 2", "user: So."}
	if len(seen) != 3 || !slices.Equal(seen[2], want) {
		t.Errorf("saw %q", seen)
	}
}

// A recording around the conversation has the agent's completions only, also when agent and user are the same model.
func TestUser_NotRecorded(t *testing.T) {
	model := saying(t, "one", "two ###DONE###")
	user := &reward.User{Model: model, Persona: "x"}
	recorded, err := art.Record(t.Context(), func(ctx context.Context) error {
		_, err := user.Talk(ctx, art.NewTrajectory(), chat(model))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	got, more := texts(recorded.Messages), len(recorded.AdditionalHistories)
	if !slices.Equal(got, []string{"user: one", "assistant: one"}) || more != 0 {
		t.Errorf("recorded %q and %d more histories", got, more)
	}
}

func TestUser_Errors(t *testing.T) {
	broken := errors.New("broken")
	failing := register(t, "failing", replier(func(*art.ChatRequest) (art.Message, error) {
		return art.Message{}, broken
	}))
	good, silent := saying(t, "hi"), saying(t, "  \n")
	for name, test := range map[string]struct {
		user  *reward.User
		agent reward.Agent
		want  error
	}{
		"nil user":       {nil, chat(good), art.ErrInvalid},
		"no model":       {&reward.User{Persona: "x"}, chat(good), art.ErrInvalid},
		"no persona":     {&reward.User{Model: good}, chat(good), art.ErrInvalid},
		"no agent":       {&reward.User{Model: good, Persona: "x"}, nil, art.ErrInvalid},
		"unregistered":   {&reward.User{Model: art.NewModel("x", nil), Persona: "x"}, chat(good), art.ErrNotRegistered},
		"model fails":    {&reward.User{Model: failing, Persona: "x"}, chat(good), broken},
		"agent fails":    {&reward.User{Model: good, Persona: "x"}, chat(failing), broken},
		"user is silent": {&reward.User{Model: silent, Persona: "x"}, chat(good), art.ErrInvalid},
		"agent is silent": {&reward.User{Model: good, Persona: "x"}, func(context.Context, *art.Trajectory) error {
			return nil
		}, art.ErrInvalid},
		"agent ends with a tool": {&reward.User{Model: good, Persona: "x"}, func(_ context.Context, t *art.Trajectory) error {
			t.Add(art.ToolResult("1", "x"))
			return nil
		}, art.ErrInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := test.user.Talk(t.Context(), art.NewTrajectory(), test.agent)
			if !errors.Is(err, test.want) {
				t.Errorf("error is %v, want %v", err, test.want)
			}
		})
	}
	user := &reward.User{Model: good, Persona: "x"}
	if _, err := user.Talk(t.Context(), nil, chat(good)); !errors.Is(err, art.ErrInvalid) {
		t.Errorf("error of a nil trajectory is %v", err)
	}
}
