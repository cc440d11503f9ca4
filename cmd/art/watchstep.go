package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/goart-dev/art"
)

// newestStep says how the time of the newest training was spent, and what was not trained on; "" before the first.
func newestStep(rows []art.HistoryRow) string {
	for _, row := range slices.Backward(rows) {
		wall := row.Metrics["time/step_wall_s"]
		if row.Split == "train" && wall > 0 {
			return timeText(row.Metrics, wall) + skipText(row.Metrics)
		}
	}
	return ""
}

// timeText divides the seconds of a step.
func timeText(metrics map[string]float64, wall float64) string {
	text := fmt.Sprintf("step took %v:", time.Duration(wall*float64(time.Second)).Round(10*time.Millisecond))
	rest := wall
	for _, part := range [][2]string{
		{"rollouts", "time/rollout_s"}, {"judging", "time/judge_s"}, {"training", "time/train_s"},
	} {
		if seconds, ok := metrics[part[1]]; ok {
			rest -= seconds
			text += fmt.Sprintf(" %s %.0f %%,", part[0], 100*seconds/wall)
		}
	}
	return text + fmt.Sprintf(" waiting and all else %.0f %%\n", 100*max(0, rest)/wall)
}

// skipText lists the reasons of groups and trajectories that were left out; "" when none was.
func skipText(metrics map[string]float64) string {
	var list []string
	for _, key := range slices.Sorted(maps.Keys(metrics)) {
		if reason, ok := strings.CutPrefix(key, "data/skipped_"); ok && metrics[key] > 0 {
			list = append(list, fmt.Sprintf("%s %.0f", printable(reason), metrics[key]))
		}
	}
	if len(list) == 0 {
		return ""
	}
	return "not trained on: " + strings.Join(list, ", ") + "\n"
}
