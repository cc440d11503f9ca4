package tokenizer

import (
	"errors"
	"fmt"
	"strings"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/jinja"
)

// Ending says how the text of a conversation ends.
type Ending int

const (
	// Reply ends with what stands before a reply of the assistant: a prompt.
	Reply Ending = iota
	// Whole ends with the last message.
	Whole
	// Continue ends within the last message, which the model goes on with.
	Continue
)

// continueTag marks where the last message ends. The space tells whether the template takes white space off.
const continueTag = "CONTINUE_HERE_9f1c "

// Text renders a conversation as transformers' apply_chat_template does. tools may be empty. It is an error when the
// template leaves out the tools, or the calls of a message; see [TemplateOptions] for what helps.
func (t *Template) Text(messages []art.Message, tools []art.Tool, ending Ending) (string, error) {
	text, err := t.render(messages, tools, ending)
	if err == nil {
		err = t.checkTools(text, messages, tools)
	}
	if err != nil {
		return "", err
	}
	return text, nil
}

// render is Text without a check of what the template leaves out.
func (t *Template) render(messages []art.Message, tools []art.Tool, ending Ending) (string, error) {
	c, err := t.conversation(messages, tools)
	if err != nil {
		return "", err
	}
	return t.text(c, ending)
}

// conversation is messages and tools as values of a template.
type conversation struct {
	template *jinja.Template
	messages []*jinja.Dict
	tools    any
}

// prefix returns the first n messages.
func (c *conversation) prefix(n int) *conversation {
	return &conversation{c.template, c.messages[:n], c.tools}
}

func (t *Template) conversation(messages []art.Message, tools []art.Tool) (*conversation, error) {
	c := &conversation{template: t.plain}
	for i := range messages {
		if err := t.ended(); err != nil {
			return nil, err
		}
		m, err := t.messageValue(&messages[i])
		if err != nil {
			return nil, fmt.Errorf("tokenizer: message %d: %w", i, err)
		}
		c.messages = append(c.messages, m)
	}
	if len(tools) == 0 {
		return c, nil
	}
	if t.written.format == "" {
		c.template = t.tools
	}
	var list []any
	for i := range tools {
		if err := t.ended(); err != nil {
			return nil, err
		}
		v, err := toolValue(&tools[i])
		if err != nil {
			return nil, fmt.Errorf("tokenizer: tool %d: %w", i, err)
		}
		list = append(list, v)
	}
	c.tools = jinja.List(list...)
	return c, nil
}

func toolValue(tool *art.Tool) (any, error) {
	if tool.Name == "" {
		return nil, errors.New("it has no name")
	}
	data, err := tool.MarshalJSON()
	if err != nil {
		return nil, err
	}
	return jinja.FromJSON(data)
}

// messageValue returns a message in its wire form, but for what templates want otherwise: content is there, arguments
// are the object that their text means, and what was thought has the names that templates use.
func (t *Template) messageValue(m *art.Message) (*jinja.Dict, error) {
	if m.Sample != nil && m.Role != art.RoleAssistant {
		return nil, fmt.Errorf("it has a Sample, but its role is %q: only an assistant's message is sampled", m.Role)
	}
	for i := range m.ToolCalls {
		if m.ToolCalls[i].Name == "" {
			return nil, fmt.Errorf("tool call %d: it has no name", i)
		}
	}
	data, err := m.MarshalJSON()
	if err != nil {
		return nil, err
	}
	v, err := jinja.FromJSON(data)
	if err != nil {
		return nil, err
	}
	d := v.(*jinja.Dict) // Message.MarshalJSON writes an object
	if _, ok := d.Get("content"); !ok {
		d.Set("content", "")
	}
	t.dialect.apply(d)
	return withReasoning(d), nil
}

// openArguments turns the arguments of calls from the text of an object into the object. Other texts stay.
func openArguments(calls any) {
	for _, call := range jinja.Items(calls) {
		c, ok := call.(*jinja.Dict)
		if !ok {
			continue
		}
		v, _ := c.Get("function")
		function, ok := v.(*jinja.Dict)
		if !ok {
			continue
		}
		arguments, _ := function.Get("arguments")
		text, ok := arguments.(string)
		if !ok {
			continue
		}
		if text == "" {
			text = "{}"
		}
		if object, err := jinja.FromJSON([]byte(text)); err == nil {
			if _, ok := object.(*jinja.Dict); ok {
				function.Set("arguments", object)
			}
		}
	}
}

// withReasoning gives what was thought the names reasoning_content and thinking, whichever of the three that are in use
// it came under, as transformers does.
func withReasoning(d *jinja.Dict) *jinja.Dict {
	for _, name := range []string{"reasoning_content", "thinking", "reasoning"} {
		v, ok := d.Get(name)
		if !ok || v == nil {
			continue
		}
		out := jinja.NewDict()
		out.Set("thinking", v)
		out = out.With(d)
		out.Set("reasoning_content", v)
		return out
	}
	return d
}

// text renders a conversation.
func (t *Template) text(c *conversation, ending Ending) (string, error) {
	if ending == Continue {
		return t.continued(c)
	}
	c, err := t.written.write(c)
	if err != nil {
		return "", err
	}
	variables := jinja.NewDict()
	list := make([]any, len(c.messages))
	for i, m := range c.messages {
		list[i] = m
	}
	variables.Set("messages", jinja.List(list...))
	variables.Set("tools", c.tools)
	variables.Set("documents", nil)
	variables.Set("add_generation_prompt", ending == Reply)
	out, err := c.template.Render(variables.With(t.args), jinja.Options{Context: t.ctx})
	if err != nil {
		return "", fmt.Errorf("tokenizer: chat template %q: %w", t.name, err)
	}
	return out.Text, nil
}

// continued renders a conversation up to the end of the content of its last message.
func (t *Template) continued(c *conversation) (string, error) {
	if len(c.messages) == 0 {
		return "", errors.New("tokenizer: there is no message to continue")
	}
	last := len(c.messages) - 1
	content, _ := c.messages[last].Get("content")
	text, ok := content.(string)
	if !ok {
		return "", errors.New("tokenizer: the last message has no text to continue")
	}
	tagged := c.prefix(last)
	tagged.messages = append(append([]*jinja.Dict(nil), tagged.messages...), c.messages[last].Clone())
	tagged.messages[last].Set("content", text+continueTag)
	out, err := t.text(tagged, Whole)
	if err != nil {
		return "", err
	}
	at := strings.LastIndex(out, strings.TrimSpace(continueTag))
	if at < 0 || !strings.Contains(out, strings.TrimSpace(text)) {
		return "", errors.New("tokenizer: the last message cannot be continued: the template changes its text")
	}
	if strings.HasPrefix(out[at:], continueTag) {
		return out[:at], nil
	}
	return strings.TrimRight(out[:at], " \t\n\v\f\r"), nil
}
