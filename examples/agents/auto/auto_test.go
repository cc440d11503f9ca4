package auto_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/examples/agents"
	"github.com/goart-dev/art/examples/agents/auto"
	"github.com/goart-dev/art/internal/dev/arttest"
	"github.com/goart-dev/art/ruler"
)

// stage plays all parts of a project: the name of a model says which.
type stage struct {
	mu    sync.Mutex
	calls map[string]int
	// writes is what the writer answers to its n-th request for inputs; nil: eight good ones.
	writes func(n int) string
	// see is called for each request. May be nil.
	see func(m *art.Model, r *art.ChatRequest)
}

func (s *stage) reply(ctx context.Context, m *art.Model, r *art.ChatRequest) (art.Message, error) {
	last := r.Messages[len(r.Messages)-1].Content
	s.mu.Lock()
	n := s.calls[m.Name()]
	s.calls[m.Name()]++
	if s.see != nil {
		s.see(m, r)
	}
	s.mu.Unlock()
	switch m.Name() {
	case "writer":
		return art.Assistant(s.write(n, last)), nil
	case "judge":
		return art.Assistant(judged(last)), nil
	case "base":
		return art.Assistant("plain " + last), nil
	}
	good := art.Rand(ctx).IntN(2) == 0
	if r.Settings.Temperature == 0 {
		good = m.Step() >= 2
	}
	if good {
		return art.Assistant("<fixed>" + last), nil
	}
	return art.Assistant("plain " + last), nil
}

func (s *stage) write(n int, prompt string) string {
	switch {
	case strings.HasPrefix(prompt, "Write the instruction"):
		return "Put <fixed> before it."
	case strings.HasPrefix(prompt, "Somebody compares"):
		return "- It begins with <fixed>.<script>"
	case s.writes != nil:
		return s.writes(n)
	}
	var items []string
	for i := range 8 {
		items = append(items, fmt.Sprintf(`{"input": "note %d about thing %d & <b>"}`, 8*n+i, 7*n+31*i))
	}
	return `{"inputs": [` + strings.Join(items, ", ") + `]}`
}

var attempts = regexp.MustCompile(`(?s)<attempt-\w+ id="(\w+)"[^>]*>\n(.*?)\n</attempt-`)

// judged scores 1 for what is fixed, and prefers what comes first a little.
func judged(prompt string) string {
	var ratings []ruler.Rating
	for i, a := range attempts.FindAllStringSubmatch(prompt, -1) {
		score := 0.05 * float64(i)
		if strings.Contains(a[2], "<fixed>") {
			score = 1
		}
		ratings = append(ratings, ruler.Rating{ID: a[1], Explanation: "because", Score: score})
	}
	return ruler.Answer(ratings...)
}

// project opens a project over a stage. The backend is that of the process.
func (s *stage) project(t *testing.T, dir string) *auto.Project {
	t.Helper()
	s.calls = map[string]int{}
	b := &arttest.Backend{Reply: s.reply}
	find := func(name string) *art.Model {
		m := art.NewModel(name, &art.ModelOptions{Frozen: name != "model"})
		if err := m.Register(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		return m
	}
	return &auto.Project{
		Dir: dir, Task: "Mark the text as <fixed>.", Model: find("model"), Base: find("base"), Writer: find("writer"),
		Judge: find("judge"), Inputs: 12, Held: 10, Steps: 4, Every: 2, JudgeOptions: ruler.Options{Backoff: 1},
	}
}

// From a description to a page: the model that learned wins each comparison.
func TestRun(t *testing.T) {
	s, dir := &stage{}, filepath.Join(t.TempDir(), "project")
	p := s.project(t, dir)
	estimate := p.Estimate()
	r, err := p.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if r.Wins != 10 || r.WinRate != 1 || r.Low < 0.6 || r.Step != 4 || r.OwnWord || len(r.Samples) != 10 ||
		len(r.Plan.Train) != 12 || len(r.Plan.Held) != 10 {
		t.Errorf("%+v", r)
	}
	if want := []auto.Point{{0, 0.5}, {2, 1}, {4, 1}}; fmt.Sprint(r.Curve) != fmt.Sprint(want) {
		t.Errorf("curve %v, want %v", r.Curve, want)
	}
	if s.calls["judge"] > estimate.Judge.Calls || s.calls["writer"] > estimate.Writer.Calls ||
		s.calls["model"]+s.calls["base"] > estimate.Replies {
		t.Errorf("it took %v, the estimate was %+v", s.calls, estimate)
	}
	page, err := os.ReadFile(p.Page())
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"100.0 %", "10 better", "&lt;fixed&gt;note", "plain note", "because", "&lt;script&gt;", "<polyline",
	} {
		if !strings.Contains(string(page), want) {
			t.Errorf("the page has no %s", want)
		}
	}
	for _, not := range []string{"<script", "<b> ", "http://", "The judge is the base model"} {
		if strings.Contains(string(page), not) {
			t.Errorf("the page has %s", not)
		}
	}

	// The same project again: nothing is written, trained or judged anew but the comparison.
	writer, model := s.calls["writer"], p.Model.Step()
	again, err := p.Run(t.Context())
	if err != nil || s.calls["writer"] != writer || p.Model.Step() != model || again.Wins != 10 ||
		fmt.Sprint(again.Curve) != fmt.Sprint(r.Curve) {
		t.Errorf("%+v, %v; calls %v", again, err, s.calls)
	}
	p.Task = "Something else."
	if _, err := p.Run(t.Context()); err == nil {
		t.Error("a plan for another task is taken")
	}
}

// Examples stand before each input, of the model and of the base model, and on the page.
func TestRun_Examples(t *testing.T) {
	s := &stage{}
	p := s.project(t, t.TempDir())
	p.Steps, p.Examples = 1, []auto.Example{{Input: "a shown input", Reply: "a shown reply"}}
	seen := map[string]int{}
	s.see = func(m *art.Model, r *art.ChatRequest) {
		if len(r.Messages) == 4 && r.Messages[1].Content == "a shown input" && r.Messages[2].Content == "a shown reply" &&
			r.Messages[2].Role == art.RoleAssistant {
			seen[m.Name()]++
		}
	}
	if _, err := p.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if seen["model"] != s.calls["model"] || seen["base"] != s.calls["base"] || seen["base"] == 0 {
		t.Errorf("%v of %v requests have the example", seen, s.calls)
	}
	page, err := os.ReadFile(p.Page())
	if err != nil || !strings.Contains(string(page), "a shown reply") {
		t.Errorf("the page has no example; %v", err)
	}
}

// The base model as its own judge is said on the page.
func TestRun_OwnJudge(t *testing.T) {
	s := &stage{}
	p := s.project(t, t.TempDir())
	p.Steps, p.Base = 1, p.Judge
	r, err := p.Run(t.Context())
	if err != nil || !r.OwnWord {
		t.Fatalf("%+v, %v", r, err)
	}
	page, err := os.ReadFile(p.Page())
	if err != nil || !strings.Contains(string(page), "The judge is the base model itself") {
		t.Errorf("the page does not say so; %v", err)
	}
}

// A writer whose first two answers cannot be read ends the project: the error has what was wanted and what came.
func TestRun_Unreadable(t *testing.T) {
	calls := 0
	s := &stage{writes: func(int) string {
		calls++
		return fmt.Sprintf("I would be happy to help, %d.", calls)
	}}
	_, err := s.project(t, t.TempDir()).Run(t.Context())
	if !errors.Is(err, agents.ErrTooFew) || calls != 2 {
		t.Fatalf("%d calls, %v", calls, err)
	}
	for _, want := range []string{`a list "inputs" of items like {"type":"object"`, "happy to help, 1.",
		"happy to help, 2."} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in %v", want, err)
		}
	}
}

// A writer of prose, or of one thing again and again, ends the project with a reason; what was of use is kept.
func TestRun_Writer(t *testing.T) {
	s := &stage{writes: func(n int) string {
		if n == 1 {
			return `{"inputs": [{"input": "a good one 1"}, {"input": "a good one 2"},
				{"input": "A good one, 2!"}, {"input": " "}]}`
		}
		return "I would be happy to help."
	}}
	dir := t.TempDir()
	_, err := s.project(t, dir).Run(t.Context())
	if !errors.Is(err, agents.ErrTooFew) || !strings.Contains(err.Error(), "2 of 22") {
		t.Fatal(err)
	}
	s.writes = nil
	r, err := s.project(t, dir).Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	all := fmt.Sprint(r.Plan.Train, r.Plan.Held)
	if !strings.Contains(all, "a good one 1") || !strings.Contains(all, "a good one 2") {
		t.Errorf("inputs of before are lost: %s", all)
	}
	s.writes = func(n int) string {
		return fmt.Sprintf(`{"inputs": [{"input": "the very same words in all of these inputs but for the number %d"},
			{"input": "the very same words in all of these inputs but for the number %d"}]}`, 2*n, 2*n+1)
	}
	p := s.project(t, t.TempDir())
	p.Inputs, p.Held = 2, 2
	if _, err := p.Run(t.Context()); !errors.Is(err, auto.ErrAlike) {
		t.Errorf("inputs that are alike: %v", err)
	}
}

func TestRun_Invalid(t *testing.T) {
	_, err := (&auto.Project{Task: "x", Group: 1}).Run(t.Context())
	for _, want := range []string{"Dir is empty", "describe it", "is nil", "Group 1"} {
		if !errors.Is(err, art.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want it to have %q", err, want)
		}
	}
}

func TestEstimate(t *testing.T) {
	p := &auto.Project{Prices: auto.Prices{Judge: auto.Price{Prompt: 1, Completion: 10}}}
	e := p.Estimate()
	if want := 40*2 + 2*5*30; e.Judge.Calls != want || e.Writer.Dollars != 0 || e.Dollars() <= 0 {
		t.Errorf("%+v, want %d calls of the judge", e, want)
	}
	if text := e.String(); !strings.Contains(text, fmt.Sprintf("$%.2f", e.Judge.Dollars)) {
		t.Error(text)
	}
}
