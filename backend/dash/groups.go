package dash

import (
	"cmp"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/goart-dev/art"
)

// perPage bounds the groups on a page.
const perPage = 40

// groupsData is a step of a run: its groups, its time, or its tokens.
type groupsData struct {
	*place
	View               string // groups, time or batch
	Sort               string
	Filter             filter
	Groups             []groupRow
	Total, All         int // groups that pass the filter, and all
	Count              int // trajectories
	Reward             string
	Rewards            string // their range, which is that of the small drawings
	Failures           []art.Failure
	Failed, PageAt     int
	PagePrev, PageNext string
	Metrics            [][2]string
	Timeline           *timeline
	Batch              *batch
	Note               string
}

// filter is what trajectories must have.
type filter struct {
	Text, Tool string
	Min, Max   float64
	Failed     bool
}

// MinText is the lower bound as a form has it.
func (f filter) MinText() string { return boundText(f.Min) }

// MaxText is the upper bound.
func (f filter) MaxText() string { return boundText(f.Max) }

func boundText(v float64) string {
	if math.IsInf(v, 0) {
		return ""
	}
	return number(v)
}

// filterOf reads a filter.
func filterOf(p *params) filter {
	return filter{Text: strings.TrimSpace(p.Get("q")), Tool: strings.TrimSpace(p.Get("tool")),
		Failed: p.Get("failed") != "", Min: p.float("min", math.Inf(-1)), Max: p.float("max", math.Inf(1))}
}

// admits reports whether a group has a trajectory within the bounds, or failures where these are asked for.
func (f filter) admits(g *groupEntry) bool {
	if f.Failed && len(g.failures) == 0 {
		return false
	}
	if math.IsInf(f.Min, 0) && math.IsInf(f.Max, 0) {
		return true
	}
	return slices.ContainsFunc(g.rewards(), func(r float64) bool { return r >= f.Min && r <= f.Max })
}

// groupRow is a line of the list.
type groupRow struct {
	Number, Size, Failures int
	Link, Mean, Range      string
	Bars                   []histogramBar // of its rewards, over the range of all rewards of the step
	Skip                   string
	Steps                  string // of the policy
	Duration               string

	entry *groupEntry
	mean  point // of its rewards, with their range; NaN without any
}

// groupsPage is the page of a step.
func (h *Handler) groupsPage(r *http.Request) (*page, error) {
	at, err := h.placeOf(r)
	if err != nil {
		return nil, err
	}
	d := &groupsData{place: at, View: at.p.choice("view", "groups", "time", "batch"), Filter: filterOf(at.p),
		Sort: at.p.choice("sort", "index", "best", "worst", "spread"), PageAt: at.p.number("page", 0)}
	if at.p.err != nil {
		return nil, at.p.err
	}
	x, sum := at.index, 0.0
	d.All = len(x.groups)
	for i := range x.groups {
		g := &x.groups[i]
		d.Count, d.Failed = d.Count+len(g.entries), d.Failed+len(g.failures)
		for _, reward := range g.rewards() {
			sum += reward
		}
		if d.Filter.Failed && len(d.Failures) < 50 {
			d.Failures = append(d.Failures, g.failures...)
		}
	}
	if d.Count > 0 {
		d.Reward = number(sum / float64(d.Count))
	}
	d.Metrics = pairs(at.row())
	switch d.View {
	case "groups":
		d.list()
	case "time":
		d.Timeline = newTimeline(x.entries, at.row())
	case "batch":
		if d.Batch, err = h.readBatch(at); err != nil {
			return nil, err
		}
	}
	return &page{name: "groups.html", Title: at.Run + " step " + number(float64(at.Step)), Runs: []string{at.Run}, Data: d,
		Crumbs: at.crumbs()[:2]}, nil
}

// list makes the lines of a page of the list.
func (d *groupsData) list() {
	x, w := d.index, d.weighing()
	low, high := math.Inf(1), math.Inf(-1)
	for _, e := range x.entries {
		if e.Trajectory >= 0 && finite(e.Reward) {
			low, high = min(low, e.Reward), max(high, e.Reward)
		}
	}
	if low <= high {
		d.Rewards = number(low) + " to " + number(high)
	}
	var rows []groupRow
	for i := range x.groups {
		g := &x.groups[i]
		if !d.Filter.admits(g) {
			continue
		}
		row := groupRow{Number: g.number, Size: len(g.entries), Failures: len(g.failures), entry: g, mean: at(0, math.NaN())}
		if len(g.entries) > 0 {
			row.mean = meanPoint(0, g.rewards())
		}
		rows = append(rows, row)
	}
	sortGroups(rows, d.Sort)
	d.Total = len(rows)
	first := min(d.PageAt*perPage, len(rows))
	last := min(first+perPage, len(rows))
	if first > 0 {
		d.PagePrev = d.p.with("groups", "page", number(float64(d.PageAt-1)))
	}
	if last < len(rows) {
		d.PageNext = d.p.with("groups", "page", number(float64(d.PageAt+1)))
	}
	d.Groups = rows[first:last]
	for i := range d.Groups {
		d.Groups[i].describe(w, low, high)
		d.Groups[i].Link = d.place.Link("group", "group", d.Groups[i].Number)
	}
	d.Note = w.Note
}

// sortGroups sorts the list. Groups without rewards come last.
func sortGroups(rows []groupRow, by string) {
	key := map[string]func(groupRow) float64{
		"index":  func(r groupRow) float64 { return float64(r.Number) },
		"best":   func(r groupRow) float64 { return -r.mean.Y },
		"worst":  func(r groupRow) float64 { return r.mean.Y },
		"spread": func(r groupRow) float64 { return r.mean.Low - r.mean.High },
	}[by]
	slices.SortStableFunc(rows, func(a, b groupRow) int {
		x, y := key(a), key(b)
		return cmp.Or(cmp.Compare(bit(math.IsNaN(x)), bit(math.IsNaN(y))), cmp.Compare(x, y))
	})
}

// describe fills in the texts of a line. low and high are the range of all rewards.
func (row *groupRow) describe(w weighing, low, high float64) {
	row.Mean, row.Range, row.Steps = "–", "–", "–"
	rewards := row.entry.rewards()
	if len(rewards) > 0 {
		row.Mean, row.Range = number(row.mean.Y), number(row.mean.Low)+" to "+number(row.mean.High)
	}
	row.Bars = histogram(rewards, low, high)
	if _, reason := w.advantages(rewards); reason != "" {
		row.Skip = skipText(string(reason))
	}
	longest, first, newest := time.Duration(0), -1, -1
	for _, e := range row.entry.entries {
		longest = max(longest, e.Duration)
		if e.FirstStep >= 0 {
			if first < 0 || e.FirstStep < first {
				first = e.FirstStep
			}
			newest = max(newest, e.LastStep)
		}
	}
	row.Duration = duration(longest)
	if first >= 0 {
		row.Steps = number(float64(first))
		if newest > first {
			row.Steps += " to " + number(float64(newest))
		}
	}
}

// histogramBar is a bar, in percent of the width and the height.
type histogramBar struct{ X, W, Y, H string }

// histogram draws how rewards are distributed over a range.
func histogram(rewards []float64, low, high float64) []histogramBar {
	const bins = 25
	var counts [bins]int
	most := 1
	for _, r := range rewards {
		if !finite(r) {
			continue
		}
		bin := bins / 2
		if high > low {
			bin = min(bins-1, int(bins*(r-low)/(high-low)))
		}
		counts[bin]++
		most = max(most, counts[bin])
	}
	var list []histogramBar
	for i, n := range counts {
		if n > 0 {
			height := float64(n) / float64(most)
			list = append(list, histogramBar{percent((float64(i) + 0.1) / bins), percent(0.8 / bins), percent(1 - height),
				percent(height)})
		}
	}
	return list
}
