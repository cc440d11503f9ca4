package otel

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
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
	scores []score
}

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
	if r.End != nil && r.End.Failure != nil {
		b.fail(agent, r.End.Failure.Type, r.End.Failure.Message)
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

// The names are those of the semantic conventions 1.41 for generative AI, which later ones have kept for spans. What
// they have no name for begins with "art.".

// agentName is the name of the first model that was asked.
func agentName(r *track.Rollout) string {
	if len(r.Completions) == 0 {
		return "agent"
	}
	return r.Completions[0].Model.Name()
}

func (b *builder) agentAttributes(r *track.Rollout) []attribute.KeyValue {
	input, output := 0, 0
	for _, e := range r.Completions {
		if e.Response != nil {
			input, output = input+e.Response.Usage.PromptTokens, output+e.Response.Usage.CompletionTokens
		}
	}
	out := []attribute.KeyValue{
		attribute.String("gen_ai.operation.name", "invoke_agent"),
		attribute.String("gen_ai.provider.name", b.opts.Provider),
		attribute.String("gen_ai.agent.name", agentName(r)),
		attribute.Int("gen_ai.usage.input_tokens", input), attribute.Int("gen_ai.usage.output_tokens", output),
		attribute.Int64("art.gather", int64(r.Start.Gather)), attribute.Int("art.scenario", r.Start.Scenario),
		attribute.Int("art.attempt", r.Start.Attempt),
	}
	if r.End == nil || r.End.Trajectory == nil {
		return out
	}
	t := r.End.Trajectory
	for _, key := range slices.Sorted(maps.Keys(t.Metrics)) {
		out = append(out, attribute.Float64("art.metrics."+key, t.Metrics[key]))
	}
	if b.opts.Content {
		for _, key := range slices.Sorted(maps.Keys(t.Metadata)) {
			out = append(out, attribute.String("art.metadata."+key, fmt.Sprint(t.Metadata[key])))
		}
	}
	return out
}

// chatAttributes describe a completion. They are valid until those of the next.
func (b *builder) chatAttributes(e art.CompletionEvent) []attribute.KeyValue {
	s := e.Request.Settings
	out := append(b.scratch[:0],
		attribute.String("gen_ai.operation.name", "chat"),
		attribute.String("gen_ai.provider.name", b.opts.Provider),
		attribute.String("gen_ai.request.model", e.Model.Name()),
		attribute.Float64("gen_ai.request.temperature", s.Temperature),
		attribute.Float64("gen_ai.request.top_p", s.TopP),
		attribute.Int64("gen_ai.request.seed", int64(s.Seed)),
		attribute.Int("art.try", e.Try))
	if s.TopK > 0 {
		out = append(out, attribute.Int("gen_ai.request.top_k", s.TopK))
	}
	if s.MaxTokens > 0 {
		out = append(out, attribute.Int("gen_ai.request.max_tokens", s.MaxTokens))
	}
	if len(s.Stop) > 0 {
		out = append(out, attribute.StringSlice("gen_ai.request.stop_sequences", s.Stop))
	}
	if b.opts.Content {
		messages, err := b.encoder.Messages(e.Request.Messages)
		out = append(out, attribute.String("gen_ai.input.messages", asText(track.AppendArray(nil, messages), err)))
		if len(e.Request.Tools) > 0 {
			out = append(out, attribute.String("gen_ai.tool.definitions", asText(b.encoder.Tools(e.Request.Tools))))
		}
	}
	if r := e.Response; r != nil {
		out = append(out,
			attribute.String("gen_ai.response.id", r.ID),
			attribute.String("gen_ai.response.model", r.Model),
			attribute.StringSlice("gen_ai.response.finish_reasons", []string{r.Finish}),
			attribute.Int("gen_ai.usage.input_tokens", r.Usage.PromptTokens),
			attribute.Int("gen_ai.usage.output_tokens", r.Usage.CompletionTokens),
			attribute.Int("gen_ai.usage.cache_read.input_tokens", r.Usage.CachedTokens))
		if r.Message.Sample != nil {
			out = append(out, attribute.Int("art.policy_step", r.Message.Sample.Step))
		}
		if b.opts.Content {
			replies := []message{convert(&r.Message, r.Finish)}
			out = append(out, attribute.String("gen_ai.output.messages", asText(json.Marshal(replies))))
		}
	}
	b.scratch = out
	return out
}

func (b *builder) toolAttributes(call art.ToolCall, result *art.Message) []attribute.KeyValue {
	out := []attribute.KeyValue{
		attribute.String("gen_ai.operation.name", "execute_tool"),
		attribute.String("gen_ai.tool.name", call.Name),
		attribute.String("gen_ai.tool.call.id", call.ID),
		attribute.String("gen_ai.tool.type", "function"),
	}
	if b.opts.Content {
		out = append(out, attribute.String("gen_ai.tool.call.arguments", call.Arguments),
			attribute.String("gen_ai.tool.call.result", result.Content))
	}
	return out
}

// message is a message of the conventions.
type message struct {
	Role   art.Role `json:"role"`
	Parts  []part   `json:"parts"`
	Finish string   `json:"finish_reason,omitempty"`
}

type part struct {
	Type      string `json:"type"`
	Content   string `json:"content,omitempty"`
	ID        string `json:"id,omitempty"`
	Name      string `json:"name,omitempty"`
	Arguments any    `json:"arguments,omitempty"`
	Result    string `json:"result,omitempty"`
}

// convert returns a message in the form of the conventions.
func convert(m *art.Message, finish string) message {
	out := message{Role: m.Role, Finish: finish, Parts: []part{}}
	if m.Role == art.RoleTool {
		out.Parts = append(out.Parts, part{Type: "tool_call_response", ID: m.ToolCallID, Result: m.Content})
		return out
	}
	if m.Reasoning != "" {
		out.Parts = append(out.Parts, part{Type: "reasoning", Content: m.Reasoning})
	}
	if m.Content != "" {
		out.Parts = append(out.Parts, part{Type: "text", Content: m.Content})
	}
	for _, call := range m.ToolCalls {
		var arguments any = call.Arguments
		if json.Valid([]byte(call.Arguments)) {
			arguments = json.RawMessage(call.Arguments)
		}
		out.Parts = append(out.Parts, part{Type: "tool_call", ID: call.ID, Name: call.Name, Arguments: arguments})
	}
	return out
}

// newEncoder encodes messages in the form of the conventions.
func newEncoder() *track.Encoder {
	return track.NewEncoder(func(m *art.Message) ([]byte, error) { return json.Marshal(convert(m, "")) })
}

// asText returns JSON, or that of the error.
func asText(data []byte, err error) string {
	if err != nil {
		return fmt.Sprintf("%q", err.Error())
	}
	return string(data)
}

// evaluation is a number that says how good a rollout was.
type evaluation struct {
	name        string
	value       float64
	explanation string // content
}

// evaluationsOf returns the reward, and the score of a judge of package ruler with its explanations. NaN is left out.
func evaluationsOf(r *track.Rollout) []evaluation {
	if r.End == nil || r.End.Trajectory == nil {
		return nil
	}
	t := r.End.Trajectory
	out := []evaluation{{name: "reward", value: t.Reward}}
	if score, ok := t.Metrics["ruler_score"]; ok {
		var lines []string
		for _, line := range t.Logs {
			if strings.HasPrefix(line, "ruler (") {
				lines = append(lines, line)
			}
		}
		out = append(out, evaluation{"ruler", score, strings.Join(lines, "\n")})
	}
	return slices.DeleteFunc(out, func(e evaluation) bool { return math.IsNaN(e.value) || math.IsInf(e.value, 0) })
}

func (e evaluation) attributes(content bool) []attribute.KeyValue {
	out := []attribute.KeyValue{
		attribute.String("gen_ai.evaluation.name", e.name),
		attribute.Float64("gen_ai.evaluation.score.value", e.value),
	}
	if content && e.explanation != "" {
		out = append(out, attribute.String("gen_ai.evaluation.explanation", e.explanation))
	}
	return out
}

func (e evaluation) score(at identity, end time.Time, content bool) score {
	s := score{
		Trace: hex.EncodeToString(at.trace[:]), Span: hex.EncodeToString(at.span[:]), Name: e.name, Value: e.value, Time: end,
	}
	if content {
		s.Explanation = e.explanation
	}
	return s
}
