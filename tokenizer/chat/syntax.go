package chat

import (
	"errors"
	"fmt"
	"strings"
)

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

// jsonSyntax are the texts of a [CallSyntax].
type jsonSyntax struct{ open, begin, arguments, end, between, close string }

// callSyntaxes are the formats that write each call as one JSON object.
var callSyntaxes = map[string]jsonSyntax{
	hermes:     {begin: "<tool_call>\n", arguments: "arguments", end: "\n</tool_call>", between: "\n"},
	llama3JSON: {arguments: "parameters", between: "; "},
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
