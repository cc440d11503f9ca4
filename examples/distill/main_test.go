package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art"
)

// defaults are the flags without arguments, with a folder of the test.
func defaults(t *testing.T) *settings {
	t.Helper()
	s := &settings{}
	s.define(flag.NewFlagSet("distill", flag.ContinueOnError))
	s.dir = t.TempDir()
	return s
}

func TestGrade(t *testing.T) {
	trip := trip{from: "Oslo", to: "Rome", month: "May"}
	for reply, want := range map[string]float64{
		`{"from":"Oslo","to":"Rome","month":"May"}`:              1,
		` {"to": "Rome", "month": "May", "from": "Oslo"}` + "\n": 1,
		`{"from":"Oslo","to":"Rome","month":"June"}`:             0.7,
		`{"from":"Rome","to":"Oslo","month":"May"}`:              0.4,
		`{"from":"Oslo","to":"Rome"}`:                            0.7,
		`{"from":"Oslo","to":null,"month":null}`:                 0.4,
		`{}`:                                                     0.1,
		`null`:                                                   0.1,
		`{"from":"Oslo","to":"Rome","month":5}`:                  0,
		`{"from":"Oslo","to":"Rome","month":"May","seats":1}`:    0,
		`{"from":"Oslo","to":"Rome","month":"May"} and more`:     0,
		`{"from":"Oslo","to":"Rome","month":"May"}{}`:            0,
		`Here it is: {"from":"Oslo"}`:                            0,
		`{"from":"Oslo","to":"Rome","month":"May"`:               0,
		``: 0,
	} {
		reward, solved := trip.grade(reply)
		require.InDelta(t, want, reward, 1e-9, reply)
		require.Equal(t, want == 1, solved, reply)
	}
}

// Requests differ, say what they ask for, and no pair of cities is both trained on and held out.
func TestTrips(t *testing.T) {
	type pair struct{ from, to string }
	kinds, requests := map[pair]bool{}, map[string]bool{}
	for _, held := range []bool{false, true} {
		for _, s := range trips(500, held, 1) {
			require.False(t, requests[s.request], s.request)
			requests[s.request] = true
			for _, part := range []string{s.from, s.to, s.month} {
				require.Contains(t, s.request, part)
			}
			reward, solved := s.grade(s.reply())
			require.True(t, solved, "%s: %v", s.reply(), reward)
			if other, ok := kinds[pair{s.from, s.to}]; ok {
				require.Equal(t, held, other, "%+v is trained on and held out", s)
			}
			kinds[pair{s.from, s.to}] = held
		}
	}
	require.Equal(t, trips(20, true, 1), trips(20, true, 1))
	require.NotEqual(t, trips(20, true, 1), trips(20, true, 2))
}

// teacher answers half of the requests right. It fails the test when it is asked without its prompt.
func teacher(t *testing.T, asked *atomic.Int64) string {
	t.Helper()
	replies := map[string]string{}
	for _, held := range []bool{false, true} {
		for i, s := range trips(12, held, 1) {
			replies[s.request] = s.reply()
			if i%2 == 1 {
				replies[s.request] = "I do not know."
			}
		}
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			Messages []struct{ Role, Content string }
		}
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil || len(body.Messages) != len(shown)+1 {
			t.Errorf("%d messages in place of the prompt and a request: %v", len(body.Messages), err)
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		asked.Add(1)
		content, _ := json.Marshal(replies[body.Messages[len(shown)].Content])
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"id": "1", "model": "m", "choices": [{"index": 0, "finish_reason": "stop",
			"message": {"role": "assistant", "content": %s}}], "usage": {"prompt_tokens": 5, "completion_tokens": 2}}`, content)
	}))
	t.Cleanup(server.Close)
	return server.URL + "/v1"
}

// A hosted teacher's right replies, and only these, are the first step; the run goes on where it was stopped.
func TestRun(t *testing.T) {
	var asked atomic.Int64
	s := defaults(t)
	s.base, s.teacher, s.demos, s.held, s.steps, s.batch, s.group = "tiny", "big@"+teacher(t, &asked), 12, 12, 1, 2, 2
	var out bytes.Buffer
	require.NoError(t, s.run(t.Context(), &out))
	require.Contains(t, out.String(), "the teacher is right in 6 of 12 requests")
	require.Contains(t, out.String(), "teacher, with its prompt:       50.0 %")
	require.Equal(t, int64(24), asked.Load())

	s.steps = 2
	out.Reset()
	require.NoError(t, s.run(t.Context(), &out))
	require.NotContains(t, out.String(), "the teacher is right") // the first step is made
	require.Contains(t, out.String(), "student after step 2")
	require.Equal(t, int64(36), asked.Load())
}

// What a student is trained on has no prompt and no sample of the teacher.
func TestAsk_Teacher(t *testing.T) {
	var asked atomic.Int64
	s := defaults(t)
	s.base, s.teacher = "tiny", "big@"+teacher(t, &asked)
	m, err := s.open(t.Context(), io.Discard)
	require.NoError(t, err)
	defer func() { require.NoError(t, m.close()) }()
	one := trips(1, false, 1)[0]
	got, err := m.ask(m.teacher, &art.ChatOptions{})(t.Context(), one)
	require.NoError(t, err)
	require.Equal(t, []art.Message{art.User(one.request), art.Assistant(one.reply())}, got.Messages)
	require.Equal(t, 1.0, got.Metrics["solved"])
}

func TestRun_BadFlags(t *testing.T) {
	s := defaults(t)
	require.ErrorContains(t, s.run(t.Context(), io.Discard), "-model")
	s.base, s.teacher = "tiny", "big"
	require.ErrorContains(t, s.run(t.Context(), io.Discard), "MODEL@URL")
}
