package runs

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art"
)

// fault makes the changes of a disk from number at on fail.
type fault struct {
	at   int  // 0 is the first change; -1 never fails
	once bool // only that change fails; otherwise nothing is changed ever after
	err  error
	seen int

	durable *durable // observes what is fsynced; may be nil
}

func (f *fault) disk() disk { return disk{Hook: f.change} }

func (f *fault) change(op, path string, do func() error) error {
	n := f.seen
	f.seen++
	switch {
	case n == f.at && op == "write":
		return errors.Join(f.err, halfWrite(path, do))
	case n == f.at, n > f.at && f.at >= 0 && !f.once:
		return f.err
	}
	err := do()
	if err == nil && f.durable != nil {
		f.durable.observe(op, path)
	}
	return err
}

// halfWrite writes only the first half.
func halfWrite(path string, do func() error) error {
	before := size(path)
	if err := do(); err != nil {
		return err
	}
	return os.Truncate(path, before+(size(path)-before)/2)
}

func size(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		panic(err)
	}
	return info.Size()
}

const interrupted = "interrupted"

// bases are the folders that a step is made in.
var bases = map[string]func(t *testing.T, root string){
	"new run":   func(*testing.T, string) {},
	"two steps": makeTwoSteps,
	interrupted: func(t *testing.T, root string) {
		makeTwoSteps(t, root)
		leaveDebris(t, filepath.Join(root, "project", "models", "model"))
	},
}

func makeTwoSteps(t *testing.T, root string) {
	r, err := openRun(root, disk{})
	require.NoError(t, err)
	require.NoError(t, makeStep(r, 0))
	require.NoError(t, makeStep(r, 1))
	require.NoError(t, r.Close())
}

const damagedLine = `{"split":"train","step":` + "\x00\x00"

// leaveDebris leaves what kills at different moments of step 2 leave, and a damaged row.
func leaveDebris(t *testing.T, dir string) {
	require.NoError(t, writeFiles(dir, map[string]string{
		".tmp-model.json":                      "{",
		"checkpoints/.tmp-0002/adapter.bin":    "half",
		"trajectories/train/.tmp-0001.parquet": "PAR1",
		"trajectories/train/0001.parquet":      "PAR1",
	}))
	path := filepath.Join(dir, "history.jsonl")
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	content = append([]byte(damagedLine+"\n"), content...)
	content = append(content, `{"split":"train","step":1}`+"\n"+`{"split":"tr`...)
	require.NoError(t, os.WriteFile(path, content, 0o644))
}

// makeNext opens the run and makes its next step. It returns the run, nil when it did not open.
func makeNext(root string, f *fault) (*Run, error) {
	r, err := openRun(root, f.disk())
	if err != nil {
		return nil, err
	}
	return r, makeStep(r, r.Next())
}

// eachFault calls test for each change that making a step makes, each time in a new copy of each base. With -short it
// is every fifth, from a random one on, which the names of the subtests tell.
func eachFault(t *testing.T, test func(t *testing.T, root string, at int)) {
	for name, fill := range bases {
		base := tempDir(t)
		fill(t, base)
		probe := &fault{at: -1}
		r, err := makeNext(copyOf(t, base), probe)
		require.NoError(t, err)
		changes := probe.seen
		require.NoError(t, r.Close())
		require.Greater(t, changes, 20)
		every := 1
		if testing.Short() {
			every = 5
		}
		for at := rand.IntN(every); at < changes; at += every {
			t.Run(fmt.Sprintf("%s/%d", name, at), func(t *testing.T) { test(t, copyOf(t, base), at) })
		}
	}
}

func copyOf(t *testing.T, dir string) string {
	root := tempDir(t)
	require.NoError(t, os.CopyFS(root, os.DirFS(dir)))
	return root
}

// finish opens the run after a fault, checks it, and makes the steps up to 2 that are missing.
func finish(t *testing.T, root string, atLeast int) {
	t.Helper()
	r, err := openRun(root, disk{})
	require.NoError(t, err)
	defer func() { require.NoError(t, r.Close()) }()
	checkRun(t, r)
	require.Equal(t, Damage{History: r.Damage().History && strings.Contains(t.Name(), interrupted)}, r.Damage())
	require.GreaterOrEqual(t, r.Next(), atLeast)
	for r.Next() <= 2 {
		require.NoError(t, makeStep(r, r.Next()))
	}
	checkRun(t, r)
	if strings.Contains(t.Name(), interrupted) {
		content, err := os.ReadFile(r.historyPath() + ".damaged")
		require.NoError(t, err)
		require.Contains(t, string(content), damagedLine)
	}
}

// committed is the number of steps in a base or after a step was made.
func committed(t *testing.T, root string) int {
	entries, err := os.ReadDir(filepath.Join(root, "project", "models", "model", "checkpoints"))
	if errors.Is(err, fs.ErrNotExist) {
		return 0
	}
	require.NoError(t, err)
	n := 0
	for _, e := range entries {
		if _, ok := parseStep(e.Name()); ok {
			n++
		}
	}
	return n
}

// The process survives: one change fails, and the same process tries again.
func TestFault_OneErrorThenRetry(t *testing.T) {
	eachFault(t, func(t *testing.T, root string, at int) {
		before := committed(t, root)
		r, err := makeNext(root, &fault{at: at, once: true, err: syscall.EIO})
		require.ErrorIs(t, err, art.ErrStorage)
		require.ErrorIs(t, err, syscall.EIO)
		require.Equal(t, before, committed(t, root))
		if r == nil {
			finish(t, root, before)
			return
		}
		require.Equal(t, before, r.Next())
		require.NoError(t, makeStep(r, before))
		checkRun(t, r)
		require.NoError(t, r.Close())
		finish(t, root, before+1)
	})
}

// The disk stays full, and the process closes the run in good order.
func TestFault_DiskStaysFull(t *testing.T) {
	eachFault(t, func(t *testing.T, root string, at int) {
		before := committed(t, root)
		r, err := makeNext(root, &fault{at: at, err: syscall.ENOSPC})
		require.ErrorIs(t, err, art.ErrStorage)
		require.ErrorContains(t, err, "free some space")
		if r != nil {
			require.NoError(t, r.Close())
		}
		finish(t, root, before)
	})
}

// The disk is full for a while, which leaves what could not be cleaned up, and the same process tries again.
func TestFault_DiskHeals(t *testing.T) {
	eachFault(t, func(t *testing.T, root string, at int) {
		before := committed(t, root)
		f := &fault{at: at, err: syscall.ENOSPC}
		r, err := makeNext(root, f)
		require.ErrorIs(t, err, syscall.ENOSPC)
		if r == nil {
			return
		}
		f.at = -1
		require.NoError(t, makeStep(r, before))
		checkRun(t, r)
		require.NoError(t, r.Close())
		finish(t, root, before+1)
	})
}

// kill ends a process without Close: the kernel releases its lock.
func kill(t *testing.T, r *Run) {
	if r != nil {
		require.NoError(t, r.lock.Close())
	}
}

var errKilled = errors.New("killed")

// The process is killed: what it changed is there, and nothing more happens.
func TestFault_Kill(t *testing.T) {
	eachFault(t, func(t *testing.T, root string, at int) {
		before := committed(t, root)
		r, err := makeNext(root, &fault{at: at, err: errKilled})
		require.ErrorIs(t, err, errKilled)
		kill(t, r)
		finish(t, root, before)
	})
}

// The machine stops: only what was fsynced is there.
func TestFault_PowerLoss(t *testing.T) {
	eachFault(t, func(t *testing.T, root string, at int) {
		before := committed(t, root)
		d := watch(t, root)
		r, err := makeNext(root, &fault{at: at, err: errKilled, durable: d})
		require.ErrorIs(t, err, errKilled)
		kill(t, r)
		finish(t, d.restore(t), before)
	})
}

// The machine stops right after a step was committed.
func TestFault_PowerLossAfterCommit(t *testing.T) {
	for name, fill := range bases {
		t.Run(name, func(t *testing.T) {
			root := tempDir(t)
			fill(t, root)
			d := watch(t, root)
			r, err := makeNext(root, &fault{at: -1, durable: d})
			require.NoError(t, err)
			next := r.Next()
			kill(t, r)
			finish(t, d.restore(t), next)
		})
	}
}

// What Open dropped stays dropped, and what it moved aside is there, when the machine stops after it.
func TestFault_PowerLossAfterOpen(t *testing.T) {
	for name, tail := range map[string]string{
		"a row of the next step": `{"split":"train","step":1}` + "\n",
		"a torn row":             `{"split":"tr`,
		"a damaged row":          damagedLine + "\n",
	} {
		t.Run(name, func(t *testing.T) {
			root := tempDir(t)
			makeTwoSteps(t, root)
			path := filepath.Join("project", "models", "model", "history.jsonl")
			want, err := os.ReadFile(filepath.Join(root, path))
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(filepath.Join(root, path), append(bytes.Clone(want), tail...), 0o644))

			d := watch(t, root)
			r, err := openRun(root, (&fault{at: -1, durable: d}).disk())
			require.NoError(t, err)
			kill(t, r)
			restored := filepath.Join(d.restore(t), path)
			got, err := os.ReadFile(restored)
			require.NoError(t, err)
			require.Equal(t, string(want), string(got))
			aside, _ := os.ReadFile(restored + ".damaged")
			require.Equal(t, strings.Contains(tail, damagedLine), string(aside) == tail)
		})
	}
}
