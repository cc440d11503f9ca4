package tokenizer

import (
	"slices"
	"strings"

	"github.com/goart-dev/art"
)

// ReplyReader reads one reply as it is sampled. Its deltas, one after the other, are the message that Close returns. It
// is not safe for concurrent use.
type ReplyReader struct {
	template *Template
	parser   *replyParser
	stream   *Stream
	ended    bool
}

// Read starts to read a reply to a prompt. The prompt tells whether the template has begun to think for the model; it
// may be nil. tools are those of the prompt: some formats need them to tell a number from a text.
func (t *Template) Read(prompt []int32, tools []art.Tool) *ReplyReader {
	tail := t.tok.Decode(prompt[max(0, len(prompt)-16):], false)
	return &ReplyReader{template: t, parser: t.reply.start(t.reply.thinks(tail), tools), stream: t.tok.Stream(true)}
}

// thinks tells whether a prompt ends with the beginning of reasoning.
func (f *replyFormat) thinks(prompt string) bool {
	return f.thinkOpen != "" && strings.HasSuffix(strings.TrimRight(prompt, " \n"), withoutTokens(f.thinkOpen))
}

// Add takes the next id. An id that ends a reply ends it; what follows it is not read.
func (r *ReplyReader) Add(id int32) Delta {
	if r.ended {
		return Delta{}
	}
	t := r.template
	if slices.Contains(t.stops, id) {
		r.ended = true
		return r.parser.add(r.stream.Flush())
	}
	if tag := t.reply.tagOf[id]; tag != "" {
		text := r.stream.Flush()
		r.stream = t.tok.Stream(true)
		return r.parser.add(text + tag)
	}
	text, _ := r.stream.Add(id)
	return r.parser.add(text)
}

// Close ends the reply. The message has no Sample. err tells of tool calls that cannot be read, each a [*MalformedCall];
// their text is part of the content, and the message is good for all else.
func (r *ReplyReader) Close() (last Delta, message art.Message, err error) {
	last = r.parser.add(r.stream.Flush())
	rest, err := r.parser.close()
	last.Reasoning += rest.Reasoning
	last.Content += rest.Content
	last.ToolCalls = append(last.ToolCalls, rest.ToolCalls...)
	return last, r.parser.message, err
}

// Parse reads a whole reply; see [Template.Read] and [ReplyReader.Close].
func (t *Template) Parse(prompt, ids []int32, tools []art.Tool) (art.Message, error) {
	r := t.Read(prompt, tools)
	for _, id := range ids {
		r.Add(id)
	}
	_, message, err := r.Close()
	return message, err
}

// parseText reads a reply that a template wrote. mark is 0 when there is none in it.
func (t *Template) parseText(prompt, text string, mark rune, tools []art.Tool) art.Message {
	var b strings.Builder
	for text != "" {
		at, token := t.control.next(text)
		b.WriteString(text[:at])
		switch {
		case slices.Contains(t.reply.tags, tokenByte+token):
			b.WriteString(tokenByte + token)
		case token != "" && !t.tok.IsSpecial(t.tok.added.byContent[token]):
			b.WriteString(token)
		}
		text = text[at+len(token):]
	}
	p := t.reply.start(t.reply.thinks(prompt), tools)
	p.add(unmarked(b.String(), mark))
	_, _ = p.close() // a call that the template wrote and that cannot be read is content
	return p.message
}
