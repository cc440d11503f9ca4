package callid

import (
	"encoding/binary"
	"reflect"
	"regexp"
	"slices"
	"testing"

	"github.com/goart-dev/art"
)

// TestID_Unique: no two of many prompts, seeds and calls have the same id, and all have the form that Mistral's
// templates demand.
func TestID_Unique(t *testing.T) {
	form, seen := regexp.MustCompile("^[0-9A-Za-z]{9}$"), map[string]bool{}
	for prompt := range uint64(100) {
		for seed := range uint64(20) {
			source := Of(binary.LittleEndian.AppendUint64(nil, prompt), seed)
			for i := range 10 {
				id := source.ID(i)
				if seen[id] || !form.MatchString(id) {
					t.Fatalf("prompt %d, seed %d, call %d: %q", prompt, seed, i, id)
				}
				seen[id] = true
			}
		}
	}
}

// TestID_Stable: ids are in recorded conversations, so they stay the same.
func TestID_Stable(t *testing.T) {
	if got := Of([]byte("prompt"), 7).ID(1); got != "A06s0e34l" {
		t.Errorf("got %q", got)
	}
}

// TestComplete_Unique: calls without an id, and with one that the conversation or the reply has, get new ones, which
// do not repeat from turn to turn nor between the replies to one request. Other ids stay.
func TestComplete_Unique(t *testing.T) {
	req := &art.ChatRequest{Messages: []art.Message{art.User("u"), art.ToolResult("dropped", "1")}}
	seen := map[string]bool{"": true, "dropped": true, "call_0": true}
	for range 5 {
		for req.Settings.Seed = range 2 {
			calls := []art.ToolCall{{}, {ID: "call_0"}, {ID: "dropped"}, {}, {ID: "call_0"}}
			if len(req.Messages) == 2 {
				calls = slices.Delete(calls, 1, 2) // it is the first in the conversation below
			}
			again := slices.Clone(calls)
			Complete(calls, req)
			Complete(again, req)
			if !reflect.DeepEqual(calls, again) {
				t.Fatalf("got %+v, then %+v", calls, again)
			}
			for i, call := range calls {
				if first := len(req.Messages) == 2 && i == 3 && call.ID == "call_0"; seen[call.ID] && !first {
					t.Errorf("call %d: %q repeats", i, call.ID)
				}
				seen[call.ID] = true
			}
		}
		req.Messages = append(req.Messages, art.Message{Role: art.RoleAssistant, ToolCalls: []art.ToolCall{{ID: "call_0"}}})
	}
}
