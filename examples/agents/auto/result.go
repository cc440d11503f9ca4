package auto

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"path/filepath"
	"strings"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/examples/agents"
)

// Result is what came of a project.
type Result struct {
	Task    string  `json:"task"`
	Plan    *Plan   `json:"plan"`
	Model   string  `json:"model"`
	Step    int     `json:"step"`
	Judge   string  `json:"judge"`
	Writer  string  `json:"writer"`
	OwnWord bool    `json:"judge_is_base"` // the judge is the base model itself
	Why     string  `json:"why"`           // what ended the training
	Curve   []Point `json:"curve"`

	// The comparison with the base model on held-out inputs.
	Wins    int     `json:"wins"`
	Ties    int     `json:"ties"`
	Losses  int     `json:"losses"`
	Swayed  int     `json:"swayed"`
	Failed  int     `json:"failed"`
	WinRate float64 `json:"win_rate"`
	Low     float64 `json:"low"` // of the 95 % confidence interval
	High    float64 `json:"high"`

	Samples []Sample `json:"samples"`
}

// Point is a comparison during training.
type Point struct {
	Step    int     `json:"step"`
	WinRate float64 `json:"win_rate"`
}

// Sample is a held-out input with both replies.
type Sample struct {
	Input        string   `json:"input"`
	Model        string   `json:"model"`
	Base         string   `json:"base"`
	Verdict      string   `json:"verdict"` // "better", "worse", "tie", or why there is none
	Swayed       bool     `json:"swayed,omitempty"`
	Explanations []string `json:"explanations,omitempty"`
}

// Page is the path of the page that shows the result.
func (p *Project) Page() string { return filepath.Join(p.Dir, "result.html") }

func (p *Project) result(plan *Plan, outcome *agents.Outcome, tally *agents.Tally) *Result {
	r := &Result{
		Task: p.Task, Plan: plan, Model: p.Model.Name(), Step: p.Model.Step(), Judge: describe(p.Judge),
		Writer: describe(p.Writer), OwnWord: p.Judge == p.Base, Why: outcome.Why,
		Wins: tally.Wins, Ties: tally.Ties, Losses: tally.Losses, Swayed: tally.Swayed, Failed: tally.Failed,
	}
	r.WinRate, r.Low, r.High = tally.WinRate()
	for _, v := range outcome.Validations {
		r.Curve = append(r.Curve, Point{v.Step, v.Score})
	}
	texts := map[string]string{}
	for _, in := range plan.Held {
		texts[in.ID] = in.Text
	}
	for _, m := range tally.Matches {
		s := Sample{Input: texts[m.Scenario], Model: reply(m.Model), Base: reply(m.Control), Verdict: m.Failure}
		if m.Pair != nil {
			s.Verdict = map[float64]string{1: "better", 0.5: "tie", 0: "worse"}[m.Pair.Outcome]
			s.Swayed, s.Explanations = m.Pair.Swayed, m.Pair.Explanations
		}
		r.Samples = append(r.Samples, s)
	}
	return r
}

func describe(m *art.Model) string {
	if base := m.Options().Base; base != "" {
		return fmt.Sprintf("%s (%s)", m.Name(), base)
	}
	return m.Name()
}

// reply is the last message.
func reply(t *art.Trajectory) string { return t.Messages[len(t.Messages)-1].Content }

func (p *Project) store(r *Result) error {
	if err := writeJSON(filepath.Join(p.Dir, "result.json"), r); err != nil {
		return err
	}
	var b bytes.Buffer
	if err := page.Execute(&b, r); err != nil {
		return err
	}
	return writeFile(p.Page(), b.Bytes())
}

//go:embed page.html
var pageText string

var page = template.Must(template.New("page").Funcs(template.FuncMap{
	"percent": func(x float64) string { return fmt.Sprintf("%.1f %%", 100*x) },
}).Parse(pageText))

// Size of the curve, in pixels.
const width, height = 640, 160

// Polyline are the points of the curve, in the coordinates of an image of 640 by 160.
func (r *Result) Polyline() string {
	last := 1
	for _, p := range r.Curve {
		last = max(last, p.Step)
	}
	var points []string
	for _, p := range r.Curve {
		points = append(points, fmt.Sprintf("%.1f,%.1f", float64(width*p.Step)/float64(last), height*(1-p.WinRate)))
	}
	return strings.Join(points, " ")
}
