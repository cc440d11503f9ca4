package learning

import (
	"fmt"
	"strings"
	"time"
)

// Tasks are all tasks, in the order of the table.
func Tasks() []*Task {
	return []*Task{YesNoMaybe(), ReverseWord(), Addition(), GuessNumber(), ToolUse(), TicTacToe(), SelfPlay()}
}

// Table writes results as a table of Markdown, a line for each task with the values of its seeds.
func Table(tasks []*Task, results []*Result) string {
	var b strings.Builder
	b.WriteString("| task | measure | aim | steps | before | best | at the end | largest fall | reached |" +
		" time of a run |\n")
	b.WriteString("|---|---|---|---|---|---|---|---|---|---|\n")
	for _, task := range tasks {
		var own []*Result
		for _, r := range results {
			if r.Task == task.Name && len(r.Curve) > 0 {
				own = append(own, r)
			}
		}
		if len(own) == 0 {
			continue
		}
		reached, seconds, steps := 0, 0.0, 0
		for _, r := range own {
			if r.Reached {
				reached++
			}
			seconds += r.Seconds / float64(len(own))
			steps = max(steps, r.Steps)
		}
		fmt.Fprintf(&b, "| %s: %s | %s | %s | %d | %s | %s | %s | %s | %d of %d seeds | %v |\n", task.Name, task.What,
			task.Measure, task.Aim.Text, steps,
			each(own, func(c []Point) float64 { return c[0].Value }),
			each(own, task.best), each(own, func(c []Point) float64 { return c[len(c)-1].Value }), each(own, Fall),
			reached, len(own), time.Duration(seconds*float64(time.Second)).Round(time.Second))
	}
	return b.String()
}

// best is the best value of a curve: the lowest where the aim is to have little.
func (t *Task) best(curve []Point) float64 {
	best := curve[0].Value
	for _, p := range curve {
		if t.Low && p.Value < best || !t.Low && p.Value > best {
			best = p.Value
		}
	}
	return best
}

// each writes a value of each result.
func each(results []*Result, value func([]Point) float64) string {
	var parts []string
	for _, r := range results {
		parts = append(parts, fmt.Sprintf("%.3g", value(r.Curve)))
	}
	return strings.Join(parts, ", ")
}
