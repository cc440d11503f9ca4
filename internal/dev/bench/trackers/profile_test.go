package main

import (
	"bytes"
	"math"
	"runtime/pprof"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// spin keeps a core busy.
//
//go:noinline
func spin(d time.Duration) (x float64) {
	for end := time.Now().Add(d); time.Now().Before(end); {
		for range 10_000 {
			x = math.Sqrt(x + 1)
		}
	}
	return x
}

// A profile is read as runtime/pprof writes it: the time is that of the busy function.
func TestReadProfile(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, pprof.StartCPUProfile(&b))
	spin(300 * time.Millisecond)
	pprof.StopCPUProfile()
	samples, err := readProfile(b.Bytes())
	require.NoError(t, err)
	var all, busy int64
	for _, s := range samples {
		require.Len(t, s.values, 2)
		all += s.values[1]
		if strings.Contains(strings.Join(s.stack, " "), ".spin") {
			busy += s.values[1]
		}
	}
	require.Positive(t, busy)
	require.Greater(t, float64(busy), 0.5*float64(all))
}

// A stack counts for the tracker that it is in, and for the network where it is in none.
func TestPartOf(t *testing.T) {
	const root = "github.com/goart-dev/art/"
	for want, stack := range map[string][]string{
		"wandb":   {"encoding/json.Marshal", root + "backend/track/wandb.asJSON", root + "internal/track.(*Tracker).work"},
		"network": {"syscall.Write", "net/http.(*persistConn).writeLoop"},
		"otel":    {"net/http.(*Client).Do", "go.opentelemetry.io/otel/exporters/otlp.(*client).UploadTraces"},
		"":        {"runtime.mallocgc", root + "backend/local.(*Backend).Train"},
	} {
		require.Equal(t, want, partOf(stack))
	}
}

// The report charges the trackers with their part of the garbage collection, and compares with everything else.
func TestReport(t *testing.T) {
	second := int64(time.Second)
	samples := []sample{
		{[]string{"github.com/goart-dev/art/internal/trainer.step"}, []int64{0, 95 * second}},
		{[]string{"github.com/goart-dev/art/backend/track/mlflow.(*run).Rows"}, []int64{0, second}},
		{[]string{"runtime.scanobject", "runtime.gcBgMarkWorker"}, []int64{0, 4 * second}},
	}
	var b strings.Builder
	report(&b, samples, allocated{100, 10}, allocated{200, 35})
	require.Regexp(t, `mlflow +1s +1\.02 %`, b.String())
	require.Regexp(t, `garbage, 25\.0 % of 4s +1s +1\.02 %`, b.String())
	require.Regexp(t, `all trackers +2s +2\.04 %`, b.String())
}
