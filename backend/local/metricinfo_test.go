package local

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/hosted"
	"github.com/goart-dev/art/backend/rundir"
	"github.com/goart-dev/art/grpo/credit"
)

var update = flag.Bool("update", false, "write docs/metrics.md")

// TestMetrics_Document: docs/metrics.md is what the code says. To write it: go test ./backend/local -run
// Metrics_Document -update
func TestMetrics_Document(t *testing.T) {
	var b bytes.Buffer
	b.WriteString(metricsHead)
	table(&b, rundir.LogMetrics())
	b.WriteString(metricsMiddle)
	table(&b, Metrics())
	b.WriteString(metricsPipeline)
	table(&b, rundir.PipelineMetrics())
	b.WriteString(metricsHosted)
	table(&b, hosted.Metrics())
	path := filepath.Join("..", "..", "docs", "metrics.md")
	if *update {
		require.NoError(t, os.WriteFile(path, b.Bytes(), 0o644))
	}
	committed, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, b.String(), string(committed), "run this test with -update")
}

const metricsHead = `# Metrics

<!-- Generated: go test ./backend/local -run Metrics_Document -update -->

A row of the history belongs to a split and a step k. Row k of split "train" holds what policy k earned and the update
from k to k+1; a row of another split is a measurement of policy k. Sections are those of ART, so that its dashboards can
be used; [coming from ART](coming-from-art.md) has its names beside these.

## What Log stores of groups

These are computed of the groups that are given to ` + "`Model.Log`" + `, and of those that a step is trained on.

`

const metricsMiddle = `
## What a training stores

Where "sum" is marked, the sum over the steps of the run is stored too: ` + "`data/cum/groups`" + ` beside ` + "`data/groups`" + `.
` + "`time/wall_clock_sec`" + ` of every row is the time since the run began.

`

const metricsPipeline = `
## What a pipeline stores

A [pipeline](pipeline.md) stores these with each step, beside the above.

`

const metricsHosted = `
## What a model behind an API stores

Every row that is logged of such a model has what it used since its run began, in earlier processes too.

`

// table writes metrics as a table.
func table(b *bytes.Buffer, list []rundir.MetricInfo) {
	b.WriteString("| metric | how it is computed | unit | healthy | |\n|---|---|---|---|---|\n")
	for _, m := range list {
		sum := ""
		if m.Sum {
			sum = "sum"
		}
		fmt.Fprintf(b, "| `%s` | %s | %s | %s | %s |\n", m.Name, strings.ReplaceAll(m.Formula, "|", "\\|"), m.Unit, m.Healthy,
			sum)
	}
}

// described returns the description of a stored metric.
func described(name string) (string, bool) {
	for _, m := range slices.Concat(rundir.LogMetrics(), Metrics(), rundir.PipelineMetrics()) {
		pattern := strings.ReplaceAll(m.Name, "<split>", "train")
		prefix, _, isPattern := strings.Cut(pattern, "<key>")
		if pattern == name || isPattern && prefix != "train/" && strings.HasPrefix(name, prefix) || m.Sum &&
			cumulative(m.Name) == name {
			return m.Name, true
		}
	}
	return "", name == "time/wall_clock_sec"
}

// TestMetrics_Complete: every metric of a run is described, and every one that is described is stored by some training.
func TestMetrics_Complete(t *testing.T) {
	b := open(t, t.TempDir())
	m := art.NewModel("m", nil)
	require.NoError(t, m.Register(t.Context(), b))
	groups, err := art.GatherGroups(t.Context(), []string{"7+5="}, twoTurns(m), &art.GatherOptions{GroupSize: 4,
		After: func(_ context.Context, g *art.TrajectoryGroup) ([]*art.TrajectoryGroup, error) {
			time.Sleep(10 * time.Millisecond) // a judge
			return []*art.TrajectoryGroup{g}, nil
		}})
	require.NoError(t, err)
	flat := groups[0].Clone()
	for _, trajectory := range flat.Trajectories {
		trajectory.Reward = 1
	}
	flat.Metrics = map[string]float64{"judged": 1}
	for range 2 { // on policy, and off policy
		_, err = m.Train(t.Context(), append(groups, flat), &art.TrainConfig{LearningRate: 1e-3})
		require.NoError(t, err)
	}
	_, err = m.Train(t.Context(), append(groups, flat), &art.TrainConfig{
		LearningRate: 1e-3, Correction: credit.Correction{Method: credit.CorrectTruncate}, KL: credit.KL{Coef: 0.1},
		EntropyBonus: 0.1, MaskTruncated: true, Overlong: credit.Overlong{Longest: 100},
	})
	require.NoError(t, err)
	lesson := art.NewTrajectory(art.User("1+1="), art.Assistant("2"))
	_, err = m.TrainSFT(t.Context(), []*art.Trajectory{lesson}, &art.SFTConfig{Validation: []*art.Trajectory{lesson}})
	require.NoError(t, err)
	other := art.NewTrajectory(art.User("1+1="), art.Assistant("3"))
	_, err = m.TrainDPO(t.Context(), []art.Preference{{Chosen: lesson, Rejected: other}}, nil)
	require.NoError(t, err)
	_, err = m.Restore(t.Context(), 1)
	require.NoError(t, err)
	rows, err := b.History(t.Context(), m)
	require.NoError(t, err)
	var seen []string
	for _, row := range rows {
		for key := range row.Metrics {
			name, ok := described(key)
			require.True(t, ok, "%s is not described", key)
			seen = append(seen, name)
		}
	}
	absent := []string{"<split>/nan_values", "<split>/<key>", "device/programs", "device/compile_s"} // of XLA alone
	for _, m := range append(rundir.LogMetrics(), Metrics()...) {
		if !slices.Contains(seen, m.Name) {
			require.Contains(t, absent, m.Name, "%s is described, and never stored", m.Name)
		}
	}
	last := rows[len(rows)-2].Metrics
	require.Equal(t, 7.0, last["data/cum/groups"], "two groups of three trainings, and a pair")
	require.Equal(t, rows[0].Metrics["time/train_s"]+rows[1].Metrics["time/train_s"], rows[1].Metrics["time/cum/train_s"])
}
