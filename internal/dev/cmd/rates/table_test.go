package main

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestGood: the range of good rates ends where more than a tenth of what the best rate gains is lost, and does not
// continue behind a gap.
func TestGood(t *testing.T) {
	list := []rung{
		{rate: 1, value: 0.98, start: 0.5}, {rate: 2, value: 0.6, start: 0.5}, {rate: 3, value: 0.96, start: 0.5},
		{rate: 4, value: 1, start: 0.5}, {rate: 5, value: 0.94, start: 0.5},
	}
	low, best, high := good(list)
	require.Equal(t, []float64{3, 4, 4}, []float64{low, best, high})
	flat := []rung{{rate: 1, value: 0.5, start: 0.5}, {rate: 2, value: 0.4, start: 0.5}}
	low, best, high = good(flat)
	require.Equal(t, []float64{1, 1, 1}, []float64{low, best, high}, "nothing is gained")
}

// TestTrials: what is in the file is found again, whatever its result was.
func TestTrials(t *testing.T) {
	o := options{bases: []string{"tiny", "64"}, kinds: []string{"lora"}, tasks: []string{byReward}, seeds: 2, steps: 3}
	require.NoError(t, o.parse("1e-3,1e-2"))
	all := o.trials()
	require.Len(t, all, 8)
	one := all[5]
	one.Hidden, one.Value = 64, 0.75
	path := filepath.Join(t.TempDir(), "rates.json")
	require.NoError(t, trials{one}.write(path))
	done, err := readTrials(path)
	require.NoError(t, err)
	for i, x := range all {
		got, ok := done.find(x)
		require.Equal(t, i == 5, ok)
		if ok {
			require.Equal(t, one, got)
		}
	}
	require.Error(t, (&options{}).parse("0"))
}

// TestTrial: a trial of each task on a random model trains, and says how it went.
func TestTrial(t *testing.T) {
	if testing.Short() {
		t.Skip("seconds of training")
	}
	for _, task := range []string{byReward, byExamples} {
		x := trial{Base: "64", Kind: "lora", Task: task, Rate: 1e-3, Seed: 1, Steps: 3}
		require.NoError(t, x.run(t.Context()))
		require.Equal(t, 64, x.Hidden)
		require.False(t, x.Diverged)
		require.Positive(t, x.Start)
		require.NotEqual(t, x.Start, x.Value)
	}
}
