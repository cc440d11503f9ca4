package dash

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/goart-dev/art/internal/quantity"
)

// maxCompared bounds the runs on one chart by default.
const maxCompared = 6

// overviewData is the list of runs, and a chart that compares some.
type overviewData struct {
	axes
	Root    string
	Rows    []overviewRow
	More    int // runs that are left out
	Bad     string
	Query   string
	Metric  string
	Metrics []string
	Bands   bool
	Chart   *chartView
}

// overviewRow is a run of the list.
type overviewRow struct {
	Name, Base, State        string
	Active, HasBest, Checked bool
	Step, BestStep           int
	Reward, Best, Speed      string
	Spark                    string // path
	Stored                   time.Time
	Class                    string // of its line
}

// overview is the page of all runs.
func (h *Handler) overview(r *http.Request) (*page, error) {
	p := paramsOf(r)
	all, err := h.store.list()
	if all == nil && err != nil {
		return nil, err
	}
	d := &overviewData{Root: h.opts.Dir, axes: axesOf(p), Query: p.Get("q"), Metric: p.Get("metric"),
		Bands: p.Get("bands") != ""}
	if p.err != nil {
		return nil, p.err
	}
	if err != nil {
		d.Bad = err.Error()
	}
	d.list(all, p.Values["run"])
	return &page{name: "overview.html", Title: "Runs", Runs: []string{"*"}, Data: d}, nil
}

// list fills in the list and the chart.
func (d *overviewData) list(all []*run, chosen []string) {
	const most = 300
	var shown, compared []*run
	for _, r := range all {
		if strings.Contains(strings.ToLower(r.name+" "+r.About().Base), strings.ToLower(d.Query)) {
			shown = append(shown, r)
		}
	}
	d.More = max(0, len(shown)-most)
	shown = shown[:min(len(shown), most)]
	d.Metrics = metricsOf(shown...)
	if d.Metric == "" {
		d.Metric = "train/reward"
		if !slices.Contains(d.Metrics, d.Metric) && len(d.Metrics) > 0 {
			d.Metric = d.Metrics[0]
		}
	}
	for _, r := range shown {
		_, has := r.newest(d.Metric)
		if slices.Contains(chosen, r.name) || len(chosen) == 0 && has && len(compared) < maxCompared {
			compared = append(compared, r)
		}
	}
	slices.SortFunc(compared, func(a, b *run) int { return strings.Compare(a.name, b.name) }) // colours stay
	d.compare(compared)
	now := time.Now()
	for _, r := range shown {
		row := newOverviewRow(r, now)
		at := slices.Index(compared, r)
		if row.Checked = at >= 0; row.Checked && !d.Bands {
			row.Class = seriesClass(at)
		}
		d.Rows = append(d.Rows, row)
	}
}

func seriesClass(i int) string { return "s" + string(rune('0'+i%8)) }

// compare draws the metric of some runs.
func (d *overviewData) compare(runs []*run) {
	c := d.chart(d.Metric)
	c.Named = true
	if d.Bands {
		c.Series = d.bands(runs)
		c.Note = "A line is the mean of its runs, the band goes from the lowest to the highest, " +
			"as far as all of them have come."
	} else {
		for _, r := range runs {
			points := curve(r.rows, d.Metric, c.X)
			s := d.trend(series{Name: r.name, Link: link("run", "run", r.name), Points: points, Dots: len(points) < 12})
			c.Series = append(c.Series, s)
			if s.Faint != nil {
				c.Note = "Thin lines are the values, thick ones are smoothed."
			}
		}
	}
	d.Chart = c.view()
}

// bands joins runs that differ in their seed.
func (d *overviewData) bands(runs []*run) []series {
	var names []string
	curves := map[string][][]point{}
	for _, r := range runs {
		name := experiment(r.name)
		if curves[name] == nil {
			names = append(names, name)
		}
		curves[name] = append(curves[name], smooth(curve(r.rows, d.Metric, xAxis(d.X)), d.Smooth))
	}
	var list []series
	for _, name := range names {
		list = append(list, series{Name: name + " (" + quantity.Of(len(curves[name]), "run") + ")",
			Points: overSeeds(curves[name])})
	}
	return list
}

// metricsOf are the metrics of some runs, in order.
func metricsOf(runs ...*run) []string {
	seen := map[string]bool{}
	for _, r := range runs {
		for _, row := range r.rows {
			for key := range row.Metrics {
				seen[key] = true
			}
		}
	}
	return sortedKeys(seen)
}

func newOverviewRow(r *run, now time.Time) overviewRow {
	about := r.About()
	row := overviewRow{Name: r.name, Base: about.Base, Step: r.step(), Stored: r.stored, State: "idle"}
	switch {
	case r.isActive(now):
		row.State, row.Active = "active", true
	case about.Frozen:
		row.State = "frozen"
	}
	for _, key := range []string{"val/reward", "train/reward"} {
		if v, ok := r.newest(key); ok {
			row.Reward = number(v)
			row.Spark = spark(curve(r.rows, key, xStep))
		}
	}
	if step, value, ok := bestOf(r); ok {
		row.BestStep, row.Best, row.HasBest = step, number(value), true
	}
	if v, ok := r.newest("time/step_wall_s"); ok {
		row.Speed = duration(time.Duration(v * float64(time.Second)))
	}
	return row
}

// bestOf returns the step with the highest val/reward.
func bestOf(r *run) (step int, value float64, ok bool) {
	for _, p := range curve(r.rows, "val/reward", xStep) {
		if finite(p.Y) && (!ok || p.Y > value) {
			step, value, ok = int(p.X), p.Y, true
		}
	}
	return step, value, ok
}

// spark is a small line without axes.
func spark(points []point) string {
	c := &chart{Series: []series{{Points: points}}}
	c.drop()
	x, y, ok := c.ranges()
	if !ok || len(c.Series[0].Points) < 2 {
		return ""
	}
	return polyline(c.Series[0].Points, x, y)
}
