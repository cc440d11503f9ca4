// Package chat renders conversations with a model's own chat template, to the exact token ids that the model sees, and
// reads the model's replies back into messages. Two rules make it fit for training:
//
//   - Text from outside never becomes a control token. "<|im_end|>" in a message is encoded as ordinary text; so are
//     the tags that the template writes, unless the template itself looks for them in messages.
//   - What the model wrote is never encoded again. A message with an art.Sample contributes exactly the ids that were
//     sampled, so the prompt of each turn begins with the previous prompt and the reply to it, provided that the
//     template writes that reply the same way again.
//
// A template leaves much open: whether it writes tools at all, whether it takes the arguments of a call as an object or
// as a string, how it treats a message without content, and in which format it writes calls. [New] finds out by
// rendering small conversations.
package chat

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/jinja"
	"github.com/goart-dev/art/tokenizer"
)

// Template turns messages into tokens, and a reply into a message. It is a Jinja template, parsed once, and the parser
// of the format in which the model replies. It is safe for concurrent use.
//
// Sequence extension: if Prompt returned P for some messages and the model replied with the ids R, then the prompt for
// the same messages followed by a message with Sample.IDs = R, and by any others, begins with P and then R, provided
// that the template writes those messages the same way again. So a growing conversation keeps its KV cache, and what is
// trained on is what was sampled. A template that writes earlier replies differently, for example without their
// reasoning, breaks this on purpose; [art.History.Breaks] tells where.
type Template struct {
	tok      *vocabulary
	name     string
	source   string
	plain    *jinja.Template
	tools    *jinja.Template // the one for conversations with tools
	args     *jinja.Dict     // variables besides messages and tools
	dialect  dialect
	reply    *replyFormat
	stops    []int32
	control  *controlTokens
	special  *controlTokens // those of control that are special tokens
	toolText toolText       // writes what the template omits
	support  func() toolSupport
	forms    *formFinder
	tryForm  func(replyShape) replyForm // in place of forms, while one is tried; else nil
	namedIDs bool                       // calls have ids as Kimi K2 writes them
	unparsed bool                       // the template writes calls that no parser reads

	ctx context.Context // of the one call of [Template.PromptContext] that this copy is for; else nil
}

// vocabulary is a tokenizer and its added tokens, by their text.
type vocabulary struct {
	*tokenizer.Tokenizer
	added map[string]int32
}

// written returns a token as a template writes it. An added token may decode to another text.
func (v *vocabulary) written(id int32) string {
	text := v.Token(id)
	if added, ok := v.added[text]; ok && added == id {
		return text
	}
	return v.Decode([]int32{id}, false)
}

// toolTemplate is the name of the template for conversations with tools, where a model has one of its own for these.
const toolTemplate = "tool_use"

var errNoFormat = errors.New("chat: the chat format cannot be detected: name one")

// New returns a chat template. The empty name means the model's own template: of several, the one called "default", and
// "tool_use" for conversations with tools. A model without a template whose vocabulary has the tokens of ChatML gets
// [ChatML]. Other names are those of the model's own templates and of the built-in ones: [ChatML], "llama2" of the chat
// models of Llama 2, and "alpaca" of Stanford's Alpaca. The last two have no tools.
func New(tok *tokenizer.Tokenizer, name string) (*Template, error) {
	v := &vocabulary{tok, tok.AddedTokens()}
	own := tok.ChatTemplates()
	if name == "" && len(own) > 0 {
		plain, ok := own[tokenizer.DefaultTemplate]
		if !ok {
			return nil, fmt.Errorf("%w: the model has the templates %s, none of them %q",
				errNoFormat, strings.Join(slices.Sorted(maps.Keys(own)), ", "), tokenizer.DefaultTemplate)
		}
		for name, b := range builtins() {
			if plain == b.source {
				return v.builtin(name, b)
			}
		}
		tools, ok := own[toolTemplate]
		if !ok {
			tools = plain
		}
		return v.newTemplate(tokenizer.DefaultTemplate, plain, tools)
	}
	if name == "" {
		for _, token := range builtins()[ChatML].tokens {
			if _, ok := v.added[token]; !ok {
				return nil, fmt.Errorf("%w: the model has no chat template, and its vocabulary has no token %s", errNoFormat, token)
			}
		}
		name = ChatML
	}
	if source, ok := own[name]; ok {
		return v.newTemplate(name, source, source)
	}
	b, ok := builtins()[name]
	if !ok {
		names := append(slices.Sorted(maps.Keys(builtins())), slices.Sorted(maps.Keys(own))...)
		return nil, fmt.Errorf("chat: format %q is not known, only %s", name, strings.Join(names, ", "))
	}
	return v.builtin(name, b)
}

// newTemplate parses the sources of a template, and finds out how it wants to be used.
func (v *vocabulary) newTemplate(name, plain, tools string) (*Template, error) {
	t := &Template{tok: v, name: name, source: plain, args: jinja.NewDict()}
	var err error
	if t.plain, err = jinja.Parse(plain); err != nil {
		return nil, fmt.Errorf("chat: template %q: %w", name, err)
	}
	if t.tools = t.plain; tools != plain {
		if t.tools, err = jinja.Parse(tools); err != nil {
			return nil, fmt.Errorf("chat: template %q: %w", toolTemplate, err)
		}
	}
	special := v.SpecialTokens()
	for _, name := range slices.Sorted(maps.Keys(special)) {
		t.args.Set(name, special[name])
	}
	if err = t.findControl(); err != nil {
		return nil, err
	}
	parser := v.detectParser(tools)
	t.namedIDs = parser == kimiK2
	t.dialect = dialect{textArguments: true} // built-in templates copy arguments as they are
	if builtins()[name].source != plain {
		t.dialect = t.findDialect()
		t.dialect.resultNames = t.needsResultNames()
	}
	t.stops = t.findStops()
	t.findParser(parser, plain+tools)
	t.probeAgain()
	return t, nil
}

// literals returns the text outside expressions and statements of the templates.
func (t *Template) literals() []string { return append(t.plain.Literals(), t.tools.Literals()...) }

// findControl collects the control tokens of the templates; tags are further texts that they write.
func (t *Template) findControl(tags ...string) (err error) {
	if t.control, err = newControlTokens(t.tok, append(t.literals(), tags...)); err != nil {
		return fmt.Errorf("chat: template %q: %w", t.name, err)
	}
	t.special = t.control.special()
	return nil
}

// Name returns the name of the format; that of the model's own template is "default".
func (t *Template) Name() string { return t.name }

// Source returns the Jinja source: of two templates, that for conversations without tools.
func (t *Template) Source() string { return t.source }

// Parser returns the name of the parser that reads tool calls.
func (t *Template) Parser() string { return t.reply.name }

// EndOfTurn returns the ids that end a reply. The first is the one that the template ends turns with, if it has one.
func (t *Template) EndOfTurn() []int32 { return slices.Clone(t.stops) }

// endTokens end a text or a tool call, in the vocabularies that have them.
var endTokens = []string{"<|endoftext|>", "<|eom_id|>", harmonyCall, harmonyReturn, "<start_function_response>"}

// findStops returns the ids that end a reply: the one that the template writes after a reply, the end-of-sequence
// token, and those that end a text or a tool call.
func (t *Template) findStops() []int32 {
	var stops []int32
	text, err := t.Text([]art.Message{art.User("a"), art.Assistant(probe)}, nil, Whole)
	if at := strings.LastIndex(text, probe); err == nil && at >= 0 {
		t.tok.Split(text[at+len(probe):], func(string) {}, func(id int32) {
			if len(stops) == 0 {
				stops = []int32{id}
			}
		})
	}
	others := t.tok.EOS()
	for _, token := range endTokens {
		if id, ok := t.tok.added[token]; ok && t.tok.IsSpecial(id) {
			others = append(others, id)
		}
	}
	slices.Sort(others)
	for _, id := range others {
		if !slices.Contains(stops, id) {
			stops = append(stops, id)
		}
	}
	return stops
}

// ChatML is the built-in format of Qwen and others: "<|im_start|>role\ncontent<|im_end|>\n", with tools as Hermes has
// them.
const ChatML = "chatml"

//go:embed formats/*.jinja
var formatFiles embed.FS

// builtin is a template that is part of this package.
type builtin struct {
	source string
	tokens []string // added tokens that the vocabulary must have
	named  []string // special tokens that the tokenizer must name
}

var builtins = sync.OnceValue(func() map[string]builtin {
	out := map[string]builtin{
		ChatML:   {tokens: []string{"<|im_start|>", "<|im_end|>"}},
		"llama2": {named: []string{"bos_token", "eos_token"}},
		"alpaca": {named: []string{"eos_token"}},
	}
	for name, b := range out {
		source, err := formatFiles.ReadFile("formats/" + name + ".jinja")
		if err != nil {
			panic("chat: " + err.Error()) // it is embedded
		}
		b.source = string(source)
		out[name] = b
	}
	return out
})

// builtin returns a built-in template, if the vocabulary has the tokens that it needs.
func (v *vocabulary) builtin(name string, b builtin) (*Template, error) {
	for _, token := range b.tokens {
		if _, ok := v.added[token]; !ok {
			return nil, fmt.Errorf("chat: format %q: the vocabulary has no token %s", name, token)
		}
	}
	special := v.SpecialTokens()
	for _, token := range b.named {
		if _, ok := special[token]; !ok {
			return nil, fmt.Errorf("chat: format %q: the tokenizer has no %s", name, token)
		}
	}
	return v.newTemplate(name, b.source, b.source)
}

// Options change how a template is used. Zero fields change nothing.
type Options struct {
	// Args are further variables of the template, a JSON object: {"enable_thinking": false, "documents": [...]}.
	Args json.RawMessage
	// Parser names the parser that reads tool calls, one of [Parsers], in place of the detected one.
	Parser string
	// ToolFormat names a format, one of [ToolFormats], in which tools are written into the system message, and calls and
	// their results into the text of messages; calls are read in the same format. It is for templates that omit tools.
	// If the template takes no system message, tools come before the first text of the user.
	ToolFormat string
}

// reserved are the variables of a template that a conversation sets.
var reserved = []string{"messages", "tools", "add_generation_prompt"}

// With returns the same template with other options.
func (t *Template) With(o Options) (*Template, error) {
	m := *t
	if len(o.Args) == 0 && o.Parser == "" && o.ToolFormat == "" {
		return &m, nil
	}
	m.forms = nil
	if len(o.Args) > 0 {
		v, err := jinja.FromJSON(o.Args)
		args, ok := v.(*jinja.Dict)
		if err != nil || !ok {
			return nil, errors.New("chat: the arguments of a template must be a JSON object")
		}
		for _, name := range reserved {
			if _, ok := args.Get(name); ok {
				return nil, fmt.Errorf("chat: the arguments of a template cannot have %q, which comes from the conversation", name)
			}
		}
		m.args = m.args.With(args)
	}
	if o.Parser != "" {
		if o.ToolFormat != "" {
			return nil, errors.New("chat: a tool format implies its parser: set ToolFormat or Parser, not both")
		}
		if !slices.Contains(Parsers(), o.Parser) {
			return nil, fmt.Errorf("chat: parser %q is not known, only %s", o.Parser, strings.Join(Parsers(), ", "))
		}
		m.setParser(o.Parser, strings.Join(t.literals(), "\n"))
	}
	if o.ToolFormat != "" { // this package writes tools, calls and results, and not the template
		if !slices.Contains(ToolFormats(), o.ToolFormat) {
			return nil, fmt.Errorf("chat: tool format %q is not known, only %s", o.ToolFormat, strings.Join(ToolFormats(), ", "))
		}
		f := callFormats[o.ToolFormat]
		if err := m.findControl(f.open, f.close); err != nil {
			return nil, err
		}
		m.dialect = dialect{textArguments: true}
		m.setParser(o.ToolFormat, strings.Join(m.literals(), "\n"))
		m.toolText = toolText{writeCalls: callWriters[o.ToolFormat], format: o.ToolFormat}
		m.toolText.system = m.takesSystem()
	}
	m.probeAgain()
	return &m, nil
}
