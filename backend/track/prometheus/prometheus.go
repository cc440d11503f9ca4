// Package prometheus shows trainings, rollouts and the newest metrics of runs to Prometheus. A [Tracker] is a collector
// for any registry, such as that of a server's metrics:
//
//	watch := prometheus.New(nil)
//	registry.MustRegister(watch)
//	model := art.NewModel("player", &art.ModelOptions{Events: watch.Events()})
//	groups, err := art.GatherGroups(ctx, scenarios, play, &art.GatherOptions{Events: watch.Events()})
//
// By the label model_name there are
//
//   - art_train_step: the newest policy step;
//   - art_trainings_total by outcome, ok or error, and art_optimizer_steps_total;
//   - art_skipped_total by reason: groups and trajectories that were not trained on;
//   - art_tokens_total by kind: sampled, trained or computed;
//   - art_train_duration_seconds: a histogram;
//   - art_reward, art_reward_std_dev and art_exception_rate by split: of the newest row;
//   - art_loss by kind, art_entropy, art_kl, art_grad_norm, art_learning_rate, art_logprob_gap_max,
//     art_policy_lag_steps: of the newest training;
//   - art_metric by name: every other metric of a row, the newest value.
//
// Of all gathers there are art_rollouts_total by outcome, art_rollouts_inflight and art_rollout_duration_seconds. And
// art_exporter_dropped_total by target is what other trackers have dropped, see [Options].Exporters. No label has a
// step, a scenario or a text.
package prometheus

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/goart-dev/art"
)

// Options of [New]. Zero values are the defaults.
type Options struct {
	// Exporters are other trackers, by a name for each. What they have dropped is counted.
	Exporters map[string]Exporter
	// MaxNames bounds the label name of art_metric. Further names are left out. Default 500.
	MaxNames int
}

// Exporter is a tracker that may drop something: those of package wandb, mlflow, tensorboard and otel.
type Exporter interface{ Dropped() int }

// Tracker counts. It is a [prometheus.Collector]. Its callbacks take microseconds, and nothing waits.
type Tracker struct {
	vectors
	exporters map[string]Exporter
	maxNames  int

	mu       sync.Mutex
	inflight map[uint64]int // rollouts of each gather
	names    map[string]bool
}

var _ prometheus.Collector = (*Tracker)(nil)

// New returns a tracker in which nothing has been counted. opts may be nil.
func New(opts *Options) *Tracker {
	t := &Tracker{vectors: newVectors(), maxNames: 500, inflight: map[uint64]int{}, names: map[string]bool{}}
	if opts != nil {
		t.exporters = maps.Clone(opts.Exporters)
		if opts.MaxNames > 0 {
			t.maxNames = opts.MaxNames
		}
	}
	return t
}

// Describe implements [prometheus.Collector].
func (t *Tracker) Describe(c chan<- *prometheus.Desc) {
	for _, v := range t.all() {
		v.Describe(c)
	}
	c <- t.dropped
}

// Collect implements [prometheus.Collector].
func (t *Tracker) Collect(c chan<- prometheus.Metric) {
	for _, v := range t.all() {
		v.Collect(c)
	}
	for _, name := range slices.Sorted(maps.Keys(t.exporters)) {
		n := float64(t.exporters[name].Dropped())
		c <- prometheus.MustNewConstMetric(t.dropped, prometheus.CounterValue, n, name)
	}
}

// Events returns the callbacks of the tracker, for [art.ModelOptions] and [art.GatherOptions].
func (t *Tracker) Events() *art.Events {
	return &art.Events{
		RolloutStart: t.rolloutStart, RolloutEnd: t.rolloutEnd, GatherEnd: t.gatherEnd,
		OptimizerStep: func(e art.OptimizerStep) { t.updates.WithLabelValues(e.Model.Name()).Inc() },
		Skip:          func(e art.SkipEvent) { t.skipped.WithLabelValues(e.Model.Name(), string(e.Reason)).Inc() },
		Commit:        t.commit,
		TrainError:    func(e art.TrainError) { t.trainings.WithLabelValues(e.Model.Name(), "error").Inc() },
		Log:           func(e art.LogEvent) { t.row(e.Model.Name(), e.Split, e.Metrics) },
	}
}

func (t *Tracker) rolloutStart(e art.RolloutStart) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.inflight[e.Gather]++
	t.running.Inc()
}

func (t *Tracker) rolloutEnd(e art.RolloutEnd) {
	outcome := "ok"
	if e.Failure != nil {
		outcome = "failed"
	}
	t.rollouts.WithLabelValues(outcome).Inc()
	t.rolloutSeconds.Observe(e.Duration.Seconds())
	t.mu.Lock()
	defer t.mu.Unlock()
	t.inflight[e.Gather]--
	t.running.Dec()
}

// gatherEnd takes out the rollouts that were cancelled, which have no end of their own.
func (t *Tracker) gatherEnd(e art.GatherEnd) {
	t.mu.Lock()
	defer t.mu.Unlock()
	cancelled := t.inflight[e.Gather]
	delete(t.inflight, e.Gather)
	t.running.Sub(float64(cancelled))
	t.rollouts.WithLabelValues("cancelled").Add(float64(cancelled))
}

func (t *Tracker) commit(e art.Commit) {
	model := e.Model.Name()
	t.trainings.WithLabelValues(model, "ok").Inc()
	t.step.WithLabelValues(model).Set(float64(e.Result.Step))
	t.trainSeconds.WithLabelValues(model).Observe(e.Duration.Seconds())
	for _, kind := range []string{"sampled", "trained", "computed"} {
		if n := e.Result.Metrics["data/tokens_"+kind]; n > 0 {
			t.tokens.WithLabelValues(model, kind).Add(n)
		}
	}
	metrics := maps.Clone(e.Result.Metrics)
	// The examples of supervised training have no rewards. It has no loss when all updates were skipped, and never groups.
	_, loss := metrics["loss/sft"]
	_, groups := metrics["data/groups"]
	if supervised := loss || metrics["data/updates_skipped"] > 0 && !groups; !supervised {
		for key, x := range art.Metrics(e.Groups...) {
			metrics["train/"+key] = x
		}
	}
	t.row(model, "train", metrics)
}

// row sets the gauges of what is in a row.
func (t *Tracker) row(model, split string, metrics map[string]float64) {
	for key, x := range metrics {
		inSplit, ofSplit := strings.CutPrefix(key, split+"/")
		switch gauge := t.bySplit[inSplit]; {
		case ofSplit && gauge != nil:
			gauge.WithLabelValues(model, split).Set(x)
		case t.byKey[key] != nil:
			t.byKey[key].WithLabelValues(model).Set(x)
		case key == "loss/policy", key == "loss/sft":
			t.loss.WithLabelValues(model, strings.TrimPrefix(key, "loss/")).Set(x)
		case strings.HasPrefix(key, "data/skipped_"), strings.HasPrefix(key, "data/tokens_"),
			strings.Contains(key, "/cum/"): // counters
		case t.named(key):
			t.other.WithLabelValues(model, key).Set(x)
		}
	}
}

// named reports whether a name may be a label: it is known, or there is room.
func (t *Tracker) named(key string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.names[key] && len(t.names) < t.maxNames {
		t.names[key] = true
	}
	return t.names[key]
}

const label = "model_name"

// vectors are the metrics.
type vectors struct {
	step, loss, other           *prometheus.GaugeVec
	bySplit, byKey              map[string]*prometheus.GaugeVec
	trainings, updates, skipped *prometheus.CounterVec
	tokens, rollouts            *prometheus.CounterVec
	running                     prometheus.Gauge
	trainSeconds                *prometheus.HistogramVec
	rolloutSeconds              prometheus.Histogram
	dropped                     *prometheus.Desc
}

// newVectors describes the metrics.
func newVectors() vectors {
	seconds := prometheus.ExponentialBuckets(0.05, 2, 16) // up to 27 minutes
	return vectors{
		step:  gauge("art_train_step", "The newest policy step."),
		loss:  gauge("art_loss", "Loss of the newest training.", "kind"),
		other: gauge("art_metric", "Newest value of a metric of the history.", "name"),
		bySplit: map[string]*prometheus.GaugeVec{
			"reward":         gauge("art_reward", "Mean reward of the newest row.", "split"),
			"reward_std_dev": gauge("art_reward_std_dev", "Mean standard deviation of rewards within groups.", "split"),
			"exception_rate": gauge("art_exception_rate", "Share of rollouts that failed.", "split"),
		},
		byKey: map[string]*prometheus.GaugeVec{
			"loss/entropy":          gauge("art_entropy", "Entropy of the newest training, in nats."),
			"loss/kl_old_new":       gauge("art_kl", "KL(old, new) of the newest training, in nats."),
			"loss/grad_norm":        gauge("art_grad_norm", "Norm of the gradient before clipping."),
			"loss/learning_rate":    gauge("art_learning_rate", "Learning rate of the newest training."),
			"train/logprob_gap_max": gauge("art_logprob_gap_max", "Largest difference of trainer and sampler, in nats."),
			"offpolicy/token_weighted_policy_age_steps": gauge(
				"art_policy_lag_steps", "Mean age of trained tokens, in steps."),
		},
		trainings: counter("art_trainings_total", "Trainings that have ended.", label, "outcome"),
		updates:   counter("art_optimizer_steps_total", "Optimizer steps.", label),
		skipped:   counter("art_skipped_total", "Groups and trajectories that were not trained on.", label, "reason"),
		tokens:    counter("art_tokens_total", "Tokens of committed trainings.", label, "kind"),
		rollouts:  counter("art_rollouts_total", "Rollouts that have ended.", "outcome"),
		running: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "art_rollouts_inflight", Help: "Rollouts that run.",
		}),
		trainSeconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "art_train_duration_seconds", Help: "Duration of trainings.", Buckets: seconds,
		}, []string{label}),
		rolloutSeconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "art_rollout_duration_seconds", Help: "Duration of rollouts, retries included.", Buckets: seconds,
		}),
		dropped: prometheus.NewDesc(
			"art_exporter_dropped_total", "Events that a tracker has dropped.", []string{"target"}, nil),
	}
}

func gauge(name, help string, labels ...string) *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, append([]string{label}, labels...))
}

func counter(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

func (v *vectors) all() []prometheus.Collector {
	out := []prometheus.Collector{
		v.step, v.loss, v.other, v.trainings, v.updates, v.skipped, v.tokens, v.rollouts, v.running, v.trainSeconds,
		v.rolloutSeconds,
	}
	for _, g := range v.bySplit {
		out = append(out, g)
	}
	for _, g := range v.byKey {
		out = append(out, g)
	}
	return out
}
