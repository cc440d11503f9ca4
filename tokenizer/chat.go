package tokenizer

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
)

// Template is how messages become tokens, and a reply becomes a message. It is a Jinja template, parsed once, and the
// parser that reads what a model writes in its format. It is safe for concurrent use.
//
// Sequence extension: if Prompt gave P for some messages and the model replied with the ids R, then the prompt for the
// same messages followed by a message with Sample.IDs = R, and by any others, begins with P and then R, wherever the
// template writes those messages the same way again. So a growing conversation keeps its cache, and what is trained on is
// what was sampled. A template that writes earlier replies otherwise, such as one that leaves out what the model thought,
// breaks this on purpose; [art.History.Breaks] tells where.
type Template struct {
	tok      *Tokenizer
	name     string
	source   string
	plain    *jinja.Template
	tools    *jinja.Template // the one for conversations with tools
	args     *jinja.Dict     // variables besides messages and tools
	dialect  dialect
	reply    *replyFormat
	stops    []int32
	control  *controlTokens
	specials *controlTokens // those of control that are special tokens
	written  toolText       // what the template leaves out
	support  func() support
	unread   bool // the template writes calls that no parser reads

	ctx context.Context // of the one call of [Template.PromptContext] that this copy is for; else nil
}

// The formats that are here by name, for models that come without a template, and the name of the template that a model
// uses unless it is asked otherwise.
const (
	// ChatML is the format of Qwen and others: "<|im_start|>role\ncontent<|im_end|>\n", tools in the manner of Hermes.
	ChatML = "chatml"
	// Llama2 is the format of the chat models of Llama 2: "[INST] content [/INST]". It has no tools.
	Llama2 = "llama2"
	// Alpaca is the format of Stanford's Alpaca: "### Instruction:" and "### Response:". It has no tools.
	Alpaca = "alpaca"

	defaultTemplate = "default"
	toolTemplate    = "tool_use"
)

//go:embed formats/*.jinja
var formatFiles embed.FS

// format is a template that is part of this package.
type format struct {
	source string
	tokens []string // that the vocabulary must have
	named  []string // special tokens that the tokenizer must have
	parser string
}

var formats = sync.OnceValue(func() map[string]format {
	out := map[string]format{
		ChatML: {tokens: []string{imStart, imEnd}, parser: Hermes},
		Llama2: {named: []string{"bos_token", "eos_token"}, parser: NoTools},
		Alpaca: {named: []string{"eos_token"}, parser: NoTools},
	}
	for name, f := range out {
		source, err := formatFiles.ReadFile("formats/" + name + ".jinja")
		if err != nil {
			panic("tokenizer: " + err.Error()) // it is embedded
		}
		f.source = string(source)
		out[name] = f
	}
	return out
})

const (
	imStart = "<|im_start|>"
	imEnd   = "<|im_end|>"
)

var errNoFormat = errors.New("tokenizer: the chat format is not known, so it has to be named")

// Template returns a chat format. The empty name means the model's own template; of several, the one called "default",
// and "tool_use" for conversations with tools. A model without a template whose vocabulary is that of ChatML has that
// one. Other names are those of the model's own templates, and [ChatML], [Llama2] and [Alpaca].
func (t *Tokenizer) Template(name string) (*Template, error) {
	own := t.chat.templates
	if name == "" && len(own) > 0 {
		return t.ownTemplate()
	}
	if name == "" {
		for _, token := range formats()[ChatML].tokens {
			if _, ok := t.added.byContent[token]; !ok {
				return nil, fmt.Errorf("%w: the model has no chat template, and its vocabulary no token %s", errNoFormat, token)
			}
		}
		name = ChatML
	}
	if source, ok := own[name]; ok {
		return t.newTemplate(name, source, source)
	}
	f, ok := formats()[name]
	if !ok {
		names := append(slices.Sorted(maps.Keys(formats())), slices.Sorted(maps.Keys(own))...)
		return nil, fmt.Errorf("tokenizer: chat format %q is not known; there are %s", name, strings.Join(names, ", "))
	}
	return t.named(name, f)
}

// named returns a format of this package.
func (t *Tokenizer) named(name string, f format) (*Template, error) {
	for _, token := range f.tokens {
		if _, ok := t.added.byContent[token]; !ok {
			return nil, fmt.Errorf("tokenizer: chat format %q: the vocabulary has no token %s", name, token)
		}
	}
	for _, token := range f.named {
		if !slices.ContainsFunc(t.specialTokens(), func(s specialToken) bool { return s.name == token }) {
			return nil, fmt.Errorf("tokenizer: chat format %q: the tokenizer has no %s", name, token)
		}
	}
	return t.newTemplate(name, f.source, f.source)
}

// ownTemplate returns the model's template.
func (t *Tokenizer) ownTemplate() (*Template, error) {
	own := t.chat.templates
	plain, ok := own[defaultTemplate]
	if !ok {
		return nil, fmt.Errorf("%w: the model has the templates %s, none of them %q", errNoFormat, strings.Join(slices.Sorted(maps.Keys(own)), ", "), defaultTemplate)
	}
	for name, f := range formats() {
		if plain == f.source {
			return t.named(name, f)
		}
	}
	tools, ok := own[toolTemplate]
	if !ok {
		tools = plain
	}
	return t.newTemplate(defaultTemplate, plain, tools)
}

// newTemplate parses the sources of a template.
func (t *Tokenizer) newTemplate(name, plain, tools string) (*Template, error) {
	m := &Template{tok: t, name: name, source: plain, args: jinja.NewDict()}
	var err error
	if m.plain, err = jinja.Parse(plain); err != nil {
		return nil, fmt.Errorf("tokenizer: chat template %q: %w", name, err)
	}
	if m.tools = m.plain; tools != plain {
		if m.tools, err = jinja.Parse(tools); err != nil {
			return nil, fmt.Errorf("tokenizer: chat template %q: %w", toolTemplate, err)
		}
	}
	for _, s := range t.specialTokens() {
		m.args.Set(s.name, s.content)
	}
	if err = m.findControl(); err != nil {
		return nil, err
	}
	if m.dialect = (dialect{textArguments: true}); formats()[name].source != plain { // those of this package keep arguments as they are
		m.dialect = m.findDialect()
	}
	m.stops = m.findStops()
	m.findParser(detectParser(tools), plain+tools)
	return m, nil
}

// literals are the texts that stand in the templates.
func (t *Template) literals() []string { return append(t.plain.Literals(), t.tools.Literals()...) }

// findControl collects the control tokens of the templates, and of what stands between tags besides.
func (t *Template) findControl(tags ...string) (err error) {
	if t.control, err = newControlTokens(t.tok, append(t.literals(), tags...)); err == nil {
		t.specials, err = t.control.special()
	}
	if err != nil {
		return fmt.Errorf("tokenizer: chat template %q: %w", t.name, err)
	}
	return nil
}

// reserved are the variables of a template that a conversation sets.
var reserved = []string{"messages", "tools", "add_generation_prompt"}

// TemplateOptions change how a template is used. Zero fields change nothing.
type TemplateOptions struct {
	// Args are further variables of the template, a JSON object: {"enable_thinking": false, "documents": [...]}.
	Args json.RawMessage
	// Parser reads tool calls, one of the names of [Parsers], instead of the one that goes with the template.
	Parser string
	// ToolFormat writes tools into the system message, and calls and their results into the texts of messages, instead of
	// the template, and reads calls in the same format: one of the names of [ToolFormats]. It is for templates that leave
	// tools out. Where there can be no system message, tools stand before the first text of the user.
	ToolFormat string
}

// With returns the same template with other options.
func (t *Template) With(o TemplateOptions) (*Template, error) {
	m := *t
	if len(o.Args) > 0 {
		v, err := jinja.FromJSON(o.Args)
		args, ok := v.(*jinja.Dict)
		if err != nil || !ok {
			return nil, errors.New("tokenizer: the arguments of a template must be a JSON object")
		}
		for _, name := range reserved {
			if _, ok := args.Get(name); ok {
				return nil, fmt.Errorf("tokenizer: the arguments of a template cannot have %q: it comes from the conversation", name)
			}
		}
		m.args = t.args.With(args)
		m.support = sync.OnceValue(m.findSupport)
	}
	if o.Parser != "" {
		if o.ToolFormat != "" {
			return nil, errors.New("tokenizer: a tool format says what reads calls: name no parser beside it")
		}
		if !slices.Contains(Parsers(), o.Parser) {
			return nil, fmt.Errorf("tokenizer: parser %q is not known; there are %s", o.Parser, strings.Join(Parsers(), ", "))
		}
		m.setParser(o.Parser, strings.Join(t.literals(), "\n"))
	}
	if o.ToolFormat != "" {
		if err := m.setToolFormat(o.ToolFormat); err != nil {
			return nil, err
		}
	}
	return &m, nil
}

// setToolFormat writes tools in a format of ours.
func (t *Template) setToolFormat(name string) error {
	if !slices.Contains(ToolFormats(), name) {
		return fmt.Errorf("tokenizer: tool format %q is not known; there are %s", name, strings.Join(ToolFormats(), ", "))
	}
	f := toolParsers[name]
	if err := t.findControl(f.open, f.close); err != nil {
		return err
	}
	t.dialect = dialect{textArguments: true}
	t.setParser(name, strings.Join(t.literals(), "\n"))
	t.written = toolText{calls: callWriters[name], format: name}
	t.written.system = t.takesSystem()
	t.support = sync.OnceValue(t.findSupport)
	return nil
}

// Name returns the name of the format; that of the model's own template is "default".
func (t *Template) Name() string { return t.name }

// Source returns the Jinja source, of the template for conversations without tools where there are two.
func (t *Template) Source() string { return t.source }

// Parser returns the name of the parser that reads tool calls.
func (t *Template) Parser() string { return t.reply.name }

// EndOfTurn returns the ids that end a reply. The first is the one that the template ends turns with, if it has one.
func (t *Template) EndOfTurn() []int32 { return append([]int32(nil), t.stops...) }

// probe is a reply that no template writes of itself.
const probe = "x7q9z"

// findStops returns the ids that end a reply: the one that the template writes behind one, the end of a sequence, and
// those that end a text or a call of a tool.
func (t *Template) findStops() []int32 {
	var stops []int32
	text, err := t.Text([]art.Message{art.User("a"), art.Assistant(probe)}, nil, Whole)
	if at := strings.LastIndex(text, probe); err == nil && at >= 0 {
		t.tok.scan(text[at+len(probe):], func(string) {}, func(id int32) {
			if len(stops) == 0 {
				stops = []int32{id}
			}
		})
	}
	others := slices.Clone(t.tok.eos)
	for _, token := range []string{"<|endoftext|>", "<|eom_id|>", channelCall, channelReturn} {
		if id, ok := t.tok.added.byContent[token]; ok && t.tok.IsSpecial(id) {
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
