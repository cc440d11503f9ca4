package plot

import (
	"bytes"
	"encoding/xml"
	"errors"
	"image/png"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/plot/plotter"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/interval"
	"github.com/goart-dev/art/internal/pack"
)

// history is that of a run which learns, with a measurement each 20 steps.
func history(steps int) []art.HistoryRow {
	rng := rand.New(rand.NewPCG(1, 2))
	var rows []art.HistoryRow
	for step := range steps + 1 {
		right := 0.9 - 0.5*math.Exp(-float64(step)/40)
		if step < steps {
			rows = append(rows, art.HistoryRow{Split: "train", Step: step,
				Metrics: map[string]float64{"train/right": right + 0.04*rng.NormFloat64()}})
		}
		if step%20 == 0 {
			rows = append(rows, art.HistoryRow{Split: "val", Step: step, Metrics: map[string]float64{"val/right": right + 0.05}})
		}
	}
	return rows
}

func chart(steps int) *Chart {
	val := History(history(steps), "val/right")
	for i := range val {
		val[i].Low, val[i].High = val[i].Value-0.04, val[i].Value+0.04
	}
	return &Chart{Title: "Sums of two digits", Y: "right answers", Percent: true, Series: []Series{
		{Name: "training", Points: History(history(steps), "train/right"), Smooth: true},
		{Name: "greedy, on sums never trained on", Points: val},
		{Name: "never logged"},
	}}
}

func bars() *Bars {
	return &Bars{Title: "Mail read", Y: "right mail", Percent: true, Bars: []Bar{
		{"built-in, step 0", 0.12, 0.08, 0.17}, {"built-in, step 50", 0.81, 0.76, 0.86}, {"Gemma 3 270M", 0.4, 0.34, 0.46},
	}}
}

// Both formats can be read, and the SVG has each text once. To look at them: ART_PLOTS=FOLDER go test ./backend/plot
func TestSave(t *testing.T) {
	dir := t.TempDir()
	if kept := os.Getenv("ART_PLOTS"); kept != "" {
		dir = kept
	}
	for name, c := range map[string]struct {
		d     Drawing
		texts []string
	}{
		"curves": {chart(200),
			[]string{"Sums of two digits", "right answers (%)", "training step", "training<",
				"greedy, on sums never trained on"}},
		"bars": {bars(), []string{"Mail read", "right mail (%)", "built-in, step 0", "Gemma 3 270M"}},
		"packed": {&Packed{Title: "Step 3", Updates: [][]*pack.MicroBatch{{branches(t)}, {alone(t, 2, 64)}}},
			[]string{"Step 3", "read by one sequence", "shared", ">trained<", "padding",
				"update 1, micro-batch 1: 16 tokens, 6 trained", "update 2, micro-batch 1: 128 tokens, 1 trained"}},
	} {
		for _, format := range Formats {
			require.NoError(t, Save(filepath.Join(dir, name+"."+format), c.d))
		}
		content, err := os.ReadFile(filepath.Join(dir, name+".png"))
		require.NoError(t, err)
		_, err = png.Decode(bytes.NewReader(content))
		require.NoError(t, err)
		content, err = os.ReadFile(filepath.Join(dir, name+".svg"))
		require.NoError(t, err)
		for d := xml.NewDecoder(bytes.NewReader(content)); ; {
			_, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err)
		}
		for _, want := range c.texts {
			require.Equal(t, 1, strings.Count(string(content), want), want)
		}
		require.NotContains(t, string(content), "never logged")
	}
}

// Whatever was measured can be drawn: nothing, one value, equal values, values that are not finite, many series.
func TestWrite_AnyData(t *testing.T) {
	many := &Chart{Y: "reward"}
	for range 20 {
		many.Series = append(many.Series,
			Series{Name: strings.Repeat("long name ", 5), Points: []Point{{Step: 3, Value: -2}}})
	}
	odd := []Point{{Step: 1, Value: math.NaN()}, {Step: 2, Value: math.Inf(1)}}
	for name, d := range map[string]Drawing{
		"empty": &Chart{}, "one": chart(0), "two": chart(1), "many": many, "no bars": &Bars{}, "zero bar": &Bars{Bars: []Bar{{Name: "a"}}},
		"nothing packed": &Packed{}, "long rows": &Packed{Updates: [][]*pack.MicroBatch{{alone(t, 300, 8192)}}},
		"negative bar": &Bars{Bars: []Bar{{Name: "a", Value: -3, Low: -4, High: -2}}},
		"not finite":   &Chart{Series: []Series{{Points: odd}, {Points: odd, Smooth: true}}},
	} {
		for _, format := range Formats {
			require.NoError(t, Write(io.Discard, format, d), name)
		}
	}
	require.ErrorContains(t, Write(io.Discard, "gif", &Chart{}), `unknown format "gif"`)
	require.ErrorContains(t, Save(filepath.Join(t.TempDir(), "plain"), &Chart{}), "want svg or png")
}

// The trend of a straight line is the line, at its ends too, and noise shrinks.
func TestSmooth(t *testing.T) {
	line, noise := make(plotter.XYs, 100), make(plotter.XYs, 100)
	for i := range line {
		line[i] = plotter.XY{X: float64(i), Y: 3 * float64(i)}
		noise[i] = plotter.XY{X: float64(i), Y: float64(i % 2)}
	}
	for i, v := range smooth(line) {
		require.InDelta(t, line[i].Y, v.Y, 1e-9)
		require.Equal(t, line[i].X, v.X)
	}
	for _, v := range smooth(noise)[5:95] {
		require.InDelta(t, 0.5, v.Y, 0.1)
	}
	require.Zero(t, noise[50].Y, "the values were changed")
}

func TestDistance(t *testing.T) {
	for x, want := range map[float64]float64{0: 1, 0.4: 1, 1.5: 2, 3: 5, 5: 5, 6: 10, 40: 50, 2001: 5000} {
		require.Equal(t, want, distance(x), x)
	}
}

func TestHistory(t *testing.T) {
	rows := []art.HistoryRow{
		{Step: 3, Metrics: map[string]float64{"val/reward": 1}}, {Step: 1, Metrics: map[string]float64{"val/reward": 2}},
		{Step: 3, Metrics: map[string]float64{"val/reward": 5}}, {Step: 4,
			Metrics: map[string]float64{"val/reward": math.NaN()}},
		{Step: 5, Metrics: map[string]float64{"train/reward": 1}},
	}
	require.Equal(t, []Point{{Step: 1, Value: 2}, {Step: 3, Value: 5}}, History(rows, "val/reward"))
}

// The interval holds the true mean in 95 % of draws; it is that of a table of Student's t for a small sample.
func TestInterval(t *testing.T) {
	mean, low, high := Interval([]float64{1, 2, math.NaN(), 3})
	require.InDelta(t, 2, mean, 1e-12)
	require.InDelta(t, 2-4.302653*1/math.Sqrt(3), low, 1e-5)
	require.InDelta(t, 2+4.302653*1/math.Sqrt(3), high, 1e-5)
	mean, low, high = Interval([]float64{7})
	require.Equal(t, []float64{7, 7, 7}, []float64{mean, low, high})
	mean, _, _ = Interval(nil)
	require.True(t, math.IsNaN(mean))

	const seed, draws = 3, 4000
	t.Log("seed", seed)
	rng, inside := rand.New(rand.NewPCG(seed, 0)), 0
	for range draws {
		var values []float64
		for range 8 {
			values = append(values, 5+2*rng.NormFloat64())
		}
		if _, low, high := Interval(values); low <= 5 && 5 <= high {
			inside++
		}
	}
	require.InDelta(t, 0.95, float64(inside)/draws, 0.012)
}

// Trajectories of a group count as one value, unless there is one group.
func TestRewardInterval(t *testing.T) {
	group := func(rewards ...float64) *art.TrajectoryGroup {
		g := &art.TrajectoryGroup{}
		for _, r := range rewards {
			g.Trajectories = append(g.Trajectories, &art.Trajectory{Reward: r})
		}
		return g
	}
	mean, low, high := RewardInterval([]*art.TrajectoryGroup{group(1, 1, 1, 1), group(3, 3), group()})
	wantMean, wantLow, wantHigh := Interval([]float64{1, 3})
	require.Equal(t, []float64{wantMean, wantLow, wantHigh}, []float64{mean, low, high})
	mean, low, high = RewardInterval([]*art.TrajectoryGroup{group(1, 2, 3)})
	wantMean, wantLow, wantHigh = Interval([]float64{1, 2, 3})
	require.Equal(t, []float64{wantMean, wantLow, wantHigh}, []float64{mean, low, high})
}

// Rewards of 0 and 1 have the interval of a share, which no result makes empty: of the groups, of the trajectories of
// one group, and of as many trials as the means of groups vary like.
func TestRewardInterval_Shares(t *testing.T) {
	group := func(right, n int) *art.TrajectoryGroup {
		g := &art.TrajectoryGroup{}
		for i := range n {
			g.Trajectories = append(g.Trajectories, &art.Trajectory{Reward: float64(min(1, max(0, right-i)))})
		}
		return g
	}
	for _, c := range []struct {
		name   string
		groups []*art.TrajectoryGroup
		k, n   float64
	}{
		{"none of 8", slices.Repeat([]*art.TrajectoryGroup{group(0, 1)}, 8), 0, 8},
		{"all of 8", slices.Repeat([]*art.TrajectoryGroup{group(1, 1)}, 8), 8, 8},
		{"one", []*art.TrajectoryGroup{group(0, 1)}, 0, 1},
		{"one group", []*art.TrajectoryGroup{group(3, 8)}, 3, 8},
		{"3 of 4", append(slices.Repeat([]*art.TrajectoryGroup{group(1, 1)}, 3), group(0, 1)), 3, 4},
		{"none in 3 tries each", slices.Repeat([]*art.TrajectoryGroup{group(0, 3)}, 8), 0, 8},
		{"1 in 3 tries each", slices.Repeat([]*art.TrajectoryGroup{group(1, 3)}, 8), 8, 24},
		{"all or none of 4 tries", []*art.TrajectoryGroup{group(4, 4), group(0, 4), group(4, 4)}, 2, 3},
	} {
		mean, low, high := RewardInterval(c.groups)
		wantMean, wantLow, wantHigh := interval.Share(c.k, c.n)
		require.InDeltaSlice(t, []float64{wantMean, wantLow, wantHigh}, []float64{mean, low, high}, 1e-12, c.name)
		require.Less(t, low, high, c.name)
	}
}
