package tokenizer

import (
	"errors"
	"strings"

	"github.com/goart-dev/art"
)

// The tags of replies in channels. A reply is parts such as
//
//	<|channel|>analysis<|message|>what is thought<|end|>
//	<|start|>assistant<|channel|>commentary to=functions.name <|constrain|>json<|message|>{...}<|call|>
//	<|start|>assistant<|channel|>final<|message|>the answer<|return|>
//
// of which the first has no <|start|>: it is in the prompt. The recipient may stand before the channel as well.
const (
	channelStart   = "<|start|>"
	channelName    = "<|channel|>"
	channelMessage = "<|message|>"
	channelEnd     = "<|end|>"
	channelCall    = "<|call|>"
	channelReturn  = "<|return|>"
)

var channelTags = []string{
	channelStart, channelName, channelMessage, channelEnd, channelCall, channelReturn, "<|constrain|>",
}

// channelPart is what the header of a part says.
type channelPart struct {
	header   string
	function string // that is called; "" for a text
	thought  bool
	begun    bool // there was some text of it
}

// readHeader reads what stands before <|message|>.
func readHeader(header string) channelPart {
	part := channelPart{header: header}
	if _, to, ok := strings.Cut(header, "to="); ok {
		part.function = strings.TrimPrefix(firstWord(to), "functions.")
	}
	if _, channel, ok := strings.Cut(header, channelName); ok {
		part.thought = firstWord(channel) == "analysis"
	}
	return part
}

// firstWord returns what stands before white space and tags.
func firstWord(s string) string {
	if at := strings.IndexAny(withoutTokens(s), " \t\r\n<"); at >= 0 {
		return withoutTokens(s)[:at]
	}
	return withoutTokens(s)
}

// stepHeader looks for the end of the header of a part.
func (p *replyParser) stepHeader(final bool) bool {
	at, tag := p.find(final, p.format.tag(channelMessage))
	if tag != "" {
		p.part = readHeader(string(p.pending[:at]))
		p.enter(inBody, at+len(tag))
		return true
	}
	if !final {
		return false
	}
	text := string(p.pending)
	switch plain := withoutTokens(text); {
	case strings.Contains(plain, channelName) || strings.Contains(plain, "to="):
		p.malformed(text, errors.New("it has no "+channelMessage))
	case strings.TrimSpace(strings.TrimPrefix(plain, channelStart+"assistant")) != "":
		p.text(text)
	}
	p.enter(inHeader, len(p.pending))
	return false
}

// stepBody looks for the end of a part, and takes what is said in it.
func (p *replyParser) stepBody(final bool) bool {
	f := p.format
	at, tag := p.find(final, f.tag(channelEnd), f.tag(channelCall), f.tag(channelReturn), f.tag(channelStart))
	over := tag != "" || final
	if p.part.function != "" && !over {
		return false
	}
	p.say(string(p.pending[:at]))
	if tag == f.tag(channelStart) { // the header reads it
		tag = ""
	}
	if p.enter(inBody, at+len(tag)); over {
		p.state = inHeader
	}
	return over
}

// say takes a text of a part, all of it where it is a call. A line break stands between parts.
func (p *replyParser) say(text string) {
	begins := !p.part.begun && text != ""
	p.part.begun = p.part.begun || begins
	switch {
	case p.part.function != "":
		p.sayCall(text)
	case p.part.thought:
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
}

// sayCall reads the arguments of a call.
func (p *replyParser) sayCall(text string) {
	call := art.ToolCall{Name: p.part.function}
	var err error
	if call.Arguments, err = wholeJSON(text); err != nil {
		p.malformed(p.part.header+channelMessage+text, err)
		return
	}
	p.take([]art.ToolCall{call})
}
