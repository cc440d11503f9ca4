package runs

import (
	"errors"
	"fmt"

	"github.com/goart-dev/art"
)

// textColumns reads what was said. A message is an element of its row, a tool call an element of a message.
type textColumns struct {
	group, trajectory              column
	role, content, reasoning, name column // one value per message
	callID, callName, arguments    column // one value per tool call
}

// all are the columns with their names.
func (c *textColumns) all() map[string]*column {
	return map[string]*column{
		"group_index": &c.group, "trajectory_index": &c.trajectory,
		"messages.list.element.role": &c.role, "messages.list.element.content": &c.content,
		"messages.list.element.reasoning": &c.reasoning, "messages.list.element.name": &c.name,
		"messages.list.element.tool_calls.list.element.id":        &c.callID,
		"messages.list.element.tool_calls.list.element.name":      &c.callName,
		"messages.list.element.tool_calls.list.element.arguments": &c.arguments,
	}
}

// text is a row: its messages without samples. trajectory is -1 for a group without trajectories.
type text struct {
	group, trajectory int
	messages          []art.Message
}

// row reads the next row.
func (c *textColumns) row() (t text, err error) {
	if t.group, err = c.group.number(0); err != nil {
		return t, err
	}
	if t.trajectory, err = c.trajectory.number(-1); err != nil {
		return t, err
	}
	if t.messages, err = c.messages(); err != nil {
		return t, err
	}
	return t, c.calls(t.messages)
}

// messages reads the messages of a row but for their tool calls.
func (c *textColumns) messages() (list []art.Message, err error) {
	err = c.role.texts(func(_ int, role string) { list = append(list, art.Message{Role: art.Role(role)}) })
	for _, f := range [...]struct {
		column *column
		field  func(m *art.Message) *string
	}{
		{&c.content, func(m *art.Message) *string { return &m.Content }},
		{&c.reasoning, func(m *art.Message) *string { return &m.Reasoning }},
		{&c.name, func(m *art.Message) *string { return &m.Name }},
	} {
		n := 0
		err = errors.Join(err, f.column.texts(func(message int, text string) {
			if n++; message < len(list) {
				*f.field(&list[message]) = text
			}
		}))
		if err == nil && n != len(list) {
			err = fmt.Errorf("a row has %d roles of messages and %d other texts", len(list), n)
		}
	}
	return list, err
}

// calls reads the tool calls of the messages of a row.
func (c *textColumns) calls(messages []art.Message) error {
	type call struct {
		art.ToolCall
		message int
	}
	var list []call
	err := c.callName.texts(func(message int, name string) {
		list = append(list, call{art.ToolCall{Name: name}, message})
	})
	for _, f := range [...]struct {
		column *column
		field  func(c *call) *string
	}{
		{&c.callID, func(c *call) *string { return &c.ID }},
		{&c.arguments, func(c *call) *string { return &c.Arguments }},
	} {
		n := 0
		err = errors.Join(err, f.column.texts(func(_ int, text string) {
			if n < len(list) {
				*f.field(&list[n]) = text
			}
			n++
		}))
		if err == nil && n != len(list) {
			err = fmt.Errorf("a row has %d names of tool calls and %d other texts", len(list), n)
		}
	}
	for _, l := range list {
		if l.message >= len(messages) {
			return fmt.Errorf("a row has %d messages and a tool call in number %d", len(messages), l.message)
		}
		m := &messages[l.message]
		m.ToolCalls = append(m.ToolCalls, l.ToolCall)
	}
	return err
}
