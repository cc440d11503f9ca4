package track_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/track"
)

// conversation is what the last request of so many turns with a tool has.
func conversation(turns int, text string) []art.Message {
	list := []art.Message{art.System(text)}
	for turn := range turns {
		call := art.Message{Role: art.RoleAssistant, Sample: &art.Sample{IDs: []int32{int32(turn)}}}
		call.ToolCalls = []art.ToolCall{{ID: fmt.Sprint("c", turn), Name: "look", Arguments: "{}"}}
		answer := art.Assistant("same")
		answer.Sample = &art.Sample{IDs: []int32{int32(turn)}}
		list = append(list, art.User(fmt.Sprint(text, turn)), call, art.ToolResult(call.ToolCalls[0].ID, text), answer)
	}
	return list
}

// read is a message with what only JSON can say.
func read(t *testing.T, text string) art.Message {
	t.Helper()
	var m art.Message
	require.NoError(t, json.Unmarshal([]byte(text), &m))
	return m
}

// The JSON of requests is that of each message on its own, in every order, and each message is encoded once.
func TestEncoder_Once(t *testing.T) {
	all := conversation(5, "hello")
	tricky := []art.Message{
		read(t, `{"role":"user","content":[{"type":"text","text":"x"},{"type":"image_url","image_url":{"url":"data:1"}}]}`),
		read(t, `{"role":"user","content":[{"type":"text","text":"x"},{"type":"image_url","image_url":{"url":"data:2"}}]}`),
		art.User("x"), {Role: art.RoleUser, Content: "x", Name: "ann"}, {Role: art.RoleUser, Content: "x", Reasoning: "r"},
	}
	calls := art.Message{Role: art.RoleAssistant, ToolCalls: []art.ToolCall{{ID: "1", Name: "f"}, {ID: "2", Name: "f"}}}
	other := art.Message{Role: art.RoleAssistant, ToolCalls: []art.ToolCall{{ID: "1", Name: "f"}, {ID: "2", Name: "g"}}}
	tricky = append(tricky, calls, other)

	encoded := map[string]int{}
	e := track.NewEncoder(func(m *art.Message) ([]byte, error) {
		data, err := m.MarshalJSON()
		encoded[string(data)]++
		return data, err
	})
	var requests [][]art.Message
	for n := range all {
		requests = append(requests, all[:n+1], append(all[:n:n], tricky...)) // a fork
	}
	for _, request := range requests {
		list, err := e.Messages(request)
		require.NoError(t, err)
		want, err := json.Marshal(request)
		require.NoError(t, err)
		require.JSONEq(t, string(want), string(track.AppendArray(nil, list)))
	}
	for text, n := range encoded {
		require.Equal(t, 1, n, text)
	}
	require.Len(t, encoded, len(all)-4+len(tricky)) // the answers are one text
}

// A message without JSON is an error, and not remembered.
func TestEncoder_Errors(t *testing.T) {
	e := track.NewEncoder(func(m *art.Message) ([]byte, error) { return m.MarshalJSON() })
	_, err := e.Messages([]art.Message{art.User("x"), {Content: "no role"}})
	require.ErrorContains(t, err, "role")
	list, err := e.Messages([]art.Message{art.User("x")})
	require.NoError(t, err)
	require.Equal(t, `prefix: [{"role":"user","content":"x"}]`, string(track.AppendArray([]byte("prefix: "), list)))
}

// Tools are encoded again when they change.
func TestEncoder_Tools(t *testing.T) {
	e := track.NewEncoder(nil)
	for _, name := range []string{"look", "look", "take"} {
		data, err := e.Tools([]art.Tool{{Name: name, Parameters: json.RawMessage(`{}`)}})
		require.NoError(t, err)
		require.Contains(t, string(data), name)
	}
}

// BenchmarkEncoder has the requests of a rollout of 32 turns with a tool: "each" encodes them whole.
func BenchmarkEncoder(b *testing.B) {
	all := conversation(32, strings.Repeat("A line of text.\n", 32))
	b.Run("once", func(b *testing.B) {
		for b.Loop() {
			e := track.NewEncoder(func(m *art.Message) ([]byte, error) { return m.MarshalJSON() })
			for n := range all {
				list, err := e.Messages(all[:n+1])
				require.NoError(b, err)
				track.AppendArray(nil, list)
			}
		}
	})
	b.Run("each", func(b *testing.B) {
		for b.Loop() {
			for n := range all {
				_, err := json.Marshal(all[:n+1])
				require.NoError(b, err)
			}
		}
	})
}
