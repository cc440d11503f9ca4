package reward

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/goart-dev/art"
)

// User is a user who is played by a model: it talks to an agent until it has what it wants.
type User struct {
	// Model plays the user: any registered model, best one that is not being trained.
	Model *art.Model
	// Persona says who the user is, how they talk, what they know and what they want. Required.
	Persona string
	// Greeting is what the user is told before their first message, as if the agent had said it. It is not part of the
	// trajectory. Default "Hello! How can I help you?".
	Greeting string
	// MaxTurns bounds the messages of the user. Default 10.
	MaxTurns int
	// Stop is what the model writes, alone or at the end of a message, when the user is satisfied. It is taken out of
	// what the agent says before the user sees it, so that the agent cannot have it repeated. Default "###DONE###".
	Stop string
	// Chat shapes the replies of the model. May be nil.
	Chat *art.ChatOptions
}

// Agent replies to the last message of t, and adds to t what it says and does.
type Agent func(ctx context.Context, t *art.Trajectory) error

// Ending is how a conversation with a [User] ended.
type Ending struct {
	// Satisfied tells that the user said so. Whether they had reason to is for the reward to find out.
	Satisfied bool
	// Turns are the messages of the user that the agent answered.
	Turns int
	// Last is what the user wrote last, without the signal; it is not part of the trajectory.
	Last string
}

// Talk lets the user talk to an agent. Each message of the user is added to t, then agent is called: it replies by
// one or more messages, tool calls included, which it adds to t, as [art.Model.Chat] does. The user sees the text of
// the last message when that is the assistant's. Messages that t has at the beginning, such as a system prompt, the
// user does not see.
//
// What the model writes as the user is not recorded, neither in t nor by an [art.Record] around Talk, and carries no
// sample: it is the agent's context and is not trained on. In a gather, the seeds of its calls derive from the
// rollout, as those of the agent do.
//
// It returns when the user is satisfied, or is not after MaxTurns messages and answers. Errors are those of agent and
// of the model, and [art.ErrInvalid] for a User without Model or Persona, for an agent that did not reply, and for a
// model that wrote nothing.
func (u *User) Talk(ctx context.Context, t *art.Trajectory, agent Agent) (Ending, error) {
	var end Ending
	if u == nil || u.Model == nil || u.Persona == "" || t == nil || agent == nil {
		return end, userError("Model, Persona, trajectory or agent is missing")
	}
	d := *u
	d.Greeting, d.Stop = cmp.Or(d.Greeting, "Hello! How can I help you?"), cmp.Or(d.Stop, "###DONE###")
	d.MaxTurns = cmp.Or(max(d.MaxTurns, 0), 10)
	h := &art.History{Messages: []art.Message{art.System(d.prompt()), art.User(d.Greeting)}}
	for {
		text, satisfied, err := d.speak(ctx, h)
		if err != nil {
			return end, err
		}
		if satisfied || end.Turns == d.MaxTurns {
			end.Satisfied, end.Last = satisfied, text
			return end, nil
		}
		t.Add(art.User(text))
		before := len(t.Messages)
		if err := agent(ctx, t); err != nil {
			return end, err
		}
		if n := len(t.Messages); n <= before || t.Messages[n-1].Role != art.RoleAssistant {
			return end, userError("the agent did not end with a message of its own")
		}
		answer := t.Messages[len(t.Messages)-1].Content
		for strings.Contains(answer, d.Stop) { // also one that is left when one has been removed
			answer = strings.ReplaceAll(answer, d.Stop, "")
		}
		h.Add(art.User(answer))
		end.Turns++
	}
}

// speak asks the model for the next message of the user, and adds it to the user's view of the conversation.
func (u *User) speak(ctx context.Context, h *art.History) (text string, satisfied bool, err error) {
	var reply *art.ChatResponse
	// What is recorded here is thrown away: the innermost recording is the one that gets a completion.
	_, err = art.Record(ctx, func(ctx context.Context) error {
		reply, err = u.Model.Complete(ctx, h, u.Chat)
		return err
	})
	if err != nil {
		return "", false, err
	}
	text, satisfied = strings.CutSuffix(strings.TrimSpace(reply.Message.Content), u.Stop)
	if text = strings.TrimSpace(text); text == "" && !satisfied {
		return "", false, userError("the model that plays the user wrote nothing")
	}
	h.Add(art.Assistant(text))
	return text, satisfied, nil
}

func (u *User) prompt() string {
	return "You play a user who writes to an assistant. Stay in your role, whatever the assistant writes.\n\n" +
		"Your role:\n" + u.Persona + "\n\n" +
		"Write nothing but the next message of the user: short, in the user's own words, without stage directions. " +
		"Tell what the assistant needs to know when it asks, one thing at a time. " +
		"Make up nothing that your role does not say. " +
		"You cannot do the assistant's work. " +
		"When you have what you want, answer with " + u.Stop + " and nothing else. Otherwise never write it."
}

// userError is the error of a conversation that cannot go on.
func userError(problem string) error {
	return &art.Error{Op: "simulated user", Err: fmt.Errorf("%w: %s", art.ErrInvalid, problem), Hint: "see reward.User"}
}
