package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/plot"
	"github.com/goart-dev/art/backend/rundir"
)

func init() {
	verbs["runs watch"] = verb{
		summary: "follow a run in the terminal while it is trained",
		args:    "RUN",
		runs:    true,
		text: `
Shows the newest step of a run, where its time went and what was not trained on, and a line for each
of the metrics that matter most: its curve, its newest value and what it was at the first step. It
looks at the folder of the run, so it works over ssh, for runs of any process. art runs dash is the
same in a browser, with the trajectories.

Where the output is no terminal it prints a line for each step. Ctrl-C ends it; the run goes on.

` + runNames,
		define: func(flags *flag.FlagSet) action {
			w := watcher{now: time.Now}
			flags.DurationVar(&w.every, "every", time.Second, "`time` between two looks at the run")
			flags.BoolVar(&w.once, "once", false, "show what there is, and end")
			flags.StringVar(&w.metrics, "metric", "", "`names` of metrics, with commas; default: those that matter most")
			return w.run
		},
	}
}

// watcher is the verb runs watch with its flags.
type watcher struct {
	every   time.Duration
	once    bool
	metrics string

	now   func() time.Time
	width int  // columns of the terminal
	live  bool // the output is a terminal, which is redrawn
	color bool
	lines int // that were drawn last

	shown  int    // rows of the history that were printed, where nothing is redrawn
	newest string // line of the newest row, if it was not printed yet
}

func (w *watcher) run(args []string, stdout, _ io.Writer) error {
	if len(args) != 1 || w.every <= 0 {
		return badUsage("want one RUN, and --every above 0")
	}
	r, _, err := findRun(args[0])
	if err != nil {
		return err
	}
	if w.metrics != "" { // of a run that has not begun anything may come
		rows, err := r.History()
		if err == nil && len(rows) > 0 {
			err = checkMetrics("metric", splitList(w.metrics), rows)
		}
		if err != nil {
			return err
		}
	}
	w.width, w.color = 80, colors(stdout)
	w.live = !w.once && redraws(stdout)
	if f, ok := stdout.(*os.File); ok {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 20 {
			w.width = width
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return w.follow(ctx, r, stdout)
}

// follow shows the run until ctx ends.
func (w *watcher) follow(ctx context.Context, r *rundir.Run, stdout io.Writer) error {
	ticks := time.NewTicker(w.every)
	defer ticks.Stop()
	for {
		rows, err := r.History()
		if err != nil {
			return err
		}
		text := w.news(rows)
		if w.live || w.once {
			if text, err = w.screen(r, rows); err != nil {
				return err
			}
			if w.live && w.lines > 0 { // what was drawn last is erased
				text = fmt.Sprintf("\x1b[%dA\r\x1b[J", w.lines) + text
			}
			w.lines = strings.Count(text, "\n")
		}
		if text != "" {
			err = write(stdout, text)
		}
		if err != nil || w.once {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticks.C:
		}
	}
}

// news has a line for each row that was logged since the last call. The newest waits until it is the same twice: a
// training stores its row, to which the program then adds the rewards.
func (w *watcher) news(rows []art.HistoryRow) string {
	w.shown = min(w.shown, len(rows))
	var b strings.Builder
	for i, row := range rows[w.shown:] {
		line := w.rowLine(row)
		if w.shown+i == len(rows)-1 && line != w.newest {
			w.shown, w.newest = len(rows)-1, line
			return b.String()
		}
		b.WriteString(line)
	}
	w.shown, w.newest = len(rows), ""
	return b.String()
}

// rowLine is the line of a row where nothing is redrawn.
func (w *watcher) rowLine(row art.HistoryRow) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s step %d", printable(row.Split), row.Step)
	for _, key := range w.keys([]art.HistoryRow{row}) {
		if value, ok := row.Metrics[key]; ok {
			fmt.Fprintf(&b, "  %s %.4g", printable(key), value)
		}
	}
	return b.String() + "\n"
}

// watched are the metrics that matter most, in their order.
var watched = []string{
	"train/reward", "val/reward", "train/reward_std_dev", "train/exception_rate", "loss/policy", "loss/sft", "loss/dpo",
	"loss/entropy", "loss/kl_old_new", "loss/kl_ref", "loss/grad_norm", "train/logprob_gap_max",
	"offpolicy/token_weighted_policy_age_steps", "throughput/rollout_tok_per_s", "throughput/train_tok_per_s",
	"time/step_wall_s", "costs/total", "memory/resident_bytes",
}

// keys are the metrics to show: those that were asked for, or those that matter most and were logged.
func (w *watcher) keys(rows []art.HistoryRow) []string {
	if w.metrics != "" {
		return splitList(w.metrics)
	}
	return slices.DeleteFunc(slices.Clone(watched), func(key string) bool {
		return !slices.ContainsFunc(rows, func(row art.HistoryRow) bool { _, ok := row.Metrics[key]; return ok })
	})
}

// screen is what a terminal shows.
func (w *watcher) screen(r *rundir.Run, rows []art.HistoryRow) (string, error) {
	steps, err := r.Steps()
	if err != nil {
		return "", err
	}
	about, step := r.About(), 0
	if len(steps) > 0 {
		step = steps[len(steps)-1]
	}
	_, stored, err := usage(r.Dir())
	if err != nil {
		return "", err
	}
	var b strings.Builder
	name := styled(w.color, "1", printable(about.Project+"/"+about.Name))
	fmt.Fprintf(&b, "%s  step %d  %s  stored %v ago\n", name, step, printable(about.Base),
		max(0, w.now().Sub(stored).Round(time.Second)))
	if best, err := art.BestStep(rows, steps, ""); err == nil {
		value, _ := art.Logged(rows, "val/reward", best)
		fmt.Fprintf(&b, "best val/reward %.4g at step %d\n", value, best)
	}
	b.WriteString(newestStep(rows))
	for _, key := range w.keys(rows) {
		b.WriteString(w.line(key, plot.History(rows, key)))
	}
	if len(rows) == 0 {
		b.WriteString("nothing is logged yet\n")
	}
	return b.String(), nil
}

// line is a metric with its curve. It fits into the terminal.
func (w *watcher) line(key string, points []plot.Point) string {
	values := make([]float64, len(points))
	for i, p := range points {
		values[i] = p.Value
	}
	if len(values) == 0 {
		return fmt.Sprintf("%-30.30s  not logged\n", printable(key))
	}
	room := max(0, w.width-60)
	first, last := values[0], values[len(values)-1]
	return fmt.Sprintf("%-30.30s %10.4g  %s  was %.4g\n", printable(key), last, curveOf(values, min(room, 80)), first)
}

// curveOf draws values as blocks of eight heights, at most width of them: each is the mean of a part.
func curveOf(values []float64, width int) string {
	values = slices.DeleteFunc(slices.Clone(values), func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) })
	n := min(width, len(values))
	if n == 0 {
		return ""
	}
	means := make([]float64, n)
	for i := range means {
		part := values[i*len(values)/n : (i+1)*len(values)/n]
		for _, v := range part {
			means[i] += v / float64(len(part))
		}
	}
	low, high := slices.Min(means), slices.Max(means)
	var b strings.Builder
	for _, v := range means {
		height := 0
		if high > low {
			height = min(7, int(8*(v-low)/(high-low)))
		}
		b.WriteRune([]rune("▁▂▃▄▅▆▇█")[height])
	}
	return b.String()
}

// newestStep says how the time of the newest training was spent, and what was not trained on; "" before the first.
func newestStep(rows []art.HistoryRow) string {
	var metrics map[string]float64
	for _, row := range rows {
		if row.Split == "train" && row.Metrics["time/step_wall_s"] > 0 {
			metrics = row.Metrics
		}
	}
	if metrics == nil {
		return ""
	}
	wall := metrics["time/step_wall_s"]
	text := fmt.Sprintf("step took %v:", time.Duration(wall*float64(time.Second)).Round(10*time.Millisecond))
	rest := wall
	for _, part := range [][2]string{
		{"rollouts", "time/rollout_s"}, {"judging", "time/judge_s"}, {"training", "time/train_s"},
	} {
		if seconds, ok := metrics[part[1]]; ok {
			rest -= seconds
			text += fmt.Sprintf(" %s %.0f %%,", part[0], 100*seconds/wall)
		}
	}
	text += fmt.Sprintf(" waiting and all else %.0f %%\n", 100*max(0, rest)/wall)
	var list []string
	for _, key := range sortedKeys(metrics) {
		if reason, ok := strings.CutPrefix(key, "data/skipped_"); ok && metrics[key] > 0 {
			list = append(list, fmt.Sprintf("%s %.0f", printable(reason), metrics[key]))
		}
	}
	if len(list) > 0 {
		text += "not trained on: " + strings.Join(list, ", ") + "\n"
	}
	return text
}
