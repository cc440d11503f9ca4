package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/examples/frameworks"
	"github.com/goart-dev/art/examples/frameworks/frameworkstest"
)

// workerVariable is set to what this program is to be instead of tests: a worker in place of agent.py.
const workerVariable = "ART_TEST_WORKER"

func TestMain(m *testing.M) {
	switch os.Getenv(workerVariable) {
	case "":
		os.Exit(m.Run())
	case "answers":
		standIn()
	case "ends":
		_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
	}
}

// standIn runs jobs one after another.
func standIn() {
	jobs, outcomes := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		var j job
		if err := jobs.Decode(&j); err != nil {
			return
		}
		o := outcome{ID: j.ID}
		answer, err := converse(&j)
		if err != nil {
			o.Error = err.Error()
		}
		o.Answer = answer
		if err := outcomes.Encode(o); err != nil {
			return
		}
	}
}

// converse is an agent by plain HTTP.
func converse(j *job) (string, error) {
	type call struct {
		ID       string
		Function struct{ Name, Arguments string }
	}
	messages := []any{map[string]any{"role": "user", "content": j.Task}}
	tools := json.RawMessage(`[{"type": "function", "function": {"name": "order_status", "parameters": {"type": "object",
		"properties": {"order": {"type": "string"}}}}}]`)
	for range j.MaxTurns {
		body, err := json.Marshal(map[string]any{"model": "any", "messages": messages, "tools": tools})
		if err != nil {
			return "", err
		}
		text, err := post(j.BaseURL+"/chat/completions", j.Key, body)
		if err != nil {
			return "", err
		}
		var reply struct {
			Choices []struct{ Message json.RawMessage }
		}
		if err := json.Unmarshal(text, &reply); err != nil {
			return "", err
		}
		var message struct {
			Content   string
			ToolCalls []call `json:"tool_calls"`
		}
		if err := json.Unmarshal(reply.Choices[0].Message, &message); err != nil {
			return "", err
		}
		if len(message.ToolCalls) == 0 {
			return message.Content, nil
		}
		messages = append(messages, reply.Choices[0].Message)
		for _, c := range message.ToolCalls {
			result, err := post(j.DeskURL+"/"+c.Function.Name, j.Key, []byte(c.Function.Arguments))
			if err != nil {
				return "", err
			}
			messages = append(messages, map[string]any{"role": "tool", "tool_call_id": c.ID, "content": string(result)})
		}
	}
	return "", fmt.Errorf("too many turns")
}

// post returns the body of the answer.
func post(url, key string, body []byte) ([]byte, error) {
	r, err := http.NewRequestWithContext(context.Background(), "POST", url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+key)
	r.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", response.Status, text)
	}
	return text, err
}

// asWorker is the command of this program as a worker.
func asWorker(t *testing.T, kind string) func() []string {
	t.Helper()
	t.Setenv(workerVariable, kind)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return func() []string { return []string{self} }
}

// What a worker samples over HTTP is recorded, each token once.
func TestRemote_EveryTokenInOneSample(t *testing.T) {
	e, err := example(asWorker(t, "answers"))
	if err != nil {
		t.Fatal(err)
	}
	if r := frameworkstest.Check(t, e); r.Failed == 0 || r.Branches > 0 {
		t.Errorf("%+v", r)
	}
}

// A worker that ends fails the runs that it has, and those that follow.
func TestRemote_WorkerEnds(t *testing.T) {
	w, err := startWorker(t.Context(), asWorker(t, "ends")())
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		_, err := w.do(ctx, &job{ID: "1"})
		cancel()
		if err == nil || ctx.Err() == context.DeadlineExceeded {
			t.Errorf("a worker that has ended answers: %v", err)
		}
	}
}

// Only the worker reaches a desk, and only that of an open rollout.
func TestDesks_Key(t *testing.T) {
	var d desks
	d.Store("1", frameworks.NewDesk(1, frameworks.Faults{}, art.Rand(t.Context())))
	mux := http.NewServeMux()
	mux.Handle("POST /desk/{id}/{tool}", d.handler("secret"))
	for _, c := range []struct{ id, key, want string }{
		{"1", "secret", "there is no order 7"}, {"1", "other", "no such desk"}, {"2", "secret", "no such desk"},
	} {
		w := httptest.NewRecorder()
		url := "http://desk/desk/" + c.id + "/order_status"
		r, err := http.NewRequestWithContext(t.Context(), "POST", url, strings.NewReader("7"))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+c.key)
		mux.ServeHTTP(w, r)
		if !strings.Contains(w.Body.String(), c.want) {
			t.Errorf("%+v: %q", c, w.Body.String())
		}
	}
}
