package art_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/grpo/credit"
)

// lossOptions are the types of names that docs/losses.md explains.
var lossOptions = []string{"Loss", "Level", "Scale", "Baseline", "Objective", "Weighting", "CorrectionMethod",
	"Estimator"}

// option is a constant of one of lossOptions.
type option struct{ kind, name, value, doc string }

// declaredOptions returns the options that package credit declares.
func declaredOptions(t *testing.T) []option {
	t.Helper()
	files, err := filepath.Glob("grpo/credit/*.go")
	if err != nil {
		t.Fatal(err)
	}
	var options []option
	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		options = append(options, optionsOf(t, file)...)
	}
	return options
}

// optionsOf returns the options that a file declares.
func optionsOf(t *testing.T, file *ast.File) (options []option) {
	t.Helper()
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		kind, named := spec.Type.(*ast.Ident)
		literal, constant := spec.Values[0].(*ast.BasicLit)
		if named && constant && slices.Contains(lossOptions, kind.Name) {
			value, err := strconv.Unquote(literal.Value)
			if err != nil {
				t.Fatal(err)
			}
			options = append(options, option{kind.Name, spec.Names[0].Name, value, spec.Doc.Text()})
		}
		return true
	})
	return options
}

// explained returns the rows of the tables of docs/losses.md by the names in backquotes of their first cells: the first
// row of each name.
func explained(t *testing.T) map[string][]string {
	t.Helper()
	page, err := os.ReadFile("docs/losses.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string][]string{}
	for line := range strings.Lines(string(page)) {
		if !strings.HasPrefix(line, "| `") {
			continue
		}
		line = strings.ReplaceAll(line, `\|`, "¦")
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i, name := range strings.Split(cells[0], "`") {
			if _, seen := rows[name]; i%2 == 1 && !seen {
				rows[name] = cells
			}
		}
	}
	return rows
}

// TestLossOptions_Explained: each loss, level, scale, baseline, objective, weight, correction and estimator has a doc
// comment of its own, and a row of at least four cells, none of them empty, in docs/losses.md.
func TestLossOptions_Explained(t *testing.T) {
	rows, found := explained(t), map[string]int{}
	for _, o := range declaredOptions(t) {
		found[o.kind]++
		if !strings.HasPrefix(o.doc, o.name) {
			t.Errorf("%s has no doc comment of its own", o.name)
		}
		name := o.name
		if o.kind == "Loss" {
			name = o.value
		}
		row := rows[name]
		if len(row) < 4 || slices.ContainsFunc(row, func(cell string) bool { return strings.TrimSpace(cell) == "" }) {
			t.Errorf("docs/losses.md has the row %q for %s, want four cells or more, none empty", row, name)
		}
	}
	if len(found) != len(lossOptions) || found["Loss"] != len(credit.Losses()) {
		t.Errorf("found %v in grpo/credit, want each of %q and %d losses", found, lossOptions, len(credit.Losses()))
	}
}

// TestLossOptions_Bounds: the bounds in docs/losses.md are those of the code.
func TestLossOptions_Bounds(t *testing.T) {
	rows := explained(t)
	for _, loss := range credit.Losses() {
		cfg, cell := (&art.TrainConfig{Loss: loss}).WithDefaults(), strings.TrimSpace(rows[string(loss)][2])
		low, high, _ := strings.Cut(cell, ", ")
		if high == "`Epsilon`" {
			high = low
		}
		if cfg.Epsilon == nil {
			wantEqual(t, string(loss), cell, "none")
			continue
		}
		for _, bound := range []struct {
			text string
			want float64
		}{{low, *cfg.Epsilon}, {high, *cfg.EpsilonHigh}} {
			got, err := strconv.ParseFloat(bound.text, 64)
			if err != nil {
				t.Fatal(err)
			}
			wantEqual(t, string(loss), got, bound.want)
		}
	}
}
