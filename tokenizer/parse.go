package tokenizer

import (
	"slices"
	"strconv"
	"strings"

	"github.com/goart-dev/art"
)

// marker is a tag that structures a reply. Where the vocabulary has a token for it, only that token counts, and the
// same characters in other tokens are content; otherwise its text counts.
type marker struct {
	text string
	id   int32
	ok   bool // the vocabulary has a token for it
}

func (t *Tokenizer) markers(texts ...string) []marker {
	var out []marker
	for _, text := range texts {
		id, ok := t.added.byContent[text]
		out = append(out, marker{text, id, ok})
	}
	return out
}

// part is text, or a marker.
type part struct {
	text   string
	marker bool
}

func (p part) is(marker string) bool { return p.marker && p.text == marker }

// parse reads reasoning, content and tool calls. A reply that ends while it thinks is all reasoning.
func (f *chatML) parse(ids []int32) art.Message {
	if n := len(ids); n > 0 && slices.Contains(f.ends, ids[n-1]) {
		ids = ids[:n-1]
	}
	m := art.Message{Role: art.RoleAssistant}
	parts := f.parts(ids)
	m.Reasoning, parts = takeReasoning(parts)
	m.Content, m.ToolCalls = takeCalls(parts)
	return m
}

// parts divides a reply at its markers.
func (f *chatML) parts(ids []int32) []part {
	var out []part
	start := 0
	for i, id := range ids {
		for _, m := range f.markers {
			if m.ok && m.id == id {
				out = f.appendText(out, f.tok.Decode(ids[start:i], true))
				out = append(out, part{m.text, true})
				start = i + 1
			}
		}
	}
	return f.appendText(out, f.tok.Decode(ids[start:], true))
}

// appendText divides text at the markers that have no token.
func (f *chatML) appendText(out []part, text string) []part {
	for text != "" {
		at, found := len(text), ""
		for _, m := range f.markers {
			if i := strings.Index(text, m.text); !m.ok && i >= 0 && i < at {
				at, found = i, m.text
			}
		}
		if at > 0 {
			out = append(out, part{text: text[:at]})
		}
		if found != "" {
			out = append(out, part{found, true})
		}
		text = text[at+len(found):]
	}
	return out
}

// takeReasoning takes a <think> block off the front, with the line breaks that the format puts around it.
func takeReasoning(parts []part) (string, []part) {
	if len(parts) > 0 && !parts[0].marker && strings.TrimSpace(parts[0].text) == "" && len(parts) > 1 && parts[1].is(thinkOpen) {
		parts = parts[1:]
	}
	if len(parts) == 0 || !parts[0].is(thinkOpen) {
		return "", parts
	}
	end := slices.IndexFunc(parts, func(p part) bool { return p.is(thinkClose) })
	if end < 0 {
		return strings.TrimPrefix(join(parts[1:]), "\n"), nil
	}
	reasoning := strings.TrimSuffix(strings.TrimPrefix(join(parts[1:end]), "\n"), "\n")
	rest := slices.Clone(parts[end+1:])
	if len(rest) > 0 && !rest[0].marker {
		rest[0].text = strings.TrimPrefix(strings.TrimPrefix(rest[0].text, "\n"), "\n")
	}
	return reasoning, rest
}

// takeCalls takes out the tool calls. What is not a call is content; line breaks that only separate calls are not.
func takeCalls(parts []part) (content string, calls []art.ToolCall) {
	var text strings.Builder // since the last call
	var all strings.Builder
	for i := 0; i < len(parts); {
		call, n := callAt(parts[i:])
		if n == 0 {
			text.WriteString(parts[i].text)
			i++
			continue
		}
		call.ID = "call_" + strconv.Itoa(len(calls))
		between := strings.TrimSuffix(text.String(), "\n")
		if len(calls) == 0 || strings.TrimSpace(between) != "" {
			all.WriteString(between)
		}
		text.Reset()
		calls = append(calls, call)
		i += n
	}
	if len(calls) == 0 || strings.TrimSpace(text.String()) != "" {
		all.WriteString(text.String())
	}
	return all.String(), calls
}

// callAt reads the call that parts begin with, and returns how many parts it takes; 0 when there is none.
func callAt(parts []part) (art.ToolCall, int) {
	if !parts[0].is(callOpen) {
		return art.ToolCall{}, 0
	}
	for i, p := range parts[1:] {
		if p.is(callClose) {
			call, ok := parseCall(join(parts[1 : i+1]))
			if !ok {
				return art.ToolCall{}, 0
			}
			return call, i + 2
		}
		if p.is(callOpen) {
			break
		}
	}
	return art.ToolCall{}, 0
}

func join(parts []part) string {
	var b strings.Builder
	for _, p := range parts {
		b.WriteString(p.text)
	}
	return b.String()
}
