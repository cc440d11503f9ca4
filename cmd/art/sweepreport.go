package main

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/plot"
	"github.com/goart-dev/art/backend/rundir"
	"github.com/goart-dev/art/internal/quantity"
)

// outcome is what the trials of a combination have logged.
type outcome struct {
	name      string
	histories [][]art.HistoryRow // of the seeds that have a run
	seeds     int
	steps     int // the newest with a metric, of all
}

// report prints the table, and writes it and the plot.
func (s *sweep) report(trials []*trial, stdout io.Writer) error {
	outcomes, err := s.outcomes(trials)
	if err != nil {
		return err
	}
	keys := splitList(s.metrics)
	// The rows of the table, from its head on.
	head := []string{"SETTINGS", "SEEDS", "STEP"}
	for _, key := range keys {
		head = append(head, strings.ToUpper(key), "HIGHEST")
	}
	rows := [][]string{head}
	for _, o := range outcomes {
		row := []string{o.name, fmt.Sprintf("%d/%d", len(o.histories), o.seeds), strconv.Itoa(o.steps)}
		for _, key := range keys {
			newest, highest := o.values(key)
			row = append(row, intervalText(newest), intervalText(highest))
		}
		rows = append(rows, row)
	}
	columns := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		fmt.Fprintln(columns, strings.Join(row, "\t"))
	}
	if err := columns.Flush(); err != nil {
		return err
	}
	var histories [][]art.HistoryRow
	for _, o := range outcomes {
		histories = append(histories, o.histories...)
	}
	if err := checkMetrics("metric", keys, histories...); err != nil {
		return err
	}
	// The mean over the seeds of each metric of each combination, with its confidence interval.
	chart := &plot.Chart{Title: "Sweep, mean over seeds", Y: strings.Join(keys, ", "), Percent: s.percent}
	for _, o := range outcomes {
		for _, key := range keys {
			series := plot.Series{Name: o.name, Points: o.mean(key)}
			if len(keys) > 1 {
				series.Name += " " + key
			}
			if len(series.Points) > 0 {
				chart.Series = append(chart.Series, series)
			}
		}
	}
	table, drawing := filepath.Join(s.out, "sweep.md"), filepath.Join(s.out, "sweep.svg")
	if err := os.WriteFile(table, []byte(markdownTable(rows)), 0o644); err != nil {
		return err
	}
	if err := plot.Save(drawing, chart); err != nil {
		return err
	}
	return write(stdout, table+"\n"+drawing+"\n")
}

// markdownTable writes rows as a table of Markdown. A vertical bar in a cell would begin another one.
func markdownTable(rows [][]string) string {
	var text strings.Builder
	for i, row := range rows {
		text.WriteString("|")
		for _, cell := range row {
			text.WriteString(" " + strings.ReplaceAll(cell, "|", `\|`) + " |")
		}
		text.WriteString("\n")
		if i == 0 {
			text.WriteString("|" + strings.Repeat("---|", len(row)) + "\n")
		}
	}
	return text.String()
}

// outcomes reads what the trials have logged, by combination.
func (s *sweep) outcomes(trials []*trial) ([]*outcome, error) {
	var list []*outcome
	for _, t := range trials {
		name := cmp.Or(strings.Join(s.pairs(t.Values), " "), "all")
		if len(list) == 0 || list[len(list)-1].name != name {
			list = append(list, &outcome{name: name})
		}
		o := list[len(list)-1]
		o.seeds++
		found, err := rundir.List(t.runs())
		if err != nil {
			return nil, err
		}
		if len(found) > 1 {
			return nil, fmt.Errorf("%s has %s, want the one of the program", t.runs(), quantity.Of(len(found), "run"))
		}
		for _, r := range found {
			rows, err := r.History()
			if err != nil {
				return nil, err
			}
			o.histories = append(o.histories, rows)
			for _, key := range splitList(s.metrics) {
				for _, p := range plot.History(rows, key) {
					o.steps = max(o.steps, p.Step)
				}
			}
		}
	}
	return list, nil
}

// values are the newest and the highest value of a metric, of each seed that has it.
func (o *outcome) values(key string) (newest, highest []float64) {
	for _, rows := range o.histories {
		if last, most := extremes(rows, key); !math.IsNaN(last) {
			newest, highest = append(newest, last), append(highest, most)
		}
	}
	return newest, highest
}

// intervalText writes a mean over seeds with its confidence interval, which one value does not have.
func intervalText(values []float64) string {
	switch len(values) {
	case 0:
		return "-"
	case 1:
		return fmt.Sprintf("%.4g", values[0])
	}
	mean, low, high := plot.Interval(values)
	return fmt.Sprintf("%.4g (%.4g to %.4g)", mean, low, high)
}

// mean averages a metric over the seeds, at the steps that any of them has.
func (o *outcome) mean(key string) []plot.Point {
	byStep := map[int][]float64{}
	for _, rows := range o.histories {
		for _, p := range plot.History(rows, key) {
			byStep[p.Step] = append(byStep[p.Step], p.Value)
		}
	}
	var points []plot.Point
	for _, step := range sortedKeys(byStep) {
		p := plot.Point{Step: step, Value: byStep[step][0]}
		if len(byStep[step]) > 1 {
			p.Value, p.Low, p.High = plot.Interval(byStep[step])
		}
		points = append(points, p)
	}
	return points
}
