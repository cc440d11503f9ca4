package art

import (
	"bytes"
	"context"
	"encoding/json"
	"reflect"
	"strings"
)

// Record runs f and returns a trajectory of every completion made with f's context, by [Model.Chat], [Model.Complete]
// or an HTTP client from [Model.HTTPClient], whatever code is in between. f may call the model from several goroutines;
// completions that end after f has returned are not recorded. Of nested Records, the innermost records.
//
// A request that repeats a recorded conversation and adds to it continues it; any other request, and one with other
// tools, starts a new history: the first is the trajectory's own, the others are additional. Messages are compared by
// what survives a client that rebuilds them (role, text, tool calls), and the recorded message, with its [Sample], is
// kept. Each sample is in one history only: where a conversation forks, the fork repeats the text without it, and a
// line of [Trajectory].Logs says why it forked.
//
// The trajectory is returned also when f fails, with f's error; when the model's last response to an HTTP client was an
// error, its message is added. When f succeeds and nothing was recorded, because its calls had another context or
// failed, or because a nested Record has them all, the trajectory has no messages and the error is an
// [ErrNothingRecorded]; callers whose f may skip the model ignore that error. The caller sets the reward.
func Record(ctx context.Context, f func(ctx context.Context) error) (*Trajectory, error) {
	r := NewRecorder()
	r.ignoreLate = true
	defer r.Close()
	ctx, refused := withRefusal(ctx)
	err := f(r.Context(ctx))
	t := r.Close()
	if err == nil && len(t.Messages) == 0 {
		err = &Error{"record", ErrNothingRecorded,
			"pass the context of the function to each call of the model; failed calls are not recorded"}
	}
	return t, refused.explained(err)
}

// commonPrefix returns how many messages a and b have in common at their beginning, compared by [difference].
func commonPrefix(a, b []Message) int {
	n := 0
	for n < min(len(a), len(b)) && difference(&a[n], &b[n]) == "" {
		n++
	}
	return n
}

// difference names the first thing that two messages do not have in common, or is "". It compares what survives a
// client that stores messages in its own structs: not samples, reasoning and unknown fields, nor the name of an
// assistant, which some clients add.
func difference(a, b *Message) string {
	switch {
	case a.Role != b.Role:
		return "role"
	case a.ToolCallID != b.ToolCallID:
		return "tool call id"
	case a.Name != b.Name && a.Role != RoleAssistant:
		return "name"
	case a.Content != b.Content:
		return "content"
	case !bytes.Equal(a.media(), b.media()):
		return "images or other media"
	case !sameCalls(a.ToolCalls, b.ToolCalls):
		return "tool calls"
	}
	return ""
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
