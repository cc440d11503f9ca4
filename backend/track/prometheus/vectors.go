package prometheus

import "github.com/prometheus/client_golang/prometheus"

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

// all returns the metrics.
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
