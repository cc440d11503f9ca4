package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/hosted"
	"github.com/goart-dev/art/backend/local"
	"github.com/goart-dev/art/backend/plot"
	"github.com/goart-dev/art/backend/rundir"
)

func init() {
	verbs["runs plot"] = verb{
		summary: "draw the curves of runs, or bars that compare them",
		args:    "RUN...",
		runs:    true,
		text: `
Draws metrics of one or more runs over their steps as an SVG or PNG file. Metrics of split "train"
are faint points with their trend; those of other splits are marked points. A reward of such a split
has an error band where its trajectories are stored: its 95 % confidence interval, with one value
for each group. It is by Student's t, and Wilson's where all rewards are 0 or 1.

With --bars each run is a bar: the metric at the step of RUN, or the newest before it.

With --batch the update from the step of RUN to the next one is drawn as it was computed: the
rectangles of each micro-batch, with what sequences share, what is trained, and padding. How a step
is divided into them depends on the device: --device should be that of the run.

` + runNames,
		define: func(flags *flag.FlagSet) action {
			var p plotter
			flags.StringVar(&p.metrics, "metric", "", "`names` of metrics, with commas; default: "+curveMetrics)
			flags.StringVar(&p.out, "out", "plot.svg", "`file` to write, .svg or .png")
			flags.StringVar(&p.title, "title", "", "`text` above the plot; default: the runs")
			flags.StringVar(&p.y, "y", "", "`text` of the vertical axis; default: the metrics with their units")
			flags.BoolVar(&p.percent, "percent", false, "draw values from 0 to 1 as percents")
			flags.BoolVar(&p.drawBatch, "batch", false, "draw the micro-batches of the update from RUN@STEP")
			flags.StringVar(&p.device, "device", "",
				"`device` of the run, for --batch: cpu, or xla:cuda, see art doctor; default: cpu")
			flags.BoolVar(&p.bars, "bars", false, "draw bars that compare the runs")
			return p.run
		},
	}
}

// curveMetrics are those that are drawn by default.
const curveMetrics = "train/reward,val/reward"

// plotter is the verb runs plot with its flags.
type plotter struct {
	metrics, out, title, y string
	percent, bars          bool
	drawBatch              bool
	device                 string // of drawBatch
}

func (p *plotter) run(args []string, stdout, stderr io.Writer) error {
	if len(args) == 0 {
		return badUsage("want at least one RUN")
	}
	if format := strings.TrimPrefix(filepath.Ext(p.out), "."); !slices.Contains(plot.Formats, format) {
		return badUsage("--out %s: want a file that ends in .svg or .png", p.out)
	}
	if p.device != "" && !p.drawBatch {
		return badUsage("--device %s: only --batch computes", p.device)
	}
	if p.drawBatch && (p.metrics != "" || p.y != "" || p.percent) {
		return badUsage("--batch draws no curves: leave out --metric, --y and --percent")
	}
	if p.title == "" {
		p.title = strings.Join(args, ", ")
	}
	d, err := p.drawing(args, stderr)
	if err != nil {
		return err
	}
	if err := plot.Save(p.out, d); err != nil {
		return err
	}
	return write(stdout, p.out+"\n")
}

// drawing is what the flags ask for.
func (p *plotter) drawing(names []string, stderr io.Writer) (plot.Drawing, error) {
	if p.drawBatch {
		return p.batch(names, stderr)
	}
	list := make([]plotted, len(names))
	for i, short := range shortNames(names) {
		r, step, err := findRun(names[i])
		if err != nil {
			return nil, err
		}
		rows, err := r.History()
		if err != nil {
			return nil, err
		}
		list[i] = plotted{r, short, step, rows}
	}
	keys, err := p.keys(list)
	if err != nil {
		return nil, err
	}
	if p.y == "" {
		p.y = axis(keys)
	}
	if p.bars {
		return p.compare(list, keys)
	}
	chart := &plot.Chart{Title: p.title, Y: p.y, Percent: p.percent}
	for _, r := range list {
		for _, key := range keys {
			points, err := p.points(r, key)
			if err != nil {
				return nil, err
			}
			series := plot.Series{Name: key, Points: points, Smooth: strings.HasPrefix(key, "train/") ||
				strings.HasPrefix(key, "loss/")}
			if len(keys) == 1 && len(list) > 1 {
				series.Name = r.short
			} else if len(list) > 1 {
				series.Name = r.short + " " + key
			}
			chart.Series = append(chart.Series, series)
		}
	}
	return chart, nil
}

// plotted is a run to be drawn.
type plotted struct {
	*rundir.Run
	short string // name in the legend
	step  int
	rows  []art.HistoryRow
}

// keys are the metrics to draw: those of the flag, or those of [curveMetrics] that were logged.
func (p *plotter) keys(list []plotted) ([]string, error) {
	var histories [][]art.HistoryRow
	for _, r := range list {
		histories = append(histories, r.rows)
	}
	if p.metrics != "" {
		keys := splitList(p.metrics)
		return keys, checkMetrics("metric", keys, histories...)
	}
	logged := loggedMetrics(histories...)
	keys := slices.DeleteFunc(splitList(curveMetrics), func(key string) bool { return !slices.Contains(logged, key) })
	if len(keys) > 0 {
		return keys, nil
	}
	if len(logged) == 0 {
		return nil, errors.New("nothing is logged yet")
	}
	return nil, fmt.Errorf("no reward was logged; name some of these with --metric: %s", strings.Join(logged, ", "))
}

// axis names metrics with their units, as far as docs/metrics.md has them.
func axis(keys []string) string {
	units := map[string]string{}
	for _, list := range [][]rundir.MetricInfo{
		rundir.LogMetrics(), rundir.PipelineMetrics(), local.Metrics(), hosted.Metrics(),
	} {
		for _, m := range list {
			units[m.Name] = m.Unit
		}
	}
	names := make([]string, len(keys))
	for i, key := range keys {
		names[i] = key
		unit := units[strings.Replace(key, "/cum/", "/", 1)]
		if _, name, ok := strings.Cut(key, "/"); ok && unit == "" {
			unit = units["<split>/"+name]
		}
		if unit != "" {
			names[i] += " (" + unit + ")"
		}
	}
	return strings.Join(names, ", ")
}

// shortNames are what a legend calls runs: the last part of each name or folder, unless two have the same.
func shortNames(names []string) []string {
	short, seen := make([]string, len(names)), map[string]bool{}
	for i, name := range names {
		short[i] = filepath.Base(strings.TrimPrefix(name, runPrefix))
		if seen[short[i]] {
			return names
		}
		seen[short[i]] = true
	}
	return short
}

// points are the values of a metric, those of a reward with their confidence intervals.
func (p *plotter) points(r plotted, key string) ([]plot.Point, error) {
	points := plot.History(r.rows, key)
	split, isReward := strings.CutSuffix(key, "/reward")
	if !isReward || split == "train" {
		return points, nil // of train, points and trend say how it scatters
	}
	for i := range points {
		groups, err := r.ReadTrajectories(split, points[i].Step)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		_, points[i].Low, points[i].High = plot.RewardInterval(groups)
	}
	return points, nil
}

// compare draws a bar for each metric of each run.
func (p *plotter) compare(list []plotted, keys []string) (plot.Drawing, error) {
	bars := &plot.Bars{Title: p.title, Y: p.y, Percent: p.percent}
	for _, r := range list {
		for _, key := range keys {
			points, err := p.points(r, key)
			if err != nil {
				return nil, err
			}
			points = slices.DeleteFunc(points, func(point plot.Point) bool { return point.Step > r.step })
			if len(points) == 0 {
				continue
			}
			last := points[len(points)-1]
			run, _, _ := strings.Cut(r.short, "@")
			label := fmt.Sprintf("%s, step %d", strings.TrimPrefix(run, runPrefix), last.Step)
			if len(keys) > 1 {
				label += ", " + key
			}
			bars.Bars = append(bars.Bars, plot.Bar{Name: label, Value: last.Value, Low: last.Low, High: last.High})
		}
	}
	if len(bars.Bars) == 0 {
		return nil, fmt.Errorf("none of the runs has logged %s up to the step of RUN", strings.Join(keys, " or "))
	}
	return bars, nil
}

// batch draws how an update was computed.
func (p *plotter) batch(names []string, stderr io.Writer) (_ plot.Drawing, err error) {
	if len(names) != 1 || p.bars {
		return nil, badUsage("--batch wants one RUN@STEP, without --bars")
	}
	ctx := context.Background()
	update, err := recompute(ctx, names[0], p.device, stderr)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, update.done()) }()
	updates, err := update.Packed(ctx, update.run.Dir(), update.step)
	if err != nil {
		return nil, err
	}
	if other := otherDevice(update.run.About().Device, update.Device()); other != "" {
		fmt.Fprintf(stderr, "art: runs plot: %s, so micro-batches may have been others; "+
			"take the device of the run with --device\n", other)
	}
	if len(slices.Concat(updates...)) == 0 {
		return nil, fmt.Errorf("step %d was trained on nothing", update.step)
	}
	return &plot.Packed{Title: p.title, Updates: updates}, nil
}
