package chat

import (
	"errors"
	"strings"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/jinja"
)

// The tags of OpenAI's Harmony format. A reply is a list of messages such as
//
//	<|channel|>analysis<|message|>the reasoning<|end|>
//	<|start|>assistant<|channel|>commentary to=functions.name <|constrain|>json<|message|>{...}<|call|>
//	<|start|>assistant<|channel|>final<|message|>the answer<|return|>
//
// of which the first has no <|start|>: that is in the prompt. The recipient may come before the channel as well.
const (
	harmonyStart   = "<|start|>"
	harmonyChannel = "<|channel|>"
	harmonyMessage = "<|message|>"
	harmonyEnd     = "<|end|>"
	harmonyCall    = "<|call|>"
	harmonyReturn  = "<|return|>"
)

var harmonyTags = []string{
	harmonyStart, harmonyChannel, harmonyMessage, harmonyEnd, harmonyCall, harmonyReturn, "<|constrain|>",
}

// harmonyPart is what the header of a Harmony message says.
type harmonyPart struct {
	header    string
	function  string // the called function; "" for a text
	reasoning bool
	begun     bool // some of its text has come
}

// readHeader parses what comes before <|message|>.
func readHeader(header string) harmonyPart {
	part := harmonyPart{header: header}
	if _, to, ok := strings.Cut(header, "to="); ok {
		part.function = strings.TrimPrefix(firstWord(to), "functions.")
	}
	if _, channel, ok := strings.Cut(header, harmonyChannel); ok {
		part.reasoning = firstWord(channel) == "analysis"
	}
	return part
}

// firstWord returns the text up to white space or a tag.
func firstWord(s string) string {
	s = withoutTokens(s)
	if at := strings.IndexAny(s, " \t\r\n<"); at >= 0 {
		return s[:at]
	}
	return s
}

// stepHeader looks for the end of a header.
func (p *replyParser) stepHeader(final bool) bool {
	at, tag := p.find(final, p.format.tag(harmonyMessage))
	if tag != "" {
		p.part = readHeader(string(p.pending[:at]))
		p.enter(inBody, at+len(tag))
		p.openStream(streamBody(p.part.function))
		return true
	}
	if !final {
		return false
	}
	text := string(p.pending)
	switch plain := withoutTokens(text); {
	case strings.Contains(plain, harmonyChannel) || strings.Contains(plain, "to="):
		p.malformed(text, errors.New("it has no "+harmonyMessage))
	case strings.TrimSpace(strings.TrimPrefix(plain, harmonyStart+"assistant")) != "":
		p.text(text)
	}
	p.enter(inHeader, len(p.pending))
	return false
}

// stepBody looks for the end of a message, and takes its text.
func (p *replyParser) stepBody(final bool) bool {
	f := p.format
	at, tag := p.find(final, f.tag(harmonyEnd), f.tag(harmonyCall), f.tag(harmonyReturn), f.tag(harmonyStart))
	over := tag != "" || final
	if p.part.function != "" {
		p.growCalls(at)
		if !over {
			return false
		}
	}
	// The text of a call is taken all at once. There is a line break between other texts.
	text := string(p.pending[:at])
	begins := !p.part.begun && text != ""
	p.part.begun = p.part.begun || begins
	switch {
	case p.part.function != "":
		call := art.ToolCall{Name: p.part.function}
		var err error
		call.Arguments, err = wholeJSON(text)
		p.accept(p.part.header+harmonyMessage+text, []art.ToolCall{call}, err)
	case p.part.reasoning:
		if begins && p.reasoning.Len() > 0 {
			p.think([]byte("\n"))
		}
		p.think([]byte(text))
	default:
		if begins && p.content.Len() > 0 {
			p.text("\n")
		}
		p.text(text)
	}
	if tag == f.tag(harmonyStart) { // it belongs to the next header
		tag = ""
	}
	if p.enter(inBody, at+len(tag)); over {
		p.state = inHeader
	}
	return over
}

// withPreamble returns a message that has a call, with its text behind its reasoning, in the words of the format: what
// the model says before a call is a message of its own in the channel commentary. The template of gpt-oss takes no text
// beside reasoning there, and writes one alone as if it were reasoning.
func withPreamble(m *jinja.Dict) (*jinja.Dict, error) {
	text, err := contentOf(m)
	if err != nil {
		return nil, err
	}
	reasoning, _ := field(m, "thinking").(string)
	reasoning += harmonyEnd + harmonyStart + "assistant" + harmonyChannel + "commentary" + harmonyMessage + text
	m = m.Clone()
	m.Set("thinking", reasoning)
	m.Set("reasoning_content", reasoning)
	m.Set("content", "")
	return m, nil
}
