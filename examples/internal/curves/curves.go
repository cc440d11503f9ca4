// Package curves draws the logged metrics of a run, for the examples.
package curves

import (
	"path/filepath"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"

	"github.com/goart-dev/art"
)

// Save draws one curve over the step for each of keys, which are metrics of the rows, and writes them to reward.png and
// reward.svg in dir. A key that was never logged has no curve.
func Save(dir, title string, rows []art.HistoryRow, keys ...string) error {
	p := plot.New()
	p.Title.Text, p.X.Label.Text = title, "step"
	var named []any
	for _, key := range keys {
		var curve plotter.XYs
		for _, row := range rows {
			if value, ok := row.Metrics[key]; ok {
				curve = append(curve, plotter.XY{X: float64(row.Step), Y: value})
			}
		}
		if len(curve) > 0 {
			named = append(named, key, curve)
		}
	}
	if err := plotutil.AddLinePoints(p, named...); err != nil {
		return err
	}
	for _, name := range []string{"reward.png", "reward.svg"} {
		if err := p.Save(500, 300, filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}
