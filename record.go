package art

import (
	"bytes"
	"context"
	"encoding/json"
	"reflect"
	"strings"
	"sync"
)

// Record runs f and returns a trajectory of every completion made with f's context, by [Model.Chat], [Model.Complete]
// or an HTTP client from [Model.HTTPClient], whatever code is in between. f may call the model from several goroutines;
// completions that end after f has returned are not recorded. Of nested Records, the innermost records.
//
// A request that repeats a recorded conversation and adds to it continues it; any other request, and one with other
// tools, starts a new history: the first is the trajectory's own, the others are additional. Messages are compared by
// what survives a client that rebuilds them (role, text, tool calls), and the recorded message, with its [Sample], is
// kept. Each sample is in one history only: where a conversation forks, the fork repeats the text without it.
//
// The trajectory is returned also when f fails, with f's error; when the model's last response to an HTTP client was an
// error, its message is added. When f succeeds and nothing was recorded, because its calls had another context or
// failed, or because a nested Record has them all, the trajectory has no messages and the error is an
// [ErrNothingRecorded]; callers whose f may skip the model ignore that error. The caller sets the reward.
func Record(ctx context.Context, f func(ctx context.Context) error) (*Trajectory, error) {
	r := &recorder{trajectory: NewTrajectory()}
	defer r.close()
	ctx, refused := withRefusal(ctx)
	err := f(context.WithValue(ctx, recorderKey{}, r))
	t := r.close()
	if err == nil && len(t.Messages) == 0 {
		err = &Error{"record", ErrNothingRecorded,
			"pass the context of the function to each call of the model; failed calls are not recorded"}
	}
	return t, refused.explained(err)
}

// recorderKey is the context key of a *recorder.
type recorderKey struct{}

// recorder grows a trajectory.
type recorder struct {
	mu         sync.Mutex
	closed     bool
	trajectory *Trajectory
	tools      []string // of each history, as one comparable text
}

// recordCompletion hands a completion to the recorder of ctx, if there is one.
func recordCompletion(ctx context.Context, request *ChatRequest, reply Message) {
	if r, ok := ctx.Value(recorderKey{}).(*recorder); ok {
		r.add(request, reply)
	}
}

// close ends the recording and returns the trajectory.
func (r *recorder) close() *Trajectory {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed {
		r.closed = true
		r.trajectory.Finish()
	}
	return r.trajectory
}

// add records one completion.
func (r *recorder) add(request *ChatRequest, reply Message) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return
	}
	tools := toolsText(request.Tools)
	h := r.continued(request.Messages, tools)
	if h == nil {
		h = r.fork(request.Tools, tools)
	}
	for _, m := range request.Messages[len(h.Messages):] {
		if m.Sample != nil && r.has(m.Sample) {
			m.Sample = nil
		}
		h.Add(m)
	}
	h.Add(reply)
}

// continued returns the longest history that messages repeat, or nil.
func (r *recorder) continued(messages []Message, tools string) *History {
	var best *History
	for i, h := range r.histories() {
		longer := best == nil || len(h.Messages) > len(best.Messages)
		if longer && r.tools[i] == tools && hasPrefix(messages, h.Messages) {
			best = h
		}
	}
	return best
}

// fork starts a history. The first one is the trajectory's own.
func (r *recorder) fork(tools []Tool, text string) *History {
	r.tools = append(r.tools, text)
	t := r.trajectory
	if len(r.tools) == 1 {
		t.Tools = tools
		return &t.History
	}
	t.AdditionalHistories = append(t.AdditionalHistories, History{Tools: tools})
	return &t.AdditionalHistories[len(t.AdditionalHistories)-1]
}

// histories returns the histories that were started.
func (r *recorder) histories() []*History {
	if len(r.tools) == 0 {
		return nil
	}
	return r.trajectory.Histories()
}

// has reports whether a sample is recorded.
func (r *recorder) has(s *Sample) bool {
	for _, known := range r.trajectory.Samples() {
		if known == s {
			return true
		}
	}
	return false
}

// hasPrefix reports whether messages begin with prefix, compared by [sameMessage].
func hasPrefix(messages, prefix []Message) bool {
	if len(messages) < len(prefix) {
		return false
	}
	for i := range prefix {
		if !sameMessage(&messages[i], &prefix[i]) {
			return false
		}
	}
	return true
}

// sameMessage reports whether two messages say the same. It compares what survives a client that stores messages in its
// own structs: not samples, reasoning and unknown fields, nor the name of an assistant, which some clients add.
func sameMessage(a, b *Message) bool {
	return a.Role == b.Role && a.ToolCallID == b.ToolCallID &&
		(a.Name == b.Name || a.Role == RoleAssistant) &&
		a.Content == b.Content && bytes.Equal(a.media(), b.media()) &&
		sameCalls(a.ToolCalls, b.ToolCalls)
}

// sameCalls compares ids, names and arguments.
func sameCalls(a, b []ToolCall) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].ID != b[i].ID || a[i].Name != b[i].Name || !sameArguments(a[i].Arguments, b[i].Arguments) {
			return false
		}
	}
	return true
}

// sameArguments compares as text, and as JSON for clients that decode and encode arguments.
func sameArguments(a, b string) bool {
	if a == b {
		return true
	}
	x, okX := decodeAny(a)
	y, okY := decodeAny(b)
	return okX && okY && reflect.DeepEqual(x, y)
}

// decodeAny decodes JSON text, and keeps numbers as they are written.
func decodeAny(s string) (v any, ok bool) {
	if !json.Valid([]byte(s)) {
		return nil, false
	}
	d := json.NewDecoder(strings.NewReader(s))
	d.UseNumber()
	return v, d.Decode(&v) == nil
}

// toolsText renders tools so that equal texts are equal tools.
func toolsText(tools []Tool) string {
	var b strings.Builder
	for i := range tools {
		fields := []string{tools[i].Name, tools[i].Description, string(normalize(tools[i].Parameters))}
		text, _ := json.Marshal(fields) // strings always encode
		b.Write(text)
	}
	return b.String()
}
