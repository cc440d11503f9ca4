package chat

import (
	"slices"
	"strings"

	"github.com/goart-dev/art"
)

// In the text that a parser gets, a tag that is a token of the vocabulary is preceded by a byte that never occurs in
// UTF-8. So the same characters in other tokens are content.
const tokenByte = "\xff"

// replyFormat is how a model writes its reasoning and its tool calls.
type replyFormat struct {
	name       string
	thinkOpen  string // "" if the format has no tags for reasoning
	thinkClose string
	calls      callFormat
	tags       []string         // those that are tokens of the vocabulary, as they are in the text of a reply
	tagOf      map[int32]string // the same by their tokens
}

// callFormat is one way to write tool calls.
type callFormat struct {
	open  string // begins a section of calls; "" if there is none
	close string // ends it; "" if the next open or the end of the reply does
	// inner are the tags within a section, and the tokens that are parts of tags.
	inner []string
	// breaks is how many line breaks before a section are not content; 0 means 1.
	breaks int
	// bare are the characters that begin a reply that is a call without tags.
	bare string
	// bareOpen begins a section whose open tag the model omitted; "" if such a section looks like text. It is taken for a
	// call only if it contains closed.
	bareOpen, closed string
	// values tells which parts of a section are values: a tag in them is text.
	values valueSyntax
	// complete says that parse accepts whole sections only: one that it accepts may lack its close.
	complete bool
	// parse parses a section. err says what is wrong with it; errNoCall means that it is text, not an attempt at a call.
	parse func(section string, tools []art.Tool) ([]art.ToolCall, error)
	// stream finds the calls of a section that begins with open, while it grows; nil if they are given only as a whole.
	stream func(f *replyFormat, tools []art.Tool) callStream
	// id is the rule for the ids of calls, where the template has one.
	id func(c *callIDs, name, own string) string
	// harmony says that a reply is a list of messages with headers; of the other fields only id and inner count then.
	harmony bool
}

// thinkTags are the tags around reasoning.
var thinkTags = [][2]string{
	{"<think>", "</think>"},
	{"[THINK]", "[/THINK]"},
	{"<|START_THINKING|>", "<|END_THINKING|>"},
	{"<seed:think>", "</seed:think>"},
}

// replyFormat returns the format of the replies to a template, in terms of the vocabulary.
func (v *vocabulary) replyFormat(parser, template string) *replyFormat {
	f := &replyFormat{name: parser, calls: callFormats[parser], tagOf: map[int32]string{}}
	for _, pair := range thinkTags {
		if f.thinkOpen == "" && strings.Contains(template, pair[1]) {
			f.thinkOpen, f.thinkClose = v.addTag(f, pair[0]), v.addTag(f, pair[1])
		}
	}
	f.calls.open, f.calls.close = v.addTag(f, f.calls.open), v.addTag(f, f.calls.close)
	for _, inner := range f.calls.inner {
		v.addTag(f, inner)
	}
	for _, tag := range []*string{&f.calls.open, &f.calls.close, &f.calls.values.begin, &f.calls.values.end} {
		*tag = f.spell(*tag)
	}
	return f
}

// addTag returns a tag as it is in the text of a reply, and adds it to the format if it is a token.
func (v *vocabulary) addTag(f *replyFormat, text string) string {
	id, ok := v.added[text]
	if !ok {
		return text
	}
	f.tags = append(f.tags, tokenByte+text)
	f.tagOf[id] = tokenByte + text
	return tokenByte + text
}

// spell returns a tag that is no token as it is in the text of a reply: it may be or contain one of the inner tags.
func (f *replyFormat) spell(text string) string {
	for _, inner := range f.calls.inner {
		if !strings.Contains(text, tokenByte) && strings.Contains(text, inner) {
			return strings.Replace(text, inner, f.tag(inner), 1)
		}
	}
	return text
}

// tag returns a tag of the format as it is in the text of a reply.
func (f *replyFormat) tag(text string) string {
	if slices.Contains(f.tags, tokenByte+text) {
		return tokenByte + text
	}
	return text
}
