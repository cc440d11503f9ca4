package art

import (
	"maps"
	"slices"
)

// Clone returns a deep copy. Samples are shared: they are never changed.
func (t *Trajectory) Clone() *Trajectory {
	if t == nil {
		return nil
	}
	c := *t
	c.History = t.History.clone()
	c.AdditionalHistories = slices.Clone(t.AdditionalHistories)
	for i, h := range c.AdditionalHistories {
		c.AdditionalHistories[i] = h.clone()
	}
	c.Metrics, c.Metadata, c.Logs = maps.Clone(t.Metrics), maps.Clone(t.Metadata), slices.Clone(t.Logs)
	return &c
}

// Clone returns a deep copy. Samples are shared: they are never changed.
func (g *TrajectoryGroup) Clone() *TrajectoryGroup {
	if g == nil {
		return nil
	}
	c := *g
	c.Trajectories = slices.Clone(g.Trajectories)
	for i, t := range c.Trajectories {
		c.Trajectories[i] = t.Clone()
	}
	c.Failures = slices.Clone(g.Failures)
	c.Metrics, c.Metadata, c.Logs = maps.Clone(g.Metrics), maps.Clone(g.Metadata), slices.Clone(g.Logs)
	return &c
}

// clone returns a deep copy that shares the samples.
func (h History) clone() History {
	return History{Messages: cloneMessages(h.Messages), Tools: cloneTools(h.Tools)}
}

// cloneMessages copies messages and their tool calls. What wire holds is never changed and is shared.
func cloneMessages(messages []Message) []Message {
	messages = slices.Clone(messages)
	for i := range messages {
		messages[i].ToolCalls = slices.Clone(messages[i].ToolCalls)
	}
	return messages
}

// cloneTools copies tools and their parameters.
func cloneTools(tools []Tool) []Tool {
	tools = slices.Clone(tools)
	for i := range tools {
		tools[i].Parameters = slices.Clone(tools[i].Parameters)
	}
	return tools
}
