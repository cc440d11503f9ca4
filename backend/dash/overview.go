package dash

import (
	"maps"
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
	Root    string
	Rows    []overviewRow
	More    int // runs that are left out
	Bad     string
	Query   string
	Metric  string
	Metrics []string
	X       string
	Smooth  float64
	Log     bool
	LogX    bool
	Bands   bool
	Chart   *chartView
}

// overviewRow is a run of the list.
type overviewRow struct {
	Name, Base, State   string
	Active              bool
	Step                int
	Reward, Best, Speed string
	BestStep            int
	HasBest             bool
	Spark               string // path
	Stored              time.Time
	Checked             bool
	Class               string // of its line
}

// overview is the page of all runs.
func (h *Handler) overview(r *http.Request) (*page, error) {
	p := paramsOf(r)
	all, err := h.store.list()
	if all == nil && err != nil {
		return nil, err
	}
	d := &overviewData{Root: h.opts.Dir, Query: p.Get("q"), Metric: p.Get("metric"),
		X: p.choice("x", string(xStep), string(xTime), string(xTokens)), Smooth: p.float("smooth", 0.6),
		Log: p.Get("log") != "", LogX: p.Get("logx") != "", Bands: p.Get("bands") != ""}
	if p.err != nil {
		return nil, p.err
	}
	d.Smooth = min(max(d.Smooth, 0), 0.99)
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
	d.chooseMetric(shown)
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
		row.Checked = at >= 0
		if at >= 0 && !d.Bands {
			row.Class = seriesClass(at)
		}
		d.Rows = append(d.Rows, row)
	}
}

func seriesClass(i int) string { return "s" + string(rune('0'+i%8)) }

// seedsNote explains bands.
const seedsNote = "A line is the mean of its runs, the band goes from the lowest to the highest, " +
	"as far as all of them have come."

// chooseMetric fills in the metrics of some runs, and the one to draw unless it is given.
func (d *overviewData) chooseMetric(runs []*run) {
	d.Metrics = metricsOf(runs)
	if d.Metric != "" {
		return
	}
	d.Metric = "train/reward"
	if !slices.Contains(d.Metrics, d.Metric) && len(d.Metrics) > 0 {
		d.Metric = d.Metrics[0]
	}
}

// compare draws the metric of some runs.
func (d *overviewData) compare(runs []*run) {
	c := &chart{Title: d.Metric, X: xAxis(d.X), Log: d.Log, LogX: d.LogX, Named: true}
	if d.Bands {
		c.Series, c.Note = d.bands(runs), seedsNote
	} else {
		for _, r := range runs {
			s := d.series(r.name, curve(r.rows, d.Metric, c.X))
			s.Link = link("run", "run", r.name)
			c.Series = append(c.Series, s)
			if s.Faint != nil {
				c.Note = "Thin lines are the values, thick ones are smoothed."
			}
		}
	}
	v := c.view()
	d.Chart = &v
}

// series is a curve with its trend.
func (d *overviewData) series(name string, points []point) series {
	s := series{Name: name, Points: points, Dots: len(points) < 12}
	if d.Smooth > 0 && len(points) >= 12 {
		s.Faint, s.Points = points, smooth(points, d.Smooth)
	}
	return s
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
		points := overSeeds(curves[name])
		list = append(list, series{Name: name + " (" + quantity.Of(len(curves[name]), "run") + ")", Points: points})
	}
	return list
}

// metricsOf are the metrics of some runs, in order.
func metricsOf(runs []*run) []string {
	seen := map[string]bool{}
	for _, r := range runs {
		for _, row := range r.rows {
			for key := range row.Metrics {
				seen[key] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(seen))
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
	if v, ok := r.newest("train/reward"); ok {
		row.Reward = number(v)
	} else if v, ok := r.newest("val/reward"); ok {
		row.Reward = number(v)
	}
	if step, value, ok := bestOf(r); ok {
		row.BestStep, row.Best, row.HasBest = step, number(value), true
	}
	if v, ok := r.newest("time/step_wall_s"); ok {
		row.Speed = duration(time.Duration(v * float64(time.Second)))
	}
	rewards := curve(r.rows, "train/reward", xStep)
	if len(rewards) == 0 {
		rewards = curve(r.rows, "val/reward", xStep)
	}
	row.Spark = spark(rewards)
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
