package dash

import (
	"cmp"
	"encoding/csv"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/rundir"
	"github.com/goart-dev/art/grpo/credit"
	"github.com/goart-dev/art/internal/quantity"
)

// runData is a run with its charts.
type runData struct {
	axes
	Name     string
	About    rundir.Description
	Active   bool
	Stored   time.Time
	Step     int
	Best     string
	BestStep int
	Facts    [][2]string
	Sections []section
	Section  string
	Charts   []*chartView
	Skipped  [][2]string // reasons and numbers of the newest step
	Splits   []splitLink
}

// section is a part of the metrics.
type section struct {
	Name, Link string
	Count      int
	Current    bool
}

// splitLink is where the trajectories of a split are.
type splitLink struct {
	Split, Link string
	Steps, Last int
}

// summary is the section with what matters most.
const summary = "summary"

// runPage is the page of one run.
func (h *Handler) runPage(r *http.Request) (*page, error) {
	p := paramsOf(r)
	run, err := h.store.find(p.Get("run"))
	if err != nil {
		return nil, err
	}
	d := &runData{Name: run.name, About: run.About(), Active: run.isActive(time.Now()), Stored: run.stored,
		Step: run.step(), Section: cmp.Or(p.Get("section"), summary), axes: axesOf(p)}
	if p.err != nil {
		return nil, p.err
	}
	if step, value, ok := bestOf(run); ok {
		d.Best, d.BestStep = number(value), step
	}
	d.Facts = facts(run)
	if err := d.sections(run, p); err != nil {
		return nil, err
	}
	d.Skipped = skipped(run)
	for _, split := range sortedKeys(run.splits) {
		steps := run.splits[split]
		last := steps[len(steps)-1]
		d.Splits = append(d.Splits, splitLink{split, link("groups", "run", run.name, "split", split, "step", last),
			len(steps), last})
	}
	return &page{name: "run.html", Title: run.name, Runs: []string{run.name}, Data: d,
		Crumbs: []crumb{{run.name, ""}}}, nil
}

// facts are what a run was begun with.
func facts(r *run) [][2]string {
	a := r.About()
	list := [][2]string{{"base", a.Base}, {"device", a.Device}}
	add := func(name, value string) {
		if value != "" {
			list = append(list, [2]string{name, value})
		}
	}
	add("commit", a.Commit)
	add("weights", a.Weights)
	add("activations", a.Activations)
	if a.RopeContext > 0 {
		add("context of RoPE", quantity.Of(a.RopeContext, "token"))
	}
	add("adapter", a.Adapter)
	add("fork of", a.Fork)
	if a.LoRA.Rank > 0 {
		add("LoRA rank", number(float64(a.LoRA.Rank)))
	}
	if a.Full {
		add("trained", "all weights")
	}
	add("seed", number(float64(a.Seed)))
	add("checkpoints", quantity.Of(len(r.steps), "step"))
	if wall, ok := r.newest("time/wall_clock_sec"); ok {
		add("trained for", duration(time.Duration(wall*float64(time.Second))))
	}
	if n, ok := r.newest("data/cum/tokens_sampled"); ok {
		add("tokens sampled", count(n))
	}
	if cost, ok := r.newest("costs/total"); ok {
		add("cost", number(cost))
	}
	return list
}

// sections lists the sections of the metrics, and draws the chosen one.
func (d *runData) sections(r *run, p *params) error {
	bySection := map[string][]string{}
	for _, key := range metricsOf(r) {
		name, _, _ := strings.Cut(key, "/")
		bySection[name] = append(bySection[name], key)
	}
	charts := d.summary(r)
	d.Sections = []section{{summary, p.with("run", "section", ""), len(charts), d.Section == summary}}
	for _, name := range sortedKeys(bySection) {
		d.Sections = append(d.Sections, section{name, p.with("run", "section", name), len(bySection[name]),
			d.Section == name})
	}
	switch {
	case d.Section == summary:
	case bySection[d.Section] == nil:
		return notFound("%s has no metrics of section %q", r.name, d.Section)
	default:
		charts = nil
		for _, key := range bySection[d.Section] {
			charts = append(charts, d.chart(r, key, key))
		}
	}
	for i := range charts {
		if len(charts[i].Series) > 0 {
			d.Charts = append(d.Charts, charts[i].view())
		}
	}
	return nil
}

// chart draws some metrics of a run.
func (d *runData) chart(r *run, title string, keys ...string) *chart {
	c := d.axes.chart(title)
	if len(keys) == 1 {
		c.CSV = link("csv", "run", d.Name, "metric", keys[0])
	}
	for _, key := range keys {
		points := curve(r.rows, key, c.X)
		if len(points) == 0 {
			continue
		}
		s := series{Name: key, Points: points, Dots: len(points) < 40 && !isTrain(key)}
		if isTrain(key) && !isSum(key) {
			s = d.trend(s)
		}
		c.Series = append(c.Series, s)
	}
	return c
}

// isTrain reports whether a metric is one of every step, which scatters.
func isTrain(key string) bool {
	section, _, _ := strings.Cut(key, "/")
	return slices.Contains([]string{"train", "loss", "offpolicy", "throughput", "time", "data"}, section)
}

// isSum reports whether a metric counts since the run began, which does not scatter.
func isSum(key string) bool { return strings.Contains(key, "/cum/") || key == "time/wall_clock_sec" }

// summary draws what matters most.
func (d *runData) summary(r *run) []*chart {
	rewards, failures := []string{"train/reward"}, []string{}
	for _, key := range metricsOf(r) {
		if strings.HasSuffix(key, "/reward") && key != "train/reward" {
			rewards = append(rewards, key)
		}
		if strings.HasSuffix(key, "/exception_rate") {
			failures = append(failures, key)
		}
	}
	list := []*chart{
		d.chart(r, "Reward", rewards...),
		d.chart(r, "Spread of rewards in a group", "train/reward_std_dev"),
		d.chart(r, "Loss", "loss/policy", "loss/total", "loss/sft", "loss/dpo"),
		d.chart(r, "Entropy, nats", "loss/entropy", "loss/entropy_full"),
		d.chart(r, "KL divergence, nats", "loss/kl_old_new", "loss/kl_ref"),
		d.chart(r, "Clipped tokens", "loss/clipped_fraction", "loss/corrected_fraction"),
		d.chart(r, "Gradient norm", "loss/grad_norm"),
		d.chart(r, "Gap between trainer and sampler, nats", "train/logprob_gap_max", "train/logprob_gap_mean"),
		d.chart(r, "Staleness, steps", "offpolicy/token_weighted_policy_age_steps", "offpolicy/policy_age_max_steps"),
		d.ratio(r, "Length, sampled tokens of a trajectory", "data/tokens_sampled", "data/trajectories"),
		d.timeChart(r),
		d.chart(r, "Throughput, tokens/s", "throughput/rollout_tok_per_s", "throughput/train_tok_per_s"),
		d.skips(r),
		d.chart(r, "Failed rollouts", failures...),
		d.chart(r, "Cost", "costs/total"),
		d.chart(r, "Memory, bytes", prefixed(r, "memory/")...),
	}
	return slices.DeleteFunc(list, func(c *chart) bool { return len(c.Series) == 0 })
}

// prefixed are the metrics whose names begin alike.
func prefixed(r *run, prefix string) []string {
	return slices.DeleteFunc(metricsOf(r), func(key string) bool { return !strings.HasPrefix(key, prefix) })
}

// ratio draws one metric over another.
func (d *runData) ratio(r *run, title, key, by string) *chart {
	c := d.axes.chart(title)
	divisor := map[float64]float64{}
	for _, p := range curve(r.rows, by, c.X) {
		divisor[p.X] = p.Y
	}
	var points []point
	for _, p := range curve(r.rows, key, c.X) {
		if n := divisor[p.X]; n > 0 {
			points = append(points, at(p.X, p.Y/n))
		}
	}
	if len(points) > 0 {
		c.Series = []series{{Name: key + " / " + by, Points: points}}
	}
	return c
}

// timeChart draws how the time of a step is divided.
func (d *runData) timeChart(r *run) *chart {
	rows := make([]art.HistoryRow, 0, len(r.rows))
	parts := []struct{ name, metric string }{
		{"rollouts", "time/rollout_s"}, {"judging", "time/judge_s"}, {"training", "time/train_s"},
	}
	const rest = "waiting and all else"
	for _, row := range r.rows {
		wall, ok := row.Metrics["time/step_wall_s"]
		if !ok {
			continue
		}
		m := maps.Clone(row.Metrics)
		m[rest] = wall
		for _, p := range parts {
			if seconds, ok := m[p.metric]; ok {
				m[p.name] = seconds
				m[rest] = max(0, m[rest]-seconds)
			}
		}
		rows = append(rows, art.HistoryRow{Split: row.Split, Step: row.Step, Metrics: m})
	}
	return d.stacked(rows, "Where the time goes, seconds of a step", "rollouts", "judging", "training", rest)
}

// skips draws what was not trained on. An update that does not log a reason has skipped nothing for it.
func (d *runData) skips(r *run) *chart {
	keys := prefixed(r, "data/skipped_")
	var rows []art.HistoryRow
	for _, row := range r.rows {
		if _, trained := row.Metrics["data/groups"]; !trained {
			continue
		}
		m := maps.Clone(row.Metrics)
		for _, key := range keys {
			m[key] += 0 // where there is none
		}
		rows = append(rows, art.HistoryRow{Split: row.Split, Step: row.Step, Metrics: m})
	}
	return d.stacked(rows, "Skipped groups and trajectories", keys...)
}

// stacked draws metrics of some rows on top of one another. One that a row lacks is 0 there.
func (d *runData) stacked(rows []art.HistoryRow, title string, keys ...string) *chart {
	c := d.axes.chart(title)
	c.Log, c.Area, c.Named = false, true, true
	base := map[float64]float64{} // by place
	values := map[string]map[float64]float64{}
	for _, key := range keys {
		values[key] = map[float64]float64{}
		for _, p := range curve(rows, key, c.X) {
			values[key][p.X], base[p.X] = p.Y, 0
		}
	}
	all := sortedKeys(base)
	for _, key := range keys {
		if len(values[key]) == 0 {
			continue
		}
		s := series{Name: strings.TrimPrefix(key, "data/skipped_")}
		for _, x := range all {
			low := base[x]
			base[x] += values[key][x]
			s.Points = append(s.Points, point{x, base[x], low, base[x]})
		}
		c.Series = append(c.Series, s)
	}
	return c
}

// skipped are the reasons why groups and trajectories of the newest update were not trained on.
func skipped(r *run) [][2]string {
	for _, row := range slices.Backward(r.rows) {
		if _, trained := row.Metrics["data/groups"]; !trained {
			continue
		}
		var list [][2]string
		for _, key := range sortedKeys(row.Metrics) {
			if reason, ok := strings.CutPrefix(key, "data/skipped_"); ok {
				list = append(list, [2]string{skipText(reason), number(row.Metrics[key])})
			}
		}
		return list
	}
	return nil
}

// skipText says why something is skipped.
func skipText(reason string) string {
	text := map[credit.Reason]string{
		credit.ReasonEmptyGroup: "the group is empty",
		credit.ReasonSingleton:  "one trajectory has nothing to compare it with",
		credit.ReasonNoVariance: "all rewards are equal", credit.ReasonBadReward: "a reward is not a usable number",
		credit.ReasonNoSamples: "the model has sampled nothing", credit.ReasonTooLong: "longer than the context",
		credit.ReasonBadSample: "its sample is inconsistent", credit.ReasonZeroAdvantage: "its reward equals the baseline",
		credit.ReasonTruncated: "all replies hit the limit of tokens", credit.ReasonNotBinary: "rewards are not 0 and 1",
		credit.ReasonSmallGroup: "fewer trajectories than K",
		credit.ReasonNotFinite:  "its loss or gradient is not a finite number",
	}[credit.Reason(reason)]
	return cmp.Or(text, reason)
}

// csv is every value of one metric of a run, or of all.
func (h *Handler) csv(r *http.Request) (name, text string, err error) {
	p := paramsOf(r)
	found, err := h.store.find(p.Get("run"))
	if err != nil {
		return "", "", err
	}
	keys := metricsOf(found)
	if key := p.Get("metric"); key != "" {
		if !slices.Contains(keys, key) {
			return "", "", notFound("%s has no metric %q", found.name, key)
		}
		keys = []string{key}
	}
	var b strings.Builder
	w := csv.NewWriter(&b)
	_ = w.Write(append([]string{"split", "step"}, keys...)) // a strings.Builder has no errors
	for _, row := range found.rows {
		line, any := []string{row.Split, strconv.Itoa(row.Step)}, false
		for _, key := range keys {
			value, ok := row.Metrics[key]
			cell := ""
			if ok {
				cell, any = strconv.FormatFloat(value, 'g', -1, 64), true
			}
			line = append(line, cell)
		}
		if any {
			_ = w.Write(line)
		}
	}
	w.Flush()
	return "metrics.csv", b.String(), nil
}

// sortedKeys are the keys of a map, in order.
func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
