package jinja

import (
	"cmp"
	_ "embed" // templates and variables of the golden file
	"encoding/json"
	"os"
	"testing"
	"time"
)

// clock is the time at which the golden file was made.
func clock() time.Time { return time.Date(2026, 11, 21, 4, 5, 6, 0, time.UTC) }

//go:embed testdata/variables.json
var goldenVariables []byte

//go:embed testdata/templates.txt
var goldenTemplates []byte

// referenceCase is a template, its variables as JSON (empty for those of testdata), and the result of Jinja2: a text or
// an exception.
type referenceCase struct {
	Name     string `json:"name"`
	Template string `json:"template"`
	Ctx      string `json:"ctx"`
	Want     string `json:"want"`
	Err      string `json:"err"`
}

// check renders a case.
func (c *referenceCase) check(t *testing.T) {
	t.Helper()
	got, err := c.render()
	switch {
	case c.Err == "" && err != nil:
		t.Errorf("%s: %v; want %q", c.Name, err, c.Want)
	case c.Err != "" && err == nil:
		t.Errorf("%s: %q; want the error %s", c.Name, got, c.Err)
	case c.Err == "" && got != c.Want:
		t.Errorf("%s:\n got %q\nwant %q", c.Name, got, c.Want)
	}
}

func (c *referenceCase) render() (string, error) {
	variables, err := FromJSON([]byte(cmp.Or(c.Ctx, string(goldenVariables))))
	if err != nil {
		return "", err
	}
	template, err := Parse(c.Template)
	if err != nil {
		return "", err
	}
	out, err := template.Render(variables.(*Dict), Options{Now: clock})
	if err != nil {
		return "", err
	}
	return out.Text, nil
}

// runReference runs the cases of a file.
func runReference(t *testing.T, file string) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var cases []referenceCase
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	for i := range cases {
		cases[i].check(t)
	}
	t.Logf("%d cases", len(cases))
}

// TestGolden compares renderings with Jinja2. testdata/make_golden.py has the command that made the file.
func TestGolden(t *testing.T) { runReference(t, "testdata/golden.json") }

// TestReference runs further cases: ART_CHAT_TEMPLATES names a file in the format of testdata/golden.json.
func TestReference(t *testing.T) {
	file := os.Getenv("ART_CHAT_TEMPLATES")
	if file == "" {
		t.Skip("ART_CHAT_TEMPLATES is not set")
	}
	runReference(t, file)
}
