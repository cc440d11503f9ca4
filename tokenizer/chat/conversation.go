package chat

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/jinja"
)

// conversation is messages and tools as values of a template.
type conversation struct {
	template *jinja.Template
	messages []*jinja.Dict
	sampled  []bool // which messages have a Sample
	tools    any
}

func (c *conversation) prefix(n int) *conversation {
	return &conversation{c.template, c.messages[:n], c.sampled[:n], c.tools}
}

func (t *Template) conversation(messages []art.Message, tools []art.Tool) (*conversation, error) {
	c := &conversation{template: t.plain}
	for i := range messages {
		if err := t.ended(); err != nil {
			return nil, err
		}
		m, err := t.messageValue(&messages[i])
		if err != nil {
			return nil, fmt.Errorf("chat: message %d: %w", i, err)
		}
		c.messages, c.sampled = append(c.messages, m), append(c.sampled, messages[i].Sample != nil)
	}
	if t.namedIDs {
		nameIDs(c.messages)
	}
	if t.dialect.resultNames {
		nameResults(c.messages)
	}
	if len(tools) == 0 {
		return c, nil
	}
	if t.toolText.format == "" {
		c.template = t.tools
	}
	var list []any
	for i := range tools {
		if err := t.ended(); err != nil {
			return nil, err
		}
		v, err := toolValue(&tools[i])
		if err != nil {
			return nil, fmt.Errorf("chat: tool %d: %w", i, err)
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

// messageValue returns a message as it is on the wire, except for what templates expect: there always is content,
// arguments are objects, and reasoning has the names that templates use.
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

// parseArguments replaces the arguments of calls, which are the text of a JSON object, by that object. Other texts
// stay.
func parseArguments(calls any) {
	for _, call := range jinja.Items(calls) {
		text, ok := field(field(call, "function"), "arguments").(string)
		if !ok {
			continue
		}
		if v, err := jinja.FromJSON([]byte(cmp.Or(text, "{}"))); err == nil {
			if object, ok := v.(*jinja.Dict); ok {
				field(call, "function").(*jinja.Dict).Set("arguments", object)
			}
		}
	}
}

// withReasoning gives reasoning the names reasoning_content and thinking, whichever of the three names in use it has,
// as transformers does.
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

// needsResultNames reports whether the template fails on a result that does not say which function it is of, as
// OpenAI's clients send it.
func (t *Template) needsResultNames() bool {
	conversation := probeConversation()[:3]
	if _, err := t.render(conversation, probeTools(), Whole); err != nil {
		return false
	}
	conversation[2].Name = ""
	_, err := t.render(conversation, probeTools(), Whole)
	return err != nil
}

// nameResults gives results without a name that of the function that was called.
func nameResults(messages []*jinja.Dict) {
	names := map[any]any{} // by the id of the call
	for _, m := range messages {
		for _, call := range jinja.Items(field(m, "tool_calls")) {
			names[field(call, "id")] = field(field(call, "function"), "name")
		}
		name, called := names[field(m, "tool_call_id")]
		if called && hasRole(m, art.RoleTool) && field(m, "name") == nil {
			m.Set("name", name)
		}
	}
}
