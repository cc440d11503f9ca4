package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/examples/arte/mailbox"
)

// prompt is the system message. It is as short as a small model likes it.
const prompt = "Call search with a query. Then call read with that id. Then call answer with the number and the id."

// policy writes the next message of an agent.
type policy func(context.Context, *art.History) (art.Message, error)

// sampled is the policy of a model: the one that is trained, or any other.
func sampled(model *art.Model, opts *art.ChatOptions) policy {
	return func(ctx context.Context, h *art.History) (art.Message, error) {
		response, err := model.Complete(ctx, h, opts)
		if err != nil {
			return art.Message{}, err
		}
		return response.Message, nil
	}
}

type run struct {
	store    *mailbox.Store
	question mailbox.Question
	outcome
}

// answer lets a policy work on a question until it answers, breaks a rule or is out of turns.
func answer(ctx context.Context, next policy, r *run) (*art.Trajectory, error) {
	t := art.NewTrajectory(art.System(prompt), art.User(r.question.Text))
	t.Tools = tools(*level)
	for r.end == working && r.turns < maxTurns {
		r.turns++
		reply, err := next(ctx, &t.History)
		if errors.Is(err, art.ErrContextLength) {
			break // as out of turns
		}
		if err != nil {
			return nil, err
		}
		t.Add(reply)
		if len(reply.ToolCalls) == 0 {
			r.end = noCall
			break
		}
		result, err := r.call(ctx, &reply.ToolCalls[0]) // further calls of the turn are ignored
		if err != nil {
			return nil, err
		}
		t.Add(art.ToolResult(reply.ToolCalls[0].ID, result))
	}
	t.Reward, t.Metrics = r.reward(), r.metrics()
	return t, nil
}

// maxTurns is how many messages an agent may write for a question. Three are enough.
const maxTurns = 6

type ending int

const (
	working ending = iota // out of turns
	right
	wrong
	gaveUp
	noCall // a reply without a tool call that can be read
	unknownTool
	badArguments
)

// bands are the rewards of ART·E, to which partial credit is added.
var bands = map[ending]float64{working: 0, gaveUp: 0, wrong: -1, badArguments: -1.8, unknownTool: -1.9, noCall: -2}

type outcome struct {
	end                        ending
	found, opened, invalidRead bool // of the right message, and whether an id that does not exist was read
	cited                      bool // the right message among the sources
	sources, turns             int
}

// reward is ART·E's. A right answer is worth
//
//	1 + 0.3 cited + 0.1 / sources + 0.1 (1 - turns / maxTurns)
//
// and any other ending its band and a credit of 0.1 for each of: the right message was found, it was read, it was
// cited, and no id that does not exist was read. So a run that fails later is worth more.
func (o *outcome) reward() float64 {
	if o.end == right {
		return 1 + 0.3*one(o.cited) + 0.1/float64(max(1, o.sources)) + 0.1*(1-float64(o.turns)/maxTurns)
	}
	return bands[o.end] + 0.1*(one(o.found)+one(o.opened)+one(!o.invalidRead)+one(o.cited))
}

// metrics are what is measured apart from the reward. Format is whether each reply was a call that fits a tool.
func (o *outcome) metrics() map[string]float64 {
	return map[string]float64{
		"right": one(o.end == right), "found": one(o.found), "read": one(o.opened), "cited": one(o.cited),
		"format": one(o.end != noCall && o.end != unknownTool && o.end != badArguments), "turns": float64(o.turns),
	}
}

func one(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// oracle does what is best: it knows the question as the generator made it. So it shows what can be reached.
func oracle(q mailbox.Question) policy {
	return func(_ context.Context, h *art.History) (art.Message, error) {
		switch len(h.Messages) {
		case 2:
			args := []string{"query", q.Keywords}
			if q.From != "" {
				args = append(args, "from", q.From, "after", q.After, "before", q.Before)
			}
			return called(len(h.Messages), "search", args...), nil
		case 4:
			return called(len(h.Messages), "read", "id", q.Source), nil
		}
		return called(len(h.Messages), "answer", "number", q.Answer, "id", q.Source), nil
	}
}

// careless is how the tools are used, without the skill: of the messages found it reads any, each as likely as the
// others, and it answers what that message says, or that it doesn't know.
func careless(q mailbox.Question, rng *rand.Rand) policy {
	return func(_ context.Context, h *art.History) (art.Message, error) {
		var m struct{ ID, Text string }
		last := h.Messages[len(h.Messages)-1].Content
		switch len(h.Messages) {
		case 2:
			return called(2, "search", "query", q.Keywords), nil
		case 4:
			hits := strings.Split(last, "\n")
			err := json.Unmarshal([]byte(hits[rng.IntN(len(hits))]), &m)
			return called(4, "read", "id", m.ID), err
		}
		err := json.Unmarshal([]byte(last), &m)
		number := dontKnow
		if _, says, ok := strings.Cut(m.Text, " is "); ok {
			number = strings.TrimSuffix(says, ".")
		}
		return called(6, "answer", "number", number, "id", m.ID), err
	}
}

// chance is the agent that writes valid calls and knows nothing: it shows what luck is worth.
func chance(rng *rand.Rand) policy {
	return func(_ context.Context, h *art.History) (art.Message, error) {
		turn, number, id := len(h.Messages), strconv.Itoa(100+rng.IntN(900)), strconv.Itoa(1000+rng.IntN(9000))
		switch rng.IntN(3) {
		case 0:
			return called(turn, "search", "query", number), nil
		case 1:
			return called(turn, "read", "id", id), nil
		}
		return called(turn, "answer", "number", number, "id", id), nil
	}
}

// called is a message with one tool call. Arguments are names and values in turn.
func called(turn int, name string, args ...string) art.Message {
	text := ""
	for i := 0; i < len(args); i += 2 {
		value, _ := json.Marshal(args[i+1]) // a string
		text += fmt.Sprintf(`, %q: %s`, args[i], value)
	}
	return art.Message{Role: art.RoleAssistant, ToolCalls: []art.ToolCall{{
		ID: "call_" + strconv.Itoa(turn), Name: name, Arguments: "{" + text[2:] + "}",
	}}}
}

// dontKnow is the answer of an agent that gives up.
const dontKnow = "I don't know"

const maxHits = 5

// tools are ART·E's three. Only questions of level 3 need the filters of the search.
func tools(level int) []art.Tool {
	search := `"query": {"type": "string"}`
	if level == mailbox.Dated {
		search += `, "from": {"type": "string"}, "after": {"type": "string"}, "before": {"type": "string"}`
	}
	return []art.Tool{
		tool("search", "Search the mail.", search, "query"),
		tool("read", "Read a mail.", `"id": {"type": "string"}`, "id"),
		tool("answer", "Answer with the number and the id.",
			`"number": {"type": "string"}, "id": {"type": "string"}`, "number", "id"),
	}
}

func tool(name, about, properties string, required ...string) art.Tool {
	return art.Tool{Name: name, Description: about, Parameters: json.RawMessage(fmt.Sprintf(
		`{"type": "object", "properties": {%s}, "required": ["%s"]}`, properties, strings.Join(required, `", "`)))}
}

// call carries out a tool call and returns what the agent gets to read. An error ends the program.
func (r *run) call(ctx context.Context, c *art.ToolCall) (string, error) {
	var args struct{ Query, From, After, Before, ID, Number string } // of all tools
	decoder := json.NewDecoder(strings.NewReader(c.Arguments))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(&args)
	enough, known := map[string]bool{
		"search": args.Query != "", "read": args.ID != "", "answer": args.ID != "" && args.Number != "",
	}[c.Name]
	switch {
	case !known:
		r.end = unknownTool
		return "There is no such tool.", nil
	case err != nil || !enough:
		r.end = badArguments
		return "These arguments do not fit.", nil
	}
	switch c.Name {
	case "search":
		return r.search(ctx, mailbox.Query{Keywords: args.Query, From: args.From, After: args.After, Before: args.Before})
	case "read":
		return r.read(ctx, args.ID)
	}
	return r.finish(args.Number, args.ID), nil
}

func (r *run) search(ctx context.Context, q mailbox.Query) (string, error) {
	found, err := r.store.Search(ctx, q, maxHits)
	if err != nil {
		return "", err
	}
	var lines []string
	for _, m := range found {
		r.found = r.found || m.ID == r.question.Source
		lines = append(lines,
			fmt.Sprintf(`{"id": %q, "from": %q, "date": %q, "subject": %q}`, m.ID, m.From, m.Date, m.Subject))
	}
	if len(lines) == 0 {
		return "nothing", nil
	}
	return strings.Join(lines, "\n"), nil
}

func (r *run) read(ctx context.Context, id string) (string, error) {
	m, ok, err := r.store.Read(ctx, id)
	if err != nil {
		return "", err
	}
	if !ok {
		r.invalidRead = true
		return "There is no such mail.", nil
	}
	r.opened = r.opened || id == r.question.Source
	return fmt.Sprintf(`{"id": %q, "text": %q}`, m.ID, m.Body), nil
}

// finish ends the run with an answer. Several ids are separated by spaces or commas.
func (r *run) finish(number, id string) string {
	sources := strings.FieldsFunc(id, func(c rune) bool { return c == ' ' || c == ',' })
	r.sources = len(sources)
	for _, s := range sources {
		r.cited = r.cited || s == r.question.Source
	}
	switch number = strings.TrimSuffix(strings.TrimSpace(number), "."); number {
	case r.question.Answer:
		r.end = right
	case dontKnow:
		r.end = gaveUp
	default:
		r.end = wrong
	}
	return "ok"
}
