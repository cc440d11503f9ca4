package local

import (
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/graphx"
	"github.com/goart-dev/art/internal/machine"
	"github.com/goart-dev/art/internal/trainer"
	"github.com/goart-dev/art/internal/trainset"
)

// reportMetrics are the metrics of the loss and of the trainer. Those of the loss are of updates that were not skipped,
// and left out when all were.
func reportMetrics(r trainer.Report) map[string]float64 {
	metrics := map[string]float64{}
	if maps.Copy(metrics, r.Metrics); r.Updates > 0 {
		metrics["loss/grad_norm"] = r.Norm
	}
	addDifference(metrics, "train/logprob_gap", r.Gap)
	addDifference(metrics, "offpolicy/logprob_diff", r.OffPolicy)
	addDifference(metrics, "train/logprob_change", r.Change)
	metrics["data/updates"] = float64(r.Updates)
	metrics["data/updates_skipped"] = float64(r.Skipped)
	metrics["data/tokens_computed"] = float64(r.Computed)
	return metrics
}

// addDifference adds the mean and the maximum of a difference, unless it has no tokens.
func addDifference(metrics map[string]float64, name string, d trainer.Difference) {
	if d.Tokens > 0 {
		metrics[name+"_mean"], metrics[name+"_max"] = d.Mean(), d.Max
	}
}

// addMemory adds what the process and the device take after a training.
func (b *Backend) addMemory(metrics map[string]float64) {
	if now, peak, known := machine.Resident(os.DirFS("/")); known {
		metrics["memory/resident_bytes"], metrics["memory/resident_max_bytes"] = float64(now), float64(peak)
	}
	if programs, took := graphx.Compiled(b.device); programs > 0 {
		metrics["device/programs"], metrics["device/compile_s"] = float64(programs), took.Seconds()
	}
	if b.memory.Held == nil {
		return
	}
	if held := b.memory.Held(); held > 0 {
		metrics["memory/device_work_bytes"] = float64(held)
	}
}

// addTimes adds what the step on groups took, and how fast it was. start is that of the training call.
func (e *entry) addTimes(metrics map[string]float64, groups []*art.TrajectoryGroup, start time.Time) {
	rollouts, judging := trainset.Times(groups, e.committed, start)
	for key, took := range map[string]time.Duration{"time/rollout_s": rollouts, "time/judge_s": judging} {
		if took > 0 {
			metrics[key] = took.Seconds()
		}
	}
	now := time.Now()
	train, wall := now.Sub(start).Seconds(), now.Sub(e.committed).Seconds()
	metrics["time/train_s"], metrics["time/step_wall_s"] = train, wall
	if tokens := metrics["data/tokens_computed"]; tokens > 0 && train > 0 {
		metrics["throughput/train_tok_per_s"] = tokens / train
	}
	if tokens := metrics["data/tokens_sampled"]; tokens > 0 && wall > train {
		metrics["throughput/rollout_tok_per_s"] = tokens / (wall - train)
	}
}

// addSums adds, for each metric that is summed, the sum over the steps up to this one: "data/cum/groups".
func (e *entry) addSums(metrics map[string]float64) error {
	rows, err := e.run.History()
	if err != nil {
		return err
	}
	for _, info := range Metrics() {
		value, ok := metrics[info.Name]
		if !info.Sum {
			continue
		}
		key := cumulative(info.Name)
		before, had := newest(rows, key)
		if ok || had {
			metrics[key] = before + value
		}
	}
	return nil
}

// cumulative is the name of a sum over the steps of a run.
func cumulative(name string) string {
	section, key, _ := strings.Cut(name, "/")
	return section + "/cum/" + key
}

// newest returns a metric of the newest row that has it.
func newest(rows []art.HistoryRow, key string) (value float64, ok bool) {
	for _, row := range slices.Backward(rows) {
		if value, ok = row.Metrics[key]; ok {
			return value, true
		}
	}
	return 0, false
}
