package local

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/server"
)

// TestHandler_RecordsRollouts: what a client does over HTTP is one sequence of tokens, with the logprobs of the policy,
// and is trained on.
func TestHandler_RecordsRollouts(t *testing.T) {
	rollouts, err := server.NewRollouts(nil)
	require.NoError(t, err)
	b, err := Open(t.Context(), &Options{
		Dir: t.TempDir(), Slots: 4, Context: 128, Progress: io.Discard, Rollouts: rollouts,
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	m := art.NewModel("remote", nil)
	require.NoError(t, m.Register(t.Context(), b))
	handler, err := b.Handler(nil)
	require.NoError(t, err)
	for reward := range 2 {
		playRollout(t, handler, reward)
	}

	g, err := rollouts.Next(t.Context())
	require.NoError(t, err)
	require.Len(t, g.Trajectories, 2)
	for _, tr := range g.Trajectories {
		require.Empty(t, tr.AdditionalHistories, tr.Logs)
		require.Empty(t, tr.Breaks())
		require.Len(t, tr.Samples(), 2)
		for _, s := range tr.Samples() {
			logprobs, _, err := b.Logprobs(t.Context(), m, append(append([]int32(nil), s.PromptIDs...), s.IDs...))
			require.NoError(t, err)
			require.InDeltaSlice(t, s.Logprobs, logprobs[len(s.PromptIDs)-1:], 1e-4)
		}
	}
	result, err := m.Train(t.Context(), []*art.TrajectoryGroup{g}, nil)
	require.NoError(t, err)
	require.Equal(t, 1, result.Step)
	require.Equal(t, 1.0, result.Metrics["data/groups_trainable"])
}

// playRollout plays two turns of the group "g", and sends them back as a client does that stores role and content only.
func playRollout(t *testing.T, h http.Handler, reward int) {
	var opened struct{ ID, Base string }
	send(t, h, "/v1/rollouts", `{"model": "remote", "group": "g", "group_size": 2}`, &opened)
	talk := []map[string]string{{"role": "user", "content": "yes or no"}}
	for range 2 {
		body, err := json.Marshal(map[string]any{"model": "any", "messages": talk, "max_tokens": 8})
		require.NoError(t, err)
		var reply struct {
			Choices []struct{ Message art.Message }
		}
		send(t, h, opened.Base+"/v1/chat/completions", string(body), &reply)
		talk = append(talk, map[string]string{"role": "assistant", "content": reply.Choices[0].Message.Content},
			map[string]string{"role": "user", "content": "sure?"})
	}
	send(t, h, "/v1/rollouts/"+opened.ID+"/close", fmt.Sprintf(`{"reward": %d}`, reward), &struct{}{})
}

// send posts JSON and decodes the answer.
func send(t *testing.T, h http.Handler, path, body string, into any) {
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(body))
	r.Host = "localhost"
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	require.Less(t, w.Code, 300, w.Body)
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), into))
}
