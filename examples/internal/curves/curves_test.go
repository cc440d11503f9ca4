package curves

import (
	"bytes"
	"encoding/xml"
	"errors"
	"image/png"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gonum.org/v1/plot/plotter"

	"github.com/goart-dev/art"
)

// history is that of a run which learns, with a measurement each 20 steps.
func history(steps int) []art.HistoryRow {
	rng := rand.New(rand.NewPCG(1, 2))
	var rows []art.HistoryRow
	for step := range steps + 1 {
		share := 0.9 - 0.5*math.Exp(-float64(step)/40)
		if step < steps {
			rows = append(rows, art.HistoryRow{Split: "train", Step: step, Metrics: map[string]float64{"train/right": share + 0.04*rng.NormFloat64()}})
		}
		if step%20 == 0 {
			rows = append(rows, art.HistoryRow{Split: "val", Step: step, Metrics: map[string]float64{"val/right": share + 0.05}})
		}
	}
	return rows
}

var example = Plot{
	Title: "Sums of two digits", Y: "right answers",
	Train: Curve{"train/right", "training"}, Val: Curve{"val/right", "greedy, on sums never trained on"},
}

// Both files can be read, and the SVG has each text once. To look at them: ART_CURVES=FOLDER go test ./examples/internal/curves
func TestSave(t *testing.T) {
	dir := t.TempDir()
	if kept := os.Getenv("ART_CURVES"); kept != "" {
		dir = kept
	}
	if err := example.Save(dir, history(200)); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(filepath.Join(dir, "reward.png"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := png.Decode(bytes.NewReader(content)); err != nil {
		t.Error(err)
	}
	content, err = os.ReadFile(filepath.Join(dir, "reward.svg"))
	if err != nil {
		t.Fatal(err)
	}
	for d := xml.NewDecoder(bytes.NewReader(content)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{example.Title, "right answers in %", "training step", "training<", example.Val.Name} {
		if strings.Count(string(content), want) != 1 {
			t.Errorf("%q is there %d times", want, strings.Count(string(content), want))
		}
	}
}

// Runs that were just begun, or that were measured only, can be drawn.
func TestSave_Short(t *testing.T) {
	for _, rows := range [][]art.HistoryRow{nil, history(0), history(1), history(2)} {
		if err := example.Save(t.TempDir(), rows); err != nil {
			t.Errorf("%d rows: %v", len(rows), err)
		}
	}
}

// The trend of a straight line is the line, at its ends too, and noise shrinks.
func TestSmooth(t *testing.T) {
	line, noise := make(plotter.XYs, 100), make(plotter.XYs, 100)
	for i := range line {
		line[i] = plotter.XY{X: float64(i), Y: 3 * float64(i)}
		noise[i] = plotter.XY{X: float64(i), Y: float64(i % 2)}
	}
	for i, v := range smooth(line) {
		if math.Abs(v.Y-line[i].Y) > 1e-9 || v.X != line[i].X {
			t.Errorf("point %d is %v", i, v)
		}
	}
	for i, v := range smooth(noise)[5:95] {
		if math.Abs(v.Y-0.5) > 0.1 {
			t.Errorf("point %d of noise is %v", i, v)
		}
	}
	if noise[50].Y != 0 {
		t.Error("the values were changed")
	}
}

func TestDistance(t *testing.T) {
	for x, want := range map[float64]float64{0: 1, 0.4: 1, 1.5: 2, 3: 5, 5: 5, 6: 10, 40: 50, 2001: 5000} {
		if got := distance(x); got != want {
			t.Errorf("%v for %v, want %v", got, x, want)
		}
	}
}

func TestAt(t *testing.T) {
	rows := history(40)
	if v, ok := At(rows, "val/right", 20); !ok || v < 0.5 {
		t.Errorf("%v %v", v, ok)
	}
	if _, ok := At(rows, "val/right", 21); ok {
		t.Error("there is no measurement at step 21")
	}
}
