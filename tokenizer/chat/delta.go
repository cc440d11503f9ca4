package chat

import "github.com/goart-dev/art"

// Delta is what a piece of a reply adds to its message.
type Delta struct {
	Reasoning, Content string
	ToolCalls          []CallDelta
}

// CallDelta is what a piece of a reply adds to one of its calls.
type CallDelta struct {
	Index     int    // of the call in the message, counted from 0
	ID, Name  string // set in the first delta of the call, empty in the others
	Arguments string // what follows the arguments that have come so far
}

// AddTo adds a delta to a message that the deltas before it made.
func (d Delta) AddTo(m *art.Message) {
	m.Reasoning += d.Reasoning
	m.Content += d.Content
	for _, c := range d.ToolCalls {
		if c.Index == len(m.ToolCalls) {
			m.ToolCalls = append(m.ToolCalls, art.ToolCall{ID: c.ID, Name: c.Name})
		}
		m.ToolCalls[c.Index].Arguments += c.Arguments
	}
}
