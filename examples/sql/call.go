package main

import (
	"encoding/json"
	"regexp"
	"strings"

	"github.com/goart-dev/art"
)

// tools are what an agent has: one.
var tools = []art.Tool{{
	Name: "query", Description: "Run an SQLite query.",
	Parameters: json.RawMessage(`{"type": "object", "properties": {"sql": {"type": "string"}}, "required": ["sql"]}`),
}}

// call is a query that an agent asks for.
type call struct {
	id      string // of the tool call; empty if the query was written as text
	query   string
	problem string // what is wrong with the call, in place of a query
}

// block is code in the text of a reply: models that were trained on code write it in place of a tool call.
var block = regexp.MustCompile("(?s)```[a-z]*\\s(.+?)(?:```|$)")

// object is the beginning of a call in other tags than those of the template, in a block, or with a brace too many.
var object = regexp.MustCompile(`\{\s*"name"`)

// read finds the query of a reply. ok is false if there is none: then the reply is the answer. Of several the first one
// counts.
func read(reply *art.Message) (c call, ok bool) {
	if len(reply.ToolCalls) > 0 {
		asked := &reply.ToolCalls[0]
		c = call{id: asked.ID}
		if asked.Name != "query" {
			c.problem = "error: there is no such tool"
		} else if c.query, ok = sqlOf(asked.Arguments); !ok {
			c.problem = `error: the arguments are not {"sql": "..."}`
		}
		return c, true
	}
	if at := object.FindStringIndex(reply.Content); at != nil {
		var written struct {
			Name      string
			Arguments json.RawMessage
		}
		err := json.NewDecoder(strings.NewReader(reply.Content[at[0]:])).Decode(&written)
		if err == nil && written.Name == "query" {
			c.query, ok = sqlOf(string(written.Arguments))
			return c, ok
		}
	}
	text := strings.TrimSpace(reply.Content)
	if found := block.FindStringSubmatch(text); found != nil {
		text = strings.TrimSpace(found[1])
	}
	words := strings.Fields(strings.ToUpper(text))
	return call{query: text}, len(words) > 0 && (words[0] == "SELECT" || words[0] == "WITH")
}

// sqlOf reads the arguments of a call.
func sqlOf(arguments string) (query string, ok bool) {
	var args struct{ SQL string }
	err := json.Unmarshal([]byte(arguments), &args)
	return args.SQL, err == nil && args.SQL != ""
}

// result is the message that answers the call.
func (c *call) result(text string) art.Message {
	if c.id == "" {
		return art.User(text)
	}
	return art.ToolResult(c.id, text)
}
