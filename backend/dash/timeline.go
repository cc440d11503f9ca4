package dash

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/goart-dev/art/backend/rundir"
	"github.com/goart-dev/art/internal/quantity"
)

const (
	maxBars  = 1500 // drawn rollouts
	maxLanes = 48
)

// timeline is when the rollouts of a step ran, and how the time of the step is divided.
type timeline struct {
	Bars   []timeBar
	Lanes  int
	Height int // of the drawing, in pixels
	Ticks  []tick
	Parts  []timePart
	Table  table // of the rollouts
	Note   string
}

// timeBar is a rollout: where it is, in percent of the width and of the height.
type timeBar struct{ X, W, Y, H, Class, Label string }

// timePart is a share of the time of a step.
type timePart struct{ Name, X, W, Share, Text, Class string }

// newTimeline draws the rollouts of a step and divides its time. row are the metrics of the step.
func newTimeline(entries []rundir.Entry, row map[string]float64) *timeline {
	var list []rundir.Entry
	for _, e := range entries {
		if e.Trajectory >= 0 && !e.Start.IsZero() && e.Duration > 0 {
			list = append(list, e)
		}
	}
	slices.SortFunc(list, func(a, b rundir.Entry) int { return a.Start.Compare(b.Start) })
	t := &timeline{}
	if len(list) > 0 {
		t.Parts = divide(list, row)
	}
	if len(list) < len(entries) {
		t.Note = quantity.Of(len(entries)-len(list), "trajectory") + " without a start or a duration are left out."
	}
	if len(list) > maxBars {
		t.Note += " Drawn are the first " + count(maxBars) + " rollouts."
		list = list[:maxBars]
	}
	t.draw(list)
	return t
}

// draw places the rollouts in lanes, such that none overlaps another.
func (t *timeline) draw(list []rundir.Entry) {
	if len(list) == 0 {
		return
	}
	begin, end := list[0].Start, list[0].Start
	low, high := math.Inf(1), math.Inf(-1)
	for _, e := range list {
		if last := e.Start.Add(e.Duration); last.After(end) {
			end = last
		}
		low, high = min(low, e.Reward), max(high, e.Reward)
	}
	total := max(end.Sub(begin).Seconds(), 1e-9)
	var lanes []time.Time // when each is free
	where := make([]int, len(list))
	for i, e := range list {
		lane := slices.IndexFunc(lanes, func(free time.Time) bool { return !free.After(e.Start) })
		if lane < 0 && len(lanes) < maxLanes {
			lanes = append(lanes, time.Time{})
			lane = len(lanes) - 1
		}
		if lane < 0 { // more at once than there is room for: they share
			lane = i % maxLanes
		}
		lanes[lane], where[i] = e.Start.Add(e.Duration), lane
	}
	t.Lanes, t.Height = len(lanes), max(60, min(480, 12*len(lanes)))
	for i, e := range list {
		t.Bars = append(t.Bars, timeBar{
			X: percent(e.Start.Sub(begin).Seconds() / total), W: percent(max(e.Duration.Seconds()/total, 0.001)),
			Y: percent(float64(where[i]) / float64(len(lanes))), H: percent(0.8 / float64(len(lanes))),
			Class: "r" + number(float64(level(e.Reward, low, high))),
			Label: fmt.Sprintf("group %d, trajectory %d: reward %s, %s", e.Group, e.Trajectory, number(e.Reward),
				duration(e.Duration)),
		})
	}
	x := axis{low: 0, high: total, kind: xTime}
	t.Ticks = x.ticks(6)
	t.Table = table{Head: []string{"rollout", "start", "duration", "reward"}, More: max(0, len(list)-maxRows)}
	for _, e := range list[:min(len(list), maxRows)] {
		t.Table.Rows = append(t.Table.Rows, []string{
			fmt.Sprintf("group %d, trajectory %d", e.Group, e.Trajectory), duration(e.Start.Sub(begin)), duration(e.Duration),
			number(e.Reward),
		})
	}
}

// level puts a reward into one of five classes.
func level(r, low, high float64) int {
	if !finite(r) || high <= low {
		return 2
	}
	return min(4, int(5*(r-low)/(high-low)))
}

// divide says how the time of a step was spent: with rollouts running, with judges running alone, training, and with
// neither.
func divide(list []rundir.Entry, row map[string]float64) []timePart {
	rollouts := running(list).Seconds()
	train := row["time/train_s"]
	judging, judged := row["time/judge_s"]
	rest := max(0, row["time/step_wall_s"]-train-rollouts-judging)
	total := rollouts + judging + train + rest
	if total <= 0 {
		return nil
	}
	var parts []timePart
	from := 0.0
	all := []struct {
		name    string
		seconds float64
	}{{"rollouts", rollouts}, {"judging", judging}, {"training", train}, {"evaluating and waiting", rest}}
	if !judged {
		all = slices.Delete(all, 1, 2)
	}
	for i, part := range all {
		if part.seconds == 0 {
			continue
		}
		share := part.seconds / total
		parts = append(parts, timePart{Name: part.name, X: percent(from), W: percent(share),
			Share: number(math.Round(100*share)) + " %", Class: seriesClass(i),
			Text: duration(time.Duration(part.seconds * float64(time.Second)))})
		from += share
	}
	return parts
}

// running is the time in which at least one of the rollouts ran. They are sorted by their start.
func running(list []rundir.Entry) time.Duration {
	var sum time.Duration
	end := list[0].Start
	for _, e := range list {
		start := e.Start
		if end.After(start) {
			start = end
		}
		if last := e.Start.Add(e.Duration); last.After(start) {
			sum += last.Sub(start)
			end = last
		}
	}
	return sum
}
