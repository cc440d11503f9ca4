// Package terminal shows what a program does on one line of a terminal, which it redraws: how far a gather or a
// training is, the reward so far, tokens per second, and the time that is left.
//
//	line := terminal.New(nil)
//	model := art.NewModel("player", &art.ModelOptions{Events: line})
//	groups, err := art.GatherGroups(ctx, scenarios, play, &art.GatherOptions{Events: line})
//
// What is over leaves a line. Where the output is no terminal there are only these. The environment variable NO_COLOR
// turns colours off (https://no-color.org).
package terminal

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/goart-dev/art"
)

// Options of [New]. Zero values are the defaults.
type Options struct {
	// Output is where to draw. Default: standard error.
	Output io.Writer
	// Live redraws a line while something goes on. nil is true where Output is a terminal.
	Live *bool
	// Quiet leaves no line about what is over: for programs that print lines of their own.
	Quiet bool
	// Color makes the title of the line bold. nil is true where Output is a terminal, NO_COLOR is not set, and TERM is not
	// "dumb".
	Color *bool
	// Now is the clock. Default [time.Now].
	Now func() time.Time
}

// interval is the time between two drawings of a line.
const interval = 100 * time.Millisecond

// New returns events that draw, for [art.GatherOptions] and [art.ModelOptions]. opts may be nil.
func New(opts *Options) *art.Events {
	var o Options
	if opts != nil {
		o = *opts
	}
	if o.Output == nil {
		o.Output = os.Stderr
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	l := &line{out: o.Output, now: o.Now, width: 80, quiet: o.Quiet}
	isTerminal := false
	if f, ok := o.Output.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		isTerminal = true
		if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 10 {
			l.width = width
		}
	}
	l.live = valueOr(o.Live, isTerminal && os.Getenv("TERM") != "dumb")
	l.color = valueOr(o.Color, isTerminal && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb")
	return l.events()
}

func valueOr(p *bool, v bool) bool {
	if p != nil {
		return *p
	}
	return v
}

// line is the line of a terminal.
type line struct {
	out         io.Writer
	now         func() time.Time
	width       int
	live, color bool
	quiet       bool

	mu    sync.Mutex
	drawn time.Time // last
	shown bool      // something is on the line
	tasks []*task   // going on; the last is drawn
}

// task is a gather or a training that goes on.
type task struct {
	key, title  string
	start       time.Time
	done, total int
	what        []string // besides how far it is
}

// events returns the callbacks. A task that was begun before them has no line.
func (l *line) events() *art.Events {
	gather := func(id uint64) string { return fmt.Sprintf("gather %d", id) }
	training := func(m *art.Model, step int) string { return fmt.Sprintf("train %s step %d", m.Name(), step) }
	return &art.Events{
		GatherStart: func(e art.GatherStart) { l.begin(gather(e.Gather), "gather", e.Scenarios*e.GroupSize) },
		RolloutEnd: func(e art.RolloutEnd) {
			l.change(gather(e.Gather), func(t *task) {
				t.done, t.what = e.Progress.Done, gathered(e.Progress, l.now().Sub(t.start))
				l.draw(false)
			})
		},
		GatherEnd: func(e art.GatherEnd) {
			l.change(gather(e.Gather), func(t *task) {
				t.done, t.what = e.Progress.Done, gathered(e.Progress, e.Duration)
				if e.Err != nil {
					t.what = append(t.what, "ended early")
				}
				l.end(t, e.Duration)
			})
		},
		TrainStart: func(e art.TrainStart) { l.begin(training(e.Model, e.Step), training(e.Model, e.Step), 0) },
		OptimizerStep: func(e art.OptimizerStep) {
			l.change(training(e.Model, e.Step), func(t *task) {
				t.done, t.total, t.what = e.Done, e.Total, trained(e.Metrics, l.now().Sub(t.start))
				l.draw(false)
			})
		},
		Commit: func(e art.Commit) {
			l.change(training(e.Model, e.Result.Step), func(t *task) {
				t.total, t.what = 0, trained(e.Result.Metrics, e.Duration)
				if n := len(e.Result.Skipped); n > 0 {
					t.what = append(t.what, fmt.Sprintf("%d skipped", n))
				}
				l.end(t, e.Duration)
			})
		},
		TrainError: func(e art.TrainError) {
			l.change(training(e.Model, e.Step), func(t *task) {
				t.what = append(t.what, "failed")
				l.end(t, l.now().Sub(t.start))
			})
		},
	}
}

// begin shows a new task.
func (l *line) begin(key, title string, total int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tasks = append(l.tasks, &task{key: key, title: title, start: l.now(), total: total})
	l.draw(true)
}

// change calls f with a task that goes on, if there is one with the key. The lock is held in it, and in what follows.
func (l *line) change(key string, f func(*task)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.IndexFunc(l.tasks, func(t *task) bool { return t.key == key }); i >= 0 {
		f(l.tasks[i])
	}
}

// gathered tells how a gather goes.
func gathered(p art.GatherProgress, d time.Duration) []string {
	var what []string
	if p.Failed > 0 {
		what = append(what, fmt.Sprintf("%d failed", p.Failed))
	}
	if p.Done > p.Failed {
		what = append(what, fmt.Sprintf("reward %.3g", p.Reward))
	}
	return append(what, rate(float64(p.Tokens), d)...)
}

// trained tells how a training goes.
func trained(metrics map[string]float64, d time.Duration) []string {
	var what []string
	for _, key := range []string{"loss/policy", "loss/sft", "loss/dpo"} {
		if value, ok := metrics[key]; ok {
			what = append(what, fmt.Sprintf("loss %.3g", value))
		}
	}
	return append(what, rate(metrics["data/tokens_computed"], d)...)
}

// rate tells tokens per second, if there are any.
func rate(tokens float64, d time.Duration) []string {
	if tokens == 0 || d <= 0 {
		return nil
	}
	return []string{fmt.Sprintf("%.0f tok/s", tokens/d.Seconds())}
}

// end removes a task, and leaves a line about it.
func (l *line) end(t *task, d time.Duration) {
	l.tasks = slices.DeleteFunc(l.tasks, func(other *task) bool { return other == t })
	l.erase()
	if !l.quiet {
		l.write(l.text(t, "in "+short(d)) + "\n")
	}
	l.draw(true)
}

// draw redraws the line, if it is time to.
func (l *line) draw(now bool) {
	if !l.live || len(l.tasks) == 0 {
		return
	}
	at := l.now()
	if !now && at.Sub(l.drawn) < interval {
		return
	}
	l.drawn = at
	t := l.tasks[len(l.tasks)-1]
	left := ""
	if t.done > 0 && t.done < t.total {
		passed := at.Sub(t.start)
		left = short(time.Duration(float64(passed)*float64(t.total-t.done)/float64(t.done))) + " left"
	}
	l.erase()
	l.write(l.text(t, left))
	l.shown = true
}

// erase empties the line.
func (l *line) erase() {
	if l.shown {
		l.write("\r\x1b[K")
		l.shown = false
	}
}

// text is a line about a task.
func (l *line) text(t *task, last string) string {
	parts := slices.Clone(t.what)
	if last != "" {
		parts = append(parts, last)
	}
	text := t.title
	if t.total > 0 {
		text += fmt.Sprintf(" %d/%d", t.done, t.total)
	}
	rest := "  " + strings.Join(parts, "  ")
	if l.live && len(text)+len(rest) > l.width-1 {
		rest = rest[:max(0, l.width-1-len(text))]
	}
	if l.color {
		text = "\x1b[1m" + text + "\x1b[0m"
	}
	return text + rest
}

// write writes to the terminal. That it cannot be drawn on ends nothing.
func (l *line) write(text string) { _, _ = io.WriteString(l.out, text) }

// short writes a duration in the units that matter: 850ms, 12s, 3m05s, 2h10m.
func short(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%dms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.0fs", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
}
