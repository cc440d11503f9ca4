package otel

import (
	"fmt"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/protofield"
	"github.com/goart-dev/art/internal/track"
)

// batch is the spans of one trace, in protobuf, and the scores that belong to it.
type batch struct {
	spans  []byte // fields of a ScopeSpans
	count  int
	scores []Score
}

// add writes a span.
func (b *batch) add(s *span) {
	b.spans = protofield.AppendMessage(b.spans, scopeSpans, func(to []byte) []byte { return appendSpan(to, s) })
	b.count++
}

// scopeSpans is the field of the spans in a ScopeSpans.
const scopeSpans = 2

// builder makes spans of what has happened already.
type builder struct {
	opts    Options
	encoder *track.Encoder // of one rollout
	scratch []attribute.KeyValue
	size    int // of the spans of the last rollout, in bytes
}

// lone returns the span of a completion outside of a rollout.
func (b *builder) lone(e art.CompletionEvent) (out batch) {
	b.encoder = newEncoder()
	out.add(b.chat(newTrace(), nil, e))
	return out
}

// rollout returns the spans of a rollout, and its scores.
func (b *builder) rollout(r *track.Rollout) (out batch) {
	b.encoder = newEncoder()
	out.spans = make([]byte, 0, b.size+b.size/4) // rollouts are about equally long
	defer func() { b.size = len(out.spans) }()
	end := r.Finished()
	agent := &span{
		identity: newTrace(), name: "invoke_agent " + agentName(r), kind: kindInternal, start: r.Start.Time, end: end,
		attributes: b.agentAttributes(r),
	}
	for i, e := range r.Completions {
		out.add(b.chat(agent.child(), agent.span[:], e))
		b.tools(&out, agent, r, i, end)
	}
	for _, e := range evaluationsOf(r) {
		agent.events = append(agent.events, event{"gen_ai.evaluation.result", end, e.attributes(b.opts.Content)})
		out.scores = append(out.scores, e.score(agent.identity, end, b.opts.Content))
	}
	if failure := failureOf(r); failure != nil {
		b.fail(agent, failure.Type, failure.Message)
	}
	out.add(agent)
	return out
}

// fail sets the status of a span. The text is content: it may quote what was said.
func (b *builder) fail(s *span, kind, text string) {
	s.attributes = append(s.attributes, attribute.String("error.type", kind))
	if s.failed = true; b.opts.Content {
		s.message = text
	}
}

// chat makes the span of a completion.
func (b *builder) chat(id identity, parent []byte, e art.CompletionEvent) *span {
	s := &span{
		identity: id, parent: parent, name: "chat " + e.Model.Name(), kind: kindClient, start: e.Time,
		end: e.Time.Add(e.Duration), attributes: b.chatAttributes(e),
	}
	if e.Err != nil {
		b.fail(s, fmt.Sprintf("%T", e.Err), e.Err.Error())
	}
	return s
}

// tools adds the spans of the calls in the i-th reply that were answered.
func (b *builder) tools(out *batch, agent *span, r *track.Rollout, i int, end time.Time) {
	e := r.Completions[i]
	if e.Response == nil {
		return
	}
	began := e.Time.Add(e.Duration)
	for _, call := range e.Response.Message.ToolCalls {
		result, at := answer(r, i, call.ID, end)
		if result == nil {
			continue
		}
		out.add(&span{
			identity: agent.child(), parent: agent.span[:], name: "execute_tool " + call.Name, kind: kindInternal,
			start: began, end: at, attributes: b.toolAttributes(call, result),
		})
	}
}

// answer returns the result of a call in the i-th reply, and when it was there at the latest; nil when there is none.
func answer(r *track.Rollout, i int, id string, end time.Time) (*art.Message, time.Time) {
	for _, later := range r.Completions[i+1:] {
		if m := resultOf(later.Request.Messages, id); m != nil {
			return m, later.Time
		}
	}
	if r.End == nil || r.End.Trajectory == nil {
		return nil, end
	}
	for _, h := range r.End.Trajectory.Histories() {
		if m := resultOf(h.Messages, id); m != nil {
			return m, end
		}
	}
	return nil, end
}

// resultOf returns the newest answer to a call.
func resultOf(messages []art.Message, id string) *art.Message {
	for i := range slices.Backward(messages) {
		if m := &messages[i]; m.Role == art.RoleTool && m.ToolCallID == id {
			return m
		}
	}
	return nil
}
