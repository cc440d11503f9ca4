package runs

import (
	"bufio"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/goart-dev/art"
	"github.com/stretchr/testify/require"
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
	}
}

// A process that makes steps is killed at random moments. Each time the run is at one of its steps, whole.
func TestKill(t *testing.T) {
	random := seeded(t)
	root := t.TempDir() // a real disk
	steps, recovered := 0, 0
	for range 20 {
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), childEnv+"="+root)
		child.Stderr = os.Stderr
		out, err := child.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, child.Start())
		_, err = bufio.NewReader(out).ReadString('\n')
		require.NoError(t, err)

		_, err = openRun(root, disk{})
		require.ErrorIs(t, err, art.ErrLocked)
		require.ErrorContains(t, err, "process ")
		require.False(t, strings.Contains(err.Error(), "this process"))

		time.Sleep(time.Duration(random.Int64N(int64(150 * time.Millisecond))))
		require.NoError(t, child.Process.Kill())
		require.Error(t, child.Wait())

		r, err := openRun(root, disk{})
		require.NoError(t, err)
		checkRun(t, r)
		require.GreaterOrEqual(t, r.Next(), steps)
		steps = r.Next()
		if r.Recovered() != (Recovery{}) {
			recovered++
		}
		require.NoError(t, r.Close())
	}
	t.Logf("%d steps in 20 lives, %d of which left something to clean up", steps, recovered)
	require.Positive(t, steps)
}
