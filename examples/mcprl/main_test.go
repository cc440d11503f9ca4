package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/examples/agents"
	"github.com/goart-dev/art/examples/agents/mcp"
)

// TestMain lets the test binary be the server calendar, as the program is.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "-serve" {
		main()
		return
	}
	os.Exit(m.Run())
}

// defaults are the flags without arguments, with a folder of the test.
func defaults(t *testing.T) *settings {
	t.Helper()
	s := &settings{}
	s.define(flag.NewFlagSet("mcprl", flag.ContinueOnError))
	s.dir = t.TempDir()
	return s
}

// Both of its own servers are reached, the calendar as a command, and their tasks are for their tools.
func TestOpen(t *testing.T) {
	for _, name := range []string{"orders", "calendar"} {
		s := defaults(t)
		s.server = name
		server, domain, err := s.open()
		if err != nil {
			t.Fatal(err)
		}
		about, err := server.Describe(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		train, _, err := s.tasks(t.Context(), &models{settings: s}, about, domain, nil)
		if err != nil || len(about.Tools) != 4 {
			t.Fatalf("%+v, %v", about, err)
		}
		tools := fmt.Sprint(about.Tools)
		for _, task := range train {
			if !strings.Contains(tools, task.Want.Calls[0].Tool) {
				t.Errorf("%s: %+v is for another server", name, task)
			}
		}
	}
	s := defaults(t)
	s.level = 3
	if _, _, err := s.open(); err == nil {
		t.Error("level 3 is no error")
	}
}

// A hosted generator writes scenarios once, and the next process reads them.
func TestTasks_Generated(t *testing.T) {
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		content, _ := json.Marshal(`{"scenarios": [{"task": "Look up ` + fmt.Sprint(asked) + ` lamps.", "difficulty": 1},
			{"task": "Cancel what Ann bought on day ` + fmt.Sprint(asked) + `.", "difficulty": 3}]}`)
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"id": "1", "model": "m", "choices": [{"index": 0, "finish_reason": "stop",
			"message": {"role": "assistant", "content": %s}}], "usage": {"prompt_tokens": 5, "completion_tokens": 2}}`, content)
	}))
	defer server.Close()
	s := defaults(t)
	s.generator, s.scenarios, s.server = "writer@"+server.URL+"/v1", 6, "some command"
	m := &models{settings: s}
	defer func() {
		if err := m.close(); err != nil {
			t.Error(err)
		}
	}()
	about := &mcp.Description{Tools: []art.Tool{{Name: "look_up"}}}
	for range 2 {
		train, val, err := s.tasks(t.Context(), m, about, nil, nil)
		if err != nil || len(train) != 4 || len(val) != 2 || asked != 3 {
			t.Fatalf("%d and %d scenarios after %d calls, %v", len(train), len(val), asked, err)
		}
	}
	if _, _, err := s.tasks(t.Context(), m, &mcp.Description{Tools: []art.Tool{{Name: "other"}}}, nil, nil); err == nil {
		t.Error("scenarios for other tools are taken")
	}
}

func TestJudges_Invalid(t *testing.T) {
	for _, set := range []func(*settings){
		func(s *settings) { s.judge = "nobody" },
		func(s *settings) { s.judge = "noisy" }, // without a checker
		func(s *settings) { s.control = "base" },
	} {
		s := defaults(t)
		set(s)
		if err := s.judges(t.Context(), &agents.Training[mcp.Scenario]{}, &models{settings: s}, nil); err == nil {
			t.Errorf("%+v is no error", s)
		}
	}
}

// Two steps on a few scenarios, by the checker and by a judge; the second process finds the run finished.
func TestRun(t *testing.T) {
	if testing.Short() {
		t.Skip("trains")
	}
	for _, judge := range []string{"", "noisy"} {
		s := defaults(t)
		s.steps, s.batch, s.group, s.count, s.every, s.judge = 2, 1, 4, 2, 1, judge
		for range 2 {
			if err := run(context.Background(), s); err != nil {
				t.Fatal(err)
			}
		}
	}
}
