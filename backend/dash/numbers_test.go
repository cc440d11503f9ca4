package dash

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/rundir"
	"github.com/goart-dev/art/grpo/credit"
)

func line(ys ...float64) []point {
	var list []point
	for i, y := range ys {
		list = append(list, at(float64(i), y))
	}
	return list
}

func ys(points []point) (list []float64) {
	for _, p := range points {
		list = append(list, p.Y)
	}
	return list
}

// TestSmooth: a constant stays, the first value is not drawn to 0, and no value leaves the range.
func TestSmooth(t *testing.T) {
	for _, y := range ys(smooth(line(3, 3, 3, 3), 0.9)) {
		require.InDelta(t, 3, y, 1e-12)
	}
	require.InDeltaSlice(t, []float64{1, 5.0 / 3}, ys(smooth(line(1, 2), 0.5)), 1e-12)
	require.Equal(t, []float64{1, 2}, ys(smooth(line(1, 2), 0)))
	require.Len(t, smooth(line(1, math.NaN(), 2), 0.5), 2)
}

func TestOverSeeds(t *testing.T) {
	band := overSeeds([][]point{line(0, 1, 2), line(2, 3, 4)})
	require.Equal(t, []point{{0, 1, 0, 2}, {1, 2, 1, 3}, {2, 3, 2, 4}}, band)
	// The second curve has other places, begins later and ends earlier: only 1 is within both.
	band = overSeeds([][]point{line(0, 1, 2), {at(0.5, 2), at(1.5, 4)}})
	require.Equal(t, []point{{1, 2, 1, 3}}, band)
	require.Empty(t, overSeeds([][]point{{}, {}}))
}

func TestExperiment(t *testing.T) {
	for name, want := range map[string]string{"games/player-1": "games/player", "p/run_seed2": "p/run", "p/a": "p/a",
		"p/7": "p/", "p/player-2-ruler": "p/player-2-ruler", "12": "12"} {
		require.Equal(t, want, experiment(name), name)
	}
}

// TestThin keeps the extremes and the order.
func TestThin(t *testing.T) {
	src := rand.New(rand.NewPCG(1, 2))
	var points []point
	for i := range 10_000 {
		points = append(points, at(float64(i), src.NormFloat64()))
	}
	thinned := thin(points, false)
	require.LessOrEqual(t, len(thinned), maxPoints)
	require.Equal(t, slices.Max(ys(points)), slices.Max(ys(thinned)))
	require.Equal(t, slices.Min(ys(points)), slices.Min(ys(thinned)))
	require.True(t, slices.IsSortedFunc(thinned, func(a, b point) int { return int(a.X - b.X) }))
	require.Len(t, thin(points[:maxPoints], false), maxPoints)
}

// TestAxis_Ticks: whatever the range, ticks are few, within it and in order.
func TestAxis_Ticks(t *testing.T) {
	src := rand.New(rand.NewPCG(3, 4))
	for range 3000 {
		size := math.Pow(10, 40*src.Float64()-20)
		a := axis{low: src.NormFloat64() * size, kind: []xAxis{"", xStep, xTime, xTokens}[src.IntN(4)]}
		a.high = a.low + src.ExpFloat64()*size*[]float64{0, 1e-9, 1, 1e6}[src.IntN(4)]
		if a.log = src.IntN(3) == 0; a.log {
			a.low, a.high = math.Abs(a.low)+size*1e-6, math.Abs(a.low)+math.Abs(a.high)*10+size
		}
		a.widen(src.IntN(2) == 0)
		require.Less(t, a.low, a.high)
		values := a.rounds(5)
		require.LessOrEqual(t, len(values), 20)
		require.True(t, slices.IsSorted(values))
		for _, v := range values {
			slack := 1e-9 * max(math.Abs(a.low), math.Abs(a.high))
			require.True(t, v >= a.low-slack && v <= a.high+slack, "%v in %+v", v, a)
		}
	}
}

// TestAxis_VerticalTicks: no vertical axis has fewer than three ticks, which would say little about the scale.
func TestAxis_VerticalTicks(t *testing.T) {
	src := rand.New(rand.NewPCG(7, 8))
	for range 3000 {
		a := axis{low: src.NormFloat64()}
		a.high = a.low + src.ExpFloat64()
		a.widen(true)
		n := len(a.ticks(4))
		require.GreaterOrEqual(t, n, 3, "%+v", a)
		require.LessOrEqual(t, n, 9, "%+v", a)
	}
}

// TestSkips: an update that skipped nothing is 0 on the chart, not a point that is missing.
func TestSkips(t *testing.T) {
	const reason = "data/skipped_no_variance"
	r := &run{rows: []art.HistoryRow{
		{Split: "train", Step: 0, Metrics: map[string]float64{"data/groups": 4}},
		{Split: "train", Step: 1, Metrics: map[string]float64{"data/groups": 4, reason: 2}},
		{Split: "val", Step: 2, Metrics: map[string]float64{"val/reward": 1}},
		{Split: "train", Step: 2, Metrics: map[string]float64{"data/groups": 4}},
	}}
	c := (&runData{axes: axes{X: string(xStep)}}).skips(r)
	require.Len(t, c.Series, 1)
	require.Equal(t, []float64{0, 2, 0}, ys(c.Series[0].Points))
	require.NotContains(t, r.rows[0].Metrics, reason)
}

// TestDivide: a part that takes no time is left out, as training is on a split that is not trained on.
func TestDivide(t *testing.T) {
	list := []rundir.Entry{{Start: time.Unix(100, 0), Duration: time.Second}}
	require.Len(t, divide(list, nil), 1)
	parts := divide(list, map[string]float64{"time/step_wall_s": 4, "time/train_s": 2, "time/judge_s": 0})
	require.Equal(t, []string{"rollouts", "training", "evaluating and waiting"},
		[]string{parts[0].Name, parts[1].Name, parts[2].Name})
	require.Equal(t, "50 %", parts[1].Share)
}

// TestChart_NotFinite: what cannot be drawn is left out, and what a logarithmic axis cannot show is counted.
func TestChart_NotFinite(t *testing.T) {
	c := chart{Title: "loss", X: xStep, Log: true,
		Series: []series{{Name: "a", Points: line(1, 0, -1, math.NaN(), math.Inf(1), 100)}}}
	v := c.view()
	require.Contains(t, v.Note, "2 values")
	require.False(t, v.Empty)
	require.NotContains(t, v.Series[0].Line, "NaN")
	require.Equal(t, []string{"5", "100"}, v.Table.Rows[0])
	empty := chart{Title: "x", X: xStep, Series: []series{{Points: line(math.NaN())}}}
	require.True(t, empty.view().Empty)
}

// TestChart_LogX: a logarithmic horizontal axis has the same distance from 1 to 10 as from 10 to 100, leaves out what
// is at 0 and says so, and keeps the first steps of a long run.
func TestChart_LogX(t *testing.T) {
	values := make([]float64, 10_001)
	for i := range values {
		values[i] = float64(i % 7)
	}
	values[10_000] = 9 // the highest of its part, so that it stays
	c := chart{Title: "loss", X: xStep, LogX: true, Series: []series{{Name: "a", Points: line(values...)}}}
	v := c.view()
	require.Equal(t, "What is at step 0 is left out: a logarithmic axis has no place for it.", v.Note)
	require.Equal(t, []tick{
		{"0.00%", "1"}, {"25.00%", "10"}, {"50.00%", "100"}, {"75.00%", "1000"}, {"100.00%", "10000"},
	}, v.XTicks)
	points := c.Series[0].Points
	require.LessOrEqual(t, len(points), maxPoints)
	for i := range 10 {
		require.Equal(t, float64(i+1), points[i].X)
	}
	require.Equal(t, 10_000.0, points[len(points)-1].X)
	require.True(t, slices.IsSortedFunc(points, func(a, b point) int { return cmp.Compare(a.X, b.X) }))

	alone := chart{Title: "loss", X: xTime, LogX: true, Series: []series{{Points: line(3)}}}
	empty := alone.view()
	require.True(t, empty.Empty)
	require.Contains(t, empty.Note, "time since the start 0s")
}

// TestAdvantages has numbers computed by hand: mean 1, population variance 1.5.
func TestAdvantages(t *testing.T) {
	rewards := []float64{0, 0, 1, 3}
	std := math.Sqrt(1.5) + 1e-6
	got, reason := weighing{Tolerance: 1e-12}.advantages(rewards)
	require.Empty(t, reason)
	require.InDeltaSlice(t, []float64{-1 / std, -1 / std, 0, 2 / std}, got, 1e-12)
	got, _ = weighing{LeaveOne: true, Unscaled: true}.advantages(rewards)
	require.InDeltaSlice(t, []float64{-4.0 / 3, -4.0 / 3, 0, 8.0 / 3}, got, 1e-12)
	for want, rewards := range map[credit.Reason][]float64{
		credit.ReasonEmptyGroup: {}, credit.ReasonSingleton: {1}, credit.ReasonNoVariance: {0.1, 0.1, 0.1},
		credit.ReasonBadReward: {1, math.NaN()},
	} {
		_, reason := weighing{Tolerance: 1e-12}.advantages(rewards)
		require.Equal(t, want, reason)
	}
}

// TestRankScores: the sum depends on the number only, a better rank never scores less, and equal ranks score the same.
func TestRankScores(t *testing.T) {
	src := rand.New(rand.NewPCG(5, 6))
	for range 500 {
		ranks := make([]float64, 2+src.IntN(8))
		for i := range ranks {
			ranks[i] = float64(1 + src.IntN(len(ranks)))
		}
		scores, err := rankScores(ranks)
		require.NoError(t, err)
		sum := 0.0
		for i := range scores {
			sum += scores[i]
			for k := range scores {
				require.Equal(t, ranks[i] < ranks[k], scores[i] > scores[k])
			}
		}
		require.InDelta(t, float64(len(ranks))/2, sum, 1e-9)
	}
	_, err := rankScores([]float64{1, math.NaN()})
	require.Error(t, err)
}

// TestRunning: overlapping rollouts count once, pauses not at all.
func TestRunning(t *testing.T) {
	begin := time.Unix(100, 0)
	entry := func(from, to int) rundir.Entry {
		return rundir.Entry{Start: begin.Add(time.Duration(from) * time.Second),
			Duration: time.Duration(to-from) * time.Second}
	}
	require.Equal(t, 7*time.Second, running([]rundir.Entry{entry(0, 4), entry(1, 2), entry(3, 5), entry(8, 10)}))
}

// TestTimeline_Table: the table has the rollouts of the drawing, by their start, and says what it leaves out.
func TestTimeline_Table(t *testing.T) {
	begin := time.Unix(100, 0)
	list := make([]rundir.Entry, maxRows+2)
	for i := range list {
		list[i] = rundir.Entry{Group: i, Start: begin.Add(time.Duration(i) * time.Second), Duration: time.Second,
			Reward: 0.5}
	}
	v := newTimeline(list, nil)
	require.Len(t, v.Table.Rows, maxRows)
	require.Equal(t, 2, v.Table.More)
	require.Equal(t, []string{"group 0, trajectory 0", "0s", "1s", "0.5"}, v.Table.Rows[0])
	require.Equal(t, "group 3, trajectory 0", v.Table.Rows[3][0])
}

// TestSequences: samples that continue each other are one sequence, and its tokens are all there.
func TestSequences(t *testing.T) {
	first := &art.Sample{PromptIDs: []int32{1, 2}, IDs: []int32{3, 4}, Forced: []bool{true, false}}
	second := &art.Sample{PromptIDs: []int32{1, 2, 3, 4, 5, 6, 7}, IDs: []int32{8}}
	other := &art.Sample{PromptIDs: []int32{1, 9}, IDs: []int32{8}}
	trajectory := &art.Trajectory{History: art.History{Messages: []art.Message{{Sample: first}, {}, {Sample: second},
		{Sample: other}}}}
	list := sequencesOf(trajectory, "")
	require.Len(t, list, 2)
	require.Equal(t, []span{{"forced", 1}, {"trained", 1}, {"context", 3}, {"trained", 1}}, list[0].spans)
	b := &batch{Longest: 8}
	b.draw(&batchGroup{}, list)
	want := batchCounts{Sequences: 2, Tokens: 1 + 7 + 2, Context: 1 + 1 + 3 + 1, Trained: 3, Forced: 1, Saved: 1}
	require.Equal(t, want, b.Counts)
}

// FuzzVisible: a text is shown without elements of its own and without characters that cannot be seen.
func FuzzVisible(f *testing.F) {
	f.Add("<b>&\x1b\u202e\xff\U000e0041\u2028")
	f.Fuzz(func(t *testing.T, text string) {
		html := string(visible(text))
		bare := strings.NewReplacer(`<span class="ctl">`, "", `</span>`, "").Replace(html)
		require.NotContains(t, bare, "<")
		require.NotContains(t, bare, `"`)
		for _, r := range html {
			require.False(t, isHidden(r), "%q", html)
		}
	})
}
