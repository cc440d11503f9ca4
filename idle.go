package art

import (
	"cmp"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/goart-dev/art/grpo/credit"
)

// idle counts consecutive steps that taught nothing.
type idle struct {
	mu   sync.Mutex
	row  int
	told bool // of the first one
}

// count notes a step, and returns how many have taught nothing in a row when that is worth a warning, and 0 otherwise.
func (c *idle) count(taught bool) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if taught {
		c.row = 0
		return 0
	}
	c.row++
	const persistent = 5 // as many in a row are warned of again, and whenever their number has doubled
	doublings := c.row / persistent
	again := c.row%persistent == 0 && doublings&(doublings-1) == 0
	if c.told && !again {
		return 0
	}
	c.told = true
	return c.row
}

// warnIdle warns of a step that left the weights as they were: of the first, and when they persist.
func (m *Model) warnIdle(result *TrainResult) {
	trainable, known := result.Metrics["data/groups_trainable"]
	updates, counted := result.Metrics["data/updates"]
	row := m.idle.count(!(known && trainable == 0 || counted && updates == 0))
	if row == 0 {
		return
	}
	what, do := reasonsOf(result.Skipped)
	cmp.Or(m.opts.Logger, slog.Default()).Warn("the step taught nothing, the weights are those before",
		"model", m.name, "step", result.Step, "in_a_row", row, "skipped", what, "do", do)
}

// What a skip is of, one and several.
const (
	ofGroup      = "group groups"
	ofTrajectory = "trajectory trajectories"
)

// reasonsOf counts the reasons of skips, the most frequent first, and says what to do about that one. Reasons of whole
// groups come before those of trajectories, which a group may have lost without being skipped.
func reasonsOf(skips []Skip) (what, do string) {
	type reason struct {
		of    string
		label credit.Reason
	}
	counts := map[reason]int{}
	for _, s := range skips {
		of := ofTrajectory
		if s.Trajectory < 0 {
			of = ofGroup
		}
		counts[reason{of, s.Reason}]++
	}
	list := slices.SortedFunc(maps.Keys(counts), func(a, b reason) int {
		return cmp.Or(cmp.Compare(a.of, b.of), counts[b]-counts[a], cmp.Compare(a.label, b.label))
	})
	var parts []string
	for _, r := range list {
		forms := strings.Fields(r.of)
		parts = append(parts, fmt.Sprintf("%d %s: %s", counts[r], forms[min(counts[r], 2)-1], r.label))
	}
	if len(list) == 0 {
		return "", "look at TrainResult.Metrics"
	}
	return strings.Join(parts, ", "), cmp.Or(remedies[list[0].label], "look at TrainResult.Skipped")
}

// remedies say what to do where nothing is trained on for a reason.
var remedies = map[credit.Reason]string{
	credit.ReasonEmptyGroup: "look at the errors of the rollouts, in TrajectoryGroup.Failures",
	credit.ReasonSingleton:  "gather two trajectories of each scenario or more, by GatherOptions.GroupSize",
	credit.ReasonNoVariance: "unless the task is solved, make scenarios of more even difficulty, give partial credit, " +
		"raise the temperature or the group size, or let a judge rank ties",
	credit.ReasonBadReward: "make rewards finite numbers",
	credit.ReasonNoSamples: "let this model answer in the rollouts, by Model.Chat, or by Model.HTTPClient within " +
		"Record; replies that were written by hand, or by a frozen or hosted model, have no sample",
	credit.ReasonTooLong:       "raise the Context of the backend, or end rollouts earlier",
	credit.ReasonBadSample:     "look at TrainResult.Skipped: samples are trained on as the backend returned them",
	credit.ReasonZeroAdvantage: "look at TrainConfig.Objective and its baseline: all advantages are 0",
	credit.ReasonTruncated:     "raise MaxTokens, or unset MaskTruncated",
	credit.ReasonNotBinary:     "give rewards of 0 and 1, or use another Objective",
	credit.ReasonSmallGroup:    "gather TrainConfig.K trajectories of each scenario or more",
	credit.ReasonStale:         "raise PipelineOptions.MaxStaleness",
	credit.ReasonNotFinite: "make rewards smaller, or go back with Model.Restore if earlier steps made the adapter too " +
		"large",
}
