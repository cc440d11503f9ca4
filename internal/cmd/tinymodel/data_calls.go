package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/goart-dev/art"
)

// toolChatSize is how many tokens a chat with tools may have by the estimate of size. Words that the vocabulary does not
// have whole add up to thirty more, which stays below the model's 256.
const toolChatSize = 206

// noTool answers a request that none of the tools is for.
const noTool = "I have no tool for that."

// toolPreamble is about what chat templates write around a list of tools. Only the vocabulary is made with it.
const toolPreamble = "# Tools\n\nThese functions can be called. Each line describes one of them in JSON:\n<tools>\n</tools>\n\n" +
	"To call a function, write its name and its arguments as one JSON object between tags, once for each call:\n" +
	`{"name": "function", "arguments": {"parameter": "value"}}`

// toolChat offers one to three tools, as many as there is room for. Mostly the user asks for what one of them does, at any place of the list.
func toolChat(rng *rand.Rand) example {
	kinds := rng.Perm(len(toolKinds))
	switch n := rng.IntN(100); {
	case n < 80:
		return callChat(rng, &toolKinds[kinds[0]], kinds[1:])
	case n < 90:
		return refusal(rng, kinds)
	}
	return directAnswer(rng, kinds)
}

// callChat is a request that a tool of the given kind is for; others are the kinds of tools that may stand beside it.
func callChat(rng *rand.Rand, kind *toolKind, others []int) example {
	var e example
	e.maybeSystem(rng, 25, "You are a helpful assistant.", "Use the tools.")
	wanted := kind.newTool(rng)
	e.callTool(rng, wanted, "call_1")
	switch n := rng.IntN(100); {
	case n < 10:
		e.callAgain(rng, wanted)
	case n < 15:
		e.say(pick(rng, []string{"Thanks!", "Thank you."}), "You are welcome.")
	}
	e.offer(rng, []art.Tool{wanted.def}, others)
	return e
}

// callAgain adds a second request for the same tool, if there is room for it.
func (e *example) callAgain(rng *rand.Rand, t tool) {
	longer := example{messages: slices.Clone(e.messages)}
	longer.callTool(rng, t, "call_2")
	if longer.room() >= toolSize(bare(t.def)) {
		*e = longer
	}
}

// callTool adds a request, the call, its result and the answer.
func (e *example) callTool(rng *rand.Rand, t tool, id string) {
	args, literals := make([]any, len(t.params)), make([]string, len(t.params))
	for i, p := range t.toolKind.params {
		args[i] = p.value(rng)
		literals[i] = strconv.Quote(t.params[i]) + ": " + literal(args[i])
	}
	call := art.ToolCall{ID: id, Name: t.name, Arguments: "{" + strings.Join(literals, ", ") + "}"}
	returned := t.result(rng, args)
	answer := strings.ReplaceAll(pick(rng, t.answers), "{result}", returned)
	e.add(
		art.User(t.request(rng, args)),
		art.Message{Role: art.RoleAssistant, ToolCalls: []art.ToolCall{call}},
		art.ToolResult(id, returned),
		art.Assistant(fill(answer, args...)),
	)
}

// request is what the user says to get the tool called.
func (t tool) request(rng *rand.Rand, args []any) string {
	return fill(strings.ReplaceAll(pick(rng, t.requests), "{name}", t.name), args...)
}

// literal writes an argument as JSON. Strings are plain words.
func literal(v any) string {
	if s, ok := v.(string); ok {
		return strconv.Quote(s)
	}
	return fmt.Sprint(v)
}

// refusal is a request for a tool that is not offered.
func refusal(rng *rand.Rand, kinds []int) example {
	var e example
	for toolKinds[kinds[0]].sums {
		kinds = append(kinds[1:], kinds[0])
	}
	missing := toolKinds[kinds[0]].newTool(rng)
	var args []any
	for _, p := range missing.toolKind.params {
		args = append(args, p.value(rng))
	}
	e.say(missing.request(rng, args), noTool)
	e.offer(rng, nil, kinds[1:])
	return e
}

// directAnswer is a chat in which tools are offered and nobody needs them.
func directAnswer(rng *rand.Rand, kinds []int) example {
	e := pick(rng, []func(*rand.Rand) example{talk, yesNo, repeatWord})(rng)
	e.offer(rng, nil, kinds)
	return e
}

// offer puts the wanted tools and up to two of other kinds into the chat, in any order. Those that have no room are left
// out, but not the first; what room is left then goes to their full definitions.
func (e *example) offer(rng *rand.Rand, wanted []art.Tool, others []int) {
	full := slices.Clone(wanted)
	for _, kind := range others[:between(rng, 1-len(wanted), 2)] {
		full = append(full, toolKinds[kind].newTool(rng).def)
	}
	room := e.room()
	full = slices.DeleteFunc(full, func(t art.Tool) bool {
		n := toolSize(bare(t))
		if len(e.tools) > 0 && n > room || hasTool(e.tools, t.Name) {
			return true
		}
		e.tools, room = append(e.tools, bare(t)), room-n
		return false
	})
	for i, t := range full {
		if more := toolSize(t) - toolSize(e.tools[i]); more <= room {
			e.tools[i], room = t, room-more
		}
	}
	rng.Shuffle(len(e.tools), func(i, j int) { e.tools[i], e.tools[j] = e.tools[j], e.tools[i] })
}

// hasTool reports whether a name is taken; an invented one can be that of another tool.
func hasTool(tools []art.Tool, name string) bool {
	return slices.ContainsFunc(tools, func(t art.Tool) bool { return t.Name == name })
}

// room estimates how many tokens are left for tools, beside what the chat says and how it is framed.
func (e *example) room() int {
	room := toolChatSize - size(toolPreamble) - 4
	for _, m := range e.messages {
		room -= size(m.Content) + 5 // <|im_start|>role ... <|im_end|>
		for _, c := range m.ToolCalls {
			room -= size(callText(c)) + 4 // the tags of the call, each with a newline
		}
		if m.Role == art.RoleTool {
			room -= 4 // the tags of the result
		}
	}
	return room
}

// toolSize estimates the tokens of a tool and of the end of its line.
func toolSize(t art.Tool) int { return size(toolText(t)) + 1 }

// toolText is a tool as chat templates write it.
func toolText(t art.Tool) string {
	text := `{"type": "function", "function": {"name": ` + strconv.Quote(t.Name)
	if t.Description != "" {
		text += `, "description": ` + strconv.Quote(t.Description)
	}
	return text + `, "parameters": ` + string(t.Parameters) + "}}"
}

// callText is a tool call as chat templates write it.
func callText(c art.ToolCall) string {
	return `{"name": ` + strconv.Quote(c.Name) + `, "arguments": ` + c.Arguments + "}"
}
