package runs

import (
	"bufio"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art"
)

const childEnv = "ART_RUNS_CHILD"

// TestMain is a process that makes steps until it is killed, when TestKill started it.
func TestMain(m *testing.M) {
	root := os.Getenv(childEnv)
	if root == "" {
		os.Exit(m.Run())
	}
	r, err := openRun(root, disk{})
	if err != nil {
		panic(err)
	}
	os.Stdout.WriteString("open\n")
	for {
		if err := makeStep(r, r.Next()); err != nil {
			panic(err)
		}
		os.Stdout.WriteString("step\n")
	}
}

// A process that makes steps is killed at random moments. Each time the run is at one of its steps, whole. How long a
// step takes depends on the disk, so a moment is a number of steps and a part of the time that the slowest one took.
func TestKill(t *testing.T) {
	random := seeded(t)
	root := t.TempDir() // a real disk
	steps, recovered, pace := 0, 0, 50*time.Millisecond
	for range 20 {
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), childEnv+"="+root)
		child.Stderr = os.Stderr
		out, err := child.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, child.Start())
		lines := bufio.NewScanner(out)
		require.True(t, lines.Scan(), "it did not open the run")

		_, err = openRun(root, disk{})
		require.ErrorIs(t, err, art.ErrLocked)
		require.ErrorContains(t, err, "process ")
		require.False(t, strings.Contains(err.Error(), "this process"))

		made := random.IntN(3)
		for range made {
			began := time.Now()
			require.True(t, lines.Scan(), "it made no step")
			pace = max(pace, time.Since(began))
		}
		time.Sleep(time.Duration(random.Int64N(int64(pace))))
		require.NoError(t, child.Process.Kill())
		require.Error(t, child.Wait())

		r, err := openRun(root, disk{})
		require.NoError(t, err)
		checkRun(t, r)
		require.GreaterOrEqual(t, r.Next(), steps+made)
		steps = r.Next()
		if r.Recovered() != (Recovery{}) {
			recovered++
		}
		require.NoError(t, r.Close())
	}
	t.Logf("%d steps in 20 lives, %d of which left something to clean up", steps, recovered)
	require.Positive(t, steps)
}
