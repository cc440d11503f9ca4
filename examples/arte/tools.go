package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/examples/arte/mailbox"
)

// dontKnow is the answer of an agent that gives up.
const dontKnow = "I don't know"

// maxHits is how many messages a search returns at most.
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

type arguments struct{ Query, From, After, Before, ID, Number string }

func (a *arguments) fit(tool string) bool {
	switch tool {
	case "search":
		return a.Query != ""
	case "read":
		return a.ID != ""
	}
	return a.ID != "" && a.Number != ""
}

// call carries out a tool call and returns what the agent gets to read. An error ends the program.
func (r *run) call(ctx context.Context, c *art.ToolCall) (string, error) {
	if c.Name != "search" && c.Name != "read" && c.Name != "answer" {
		r.end = unknownTool
		return "There is no such tool.", nil
	}
	var args arguments
	decoder := json.NewDecoder(strings.NewReader(c.Arguments))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&args); err != nil || !args.fit(c.Name) {
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

// search returns a line for each message found.
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
