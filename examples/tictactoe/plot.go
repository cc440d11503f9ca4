package main

import (
	"context"
	"fmt"
	"path/filepath"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/local"
)

// plotRun draws the curves of the whole run, earlier processes included, beside its files.
func plotRun(ctx context.Context, backend *local.Backend, model *art.Model) error {
	rows, err := backend.History(ctx, model)
	if err != nil {
		return err
	}
	curves := map[string]plotter.XYs{}
	for _, row := range rows {
		for _, key := range []string{"train/reward", "train/not_lost", "val/not_lost"} {
			if v, ok := row.Metrics[key]; ok {
				curves[key] = append(curves[key], plotter.XY{X: float64(row.Step), Y: v})
			}
		}
	}
	p := plot.New()
	p.Title.Text, p.X.Label.Text = "tic-tac-toe against a random opponent", "step"
	p.Legend.Top, p.Legend.Left = false, false
	if err := plotutil.AddLinePoints(p, "reward", curves["train/reward"], "not lost", curves["train/not_lost"], "not lost, greedy", curves["val/not_lost"]); err != nil {
		return err
	}
	at, err := backend.Dir(model)
	if err != nil {
		return err
	}
	for _, name := range []string{"reward.png", "reward.svg"} {
		if err := p.Save(16*vg.Centimeter, 10*vg.Centimeter, filepath.Join(at, name)); err != nil {
			return err
		}
	}
	fmt.Println("curves:", filepath.Join(at, "reward.svg"))
	return nil
}
