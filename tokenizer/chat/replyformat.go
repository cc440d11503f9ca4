package chat

import (
	"errors"
	"fmt"
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

// ErrNoSyntax is wrapped by the errors for a format of replies that has no grammar.
var ErrNoSyntax = errors.New("chat: there is no grammar for replies of the format")

// Part is a piece of the syntax of replies: a text, or one token.
type Part struct {
	Text    string
	Token   int32
	IsToken bool
}

// Syntax says how a model writes replies, for a grammar of them.
type Syntax struct {
	// ThinkOpen and ThinkClose are around reasoning; both are empty where the format has none.
	ThinkOpen, ThinkClose []Part
	// Call is how calls are written; nil if there is no grammar for them, and then NoCall says why.
	Call   *CallSyntax
	NoCall error
	// Tags are the tokens that are tags: they are never part of a text.
	Tags []int32
}

// CallSyntax is how calls are written: Open; for each call Begin, its name as a JSON string, Middle, its arguments as a
// JSON object, End; Between between the calls; Close.
type CallSyntax struct {
	Open, Begin, Middle, End, Between, Close []Part
}

// jsonSyntax are the texts of a [CallSyntax]. afterText is what comes before open if there is content before the calls.
type jsonSyntax struct{ open, begin, arguments, end, between, close, afterText string }

// callSyntaxes are the formats that write each call as one JSON object.
var callSyntaxes = map[string]jsonSyntax{
	hermes:     {begin: "<tool_call>\n", arguments: "arguments", end: "\n</tool_call>", between: "\n"},
	llama3JSON: {arguments: "parameters", between: "; ", afterText: "<|python_tag|>"},
	granite:    {open: "<|tool_call|>[", arguments: "arguments", between: ", ", close: "]"},
	apriel:     {open: "<tool_calls>[", arguments: "arguments", between: ", ", close: "]</tool_calls>"},
	nemotron:   {open: "<TOOLCALL>[", arguments: "arguments", between: ", ", close: "]</TOOLCALL>"},
}

// Syntax returns how replies to the template are written. Calls in tags, in Python and of formats with ids in them have
// no grammar; nor has any reply of gpt-oss.
func (t *Template) Syntax() (Syntax, error) {
	f := t.reply
	if f.calls.harmony {
		return Syntax{}, fmt.Errorf("%w %q", ErrNoSyntax, f.name)
	}
	s := Syntax{ThinkOpen: f.parts(withoutTokens(f.thinkOpen)), ThinkClose: f.parts(withoutTokens(f.thinkClose))}
	for id := range f.tagOf {
		s.Tags = append(s.Tags, id)
	}
	text, ok := callSyntaxes[f.name]
	if !ok {
		s.NoCall = fmt.Errorf("%w %q that call tools", ErrNoSyntax, f.name)
		return s, nil
	}
	s.Call = &CallSyntax{
		Open: f.parts(text.open), Begin: f.parts(text.begin + `{"name": `),
		Middle: f.parts(`, "` + text.arguments + `": `), End: f.parts("}" + text.end),
		Between: f.parts(text.between), Close: f.parts(text.close),
	}
	return s, nil
}

// EndsReasoning reports whether a prompt ends with reasoning that is complete, as templates write to switch it off.
func (t *Template) EndsReasoning(prompt []int32) bool {
	tail := t.tok.Decode(prompt[max(0, len(prompt)-16):], false)
	end := withoutTokens(t.reply.thinkClose)
	return end != "" && strings.HasSuffix(strings.TrimRight(tail, " \n"), end)
}

// OpensReasoning reports whether a prompt has opened the reasoning for the model.
func (t *Template) OpensReasoning(prompt []int32) bool {
	return t.reply.opensReasoning(t.tok.Decode(prompt[max(0, len(prompt)-16):], false))
}

// parts splits a text at the tags that are tokens.
func (f *replyFormat) parts(text string) (out []Part) {
	for text != "" {
		at, tag, id := len(text), "", int32(0)
		for token, marked := range f.tagOf {
			name := withoutTokens(marked)
			if i := strings.Index(text, name); i >= 0 && (i < at || i == at && len(name) > len(tag)) {
				at, tag, id = i, name, token
			}
		}
		if at > 0 {
			out = append(out, Part{Text: text[:at]})
		}
		if tag != "" {
			out = append(out, Part{Token: id, IsToken: true})
		}
		text = text[at+len(tag):]
	}
	return out
}
