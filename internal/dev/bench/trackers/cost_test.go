//go:build unix

package main

import (
	"flag"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/dev/arttest"
)

// With -serve the tests are the services, as the command is.
func TestMain(m *testing.M) {
	flag.Parse()
	if *serve {
		check(serveAll(os.Stdout))
		return
	}
	os.Exit(m.Run())
}

// spent is the CPU time of this process.
func spent(tb testing.TB) time.Duration {
	var r syscall.Rusage
	require.NoError(tb, syscall.Getrusage(syscall.RUSAGE_SELF, &r))
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// BenchmarkTrackers measures each tracker without a training: an operation is a step of 256 completions, of a backend
// that makes replies up. "none" is what the rollouts cost by themselves. CPU-us/completion is the CPU time, with the
// garbage collector's; time goes on while a tracker waits for its service.
//
//	go test ./internal/dev/bench/trackers -run - -bench Trackers -benchtime 30x
func BenchmarkTrackers(b *testing.B) {
	b.Run("none", func(b *testing.B) { measureTracker(b, "none") })
	for _, name := range []string{"wandb", "tensorboard", "mlflow", "otel", "openpipe", "all"} {
		b.Run(name, func(b *testing.B) { measureTracker(b, name) })
	}
}

func measureTracker(b *testing.B, name string) {
	url, stop, err := startServices()
	require.NoError(b, err)
	defer stop()
	all, err := openTrackers(b.TempDir(), url)
	require.NoError(b, err)
	events := all.events
	if name != "all" {
		events = &art.Events{}
		if t := all.list[name]; t != nil {
			events = t.Events()
		}
	}
	m := art.NewModel("adder", &art.ModelOptions{Events: events})
	require.NoError(b, m.Register(b.Context(), &arttest.Backend{}))
	b.ResetTimer()
	before := spent(b)
	for step := range b.N {
		require.NoError(b, train(b.Context(), m, events, step))
		if name != "none" {
			time.Sleep(200 * time.Millisecond) // a training makes fewer events
		}
	}
	require.NoError(b, all.close())
	completions := b.N * *groups * size * *turns
	b.ReportMetric(float64((spent(b)-before).Microseconds())/float64(completions), "CPU-us/completion")
	b.ReportMetric(0, "ns/op")
}
