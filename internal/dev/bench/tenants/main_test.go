package main

import (
	"flag"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestMain lets the test binary be the server, or one of the processes.
func TestMain(m *testing.M) {
	if os.Getenv("TENANTS_IS_PROGRAM") != "" {
		main()
		return
	}
	flag.Parse()
	os.Exit(m.Run())
}

// A small measurement of everything goes through, with replies, time and memory in each outcome.
func TestMeasure(t *testing.T) {
	t.Setenv("TENANTS_IS_PROGRAM", "1") // of the children
	*dir, *tokenizer = t.TempDir(), "../../../../model/tiny"
	*clients, *steps, *pairs, *groups, *size, *tokens = 2, 1, 1, 1, 2, 4
	require.NoError(t, measure(t.Context()))
	*dir = t.TempDir() // that of measure is gone
	server, err := trainClients(t.Context(), 2)
	require.NoError(t, err)
	processes, err := trainProcesses(t.Context(), 2)
	require.NoError(t, err)
	for _, o := range []outcome{server, processes} {
		require.Positive(t, o.took)
		require.Greater(t, o.memory, int64(10e6))
		require.Len(t, o.rates, 2)
		for _, rate := range o.rates {
			require.GreaterOrEqual(t, rate*o.took.Seconds(), 0.99, "no run ends after all have ended")
		}
	}
}
