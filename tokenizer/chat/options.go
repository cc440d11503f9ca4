package chat

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/goart-dev/art/internal/jinja"
)

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
		if err := m.setArgs(o.Args); err != nil {
			return nil, err
		}
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
	if o.ToolFormat != "" {
		if err := m.setToolFormat(o.ToolFormat); err != nil {
			return nil, err
		}
	}
	m.probeAgain()
	return &m, nil
}

// setArgs adds variables from a JSON object.
func (t *Template) setArgs(raw json.RawMessage) error {
	v, err := jinja.FromJSON(raw)
	args, ok := v.(*jinja.Dict)
	if err != nil || !ok {
		return errors.New("chat: the arguments of a template must be a JSON object")
	}
	for _, name := range reserved {
		if _, ok := args.Get(name); ok {
			return fmt.Errorf("chat: the arguments of a template cannot have %q, which comes from the conversation", name)
		}
	}
	t.args = t.args.With(args)
	return nil
}

// setToolFormat makes this package write tools, calls and results, and not the template.
func (t *Template) setToolFormat(name string) error {
	if !slices.Contains(ToolFormats(), name) {
		return fmt.Errorf("chat: tool format %q is not known, only %s", name, strings.Join(ToolFormats(), ", "))
	}
	f := callFormats[name]
	if err := t.findControl(f.open, f.close); err != nil {
		return err
	}
	t.dialect = dialect{textArguments: true}
	t.setParser(name, strings.Join(t.literals(), "\n"))
	t.toolText = toolText{writeCalls: callWriters[name], format: name}
	t.toolText.system = t.takesSystem()
	return nil
}
