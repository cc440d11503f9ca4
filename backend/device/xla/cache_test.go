//go:build cgo && unix

package xla_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/backend/device/xla"
)

// childEnv is set in a process that TestCache starts.
const childEnv = "ART_TEST_CACHE_CHILD"

// TestCache_Child is what TestCache runs in processes of their own: it prints what programs compute, one of which
// updates a donated input in place, and one of which has the same inputs as another.
func TestCache_Child(t *testing.T) {
	if os.Getenv(childEnv) == "" {
		t.Skip("a part of TestCache")
	}
	on := device(t, configs[0])
	cache, write := rows(t, on)
	for row := range int32(3) {
		before := address(t, on, cache)
		donated, err := DonateTensorBuffer(cache, on, 0)
		require.NoError(t, err)
		out, err := write.Call(donated, row)
		require.NoError(t, err)
		cache = out[0]
		require.Equal(t, before, address(t, on, cache), "row %d", row)
	}
	sum, err := tensors.CopyFlatData[float32](cache)
	require.NoError(t, err)
	fmt.Println("result: cache", sum[0], sum[128], sum[256], sum[384])
	for _, build := range []func(x *Node) *Node{Tanh, Sin} {
		exec, err := NewExec(on, func(x *Node) *Node { return ReduceAllSum(build(x)) })
		require.NoError(t, err)
		out, err := exec.Call1([]float32{1, 2, 3})
		require.NoError(t, err)
		fmt.Println("result:", out.Value())
	}
}

// cacheChild runs TestCache_Child with programs kept in a folder, and returns its results.
func cacheChild(t *testing.T, folder string) string {
	t.Helper()
	child := exec.Command(os.Args[0], "-test.run=^TestCache_Child$")
	child.Env = append(os.Environ(), childEnv+"=1", required+"=1", xla.CacheEnv+"="+folder)
	out, err := child.CombinedOutput()
	require.NoError(t, err, string(out))
	var results []string
	for line := range strings.Lines(string(out)) {
		if strings.HasPrefix(line, "result:") {
			results = append(results, line)
		}
	}
	return strings.Join(results, "")
}

// kept returns when each program of a folder was written.
func kept(t *testing.T, folder string) map[string]time.Time {
	t.Helper()
	files, err := os.ReadDir(folder)
	require.NoError(t, err)
	times := map[string]time.Time{}
	for _, f := range files {
		info, err := f.Info()
		require.NoError(t, err)
		times[filepath.Join(folder, f.Name())] = info.ModTime()
	}
	return times
}

// TestCache: a process reads what another one has compiled, with the same results and donated inputs updated in place.
// What is damaged is compiled and written again.
func TestCache(t *testing.T) {
	device(t, configs[0]) // or skip
	folder := filepath.Join(t.TempDir(), "programs")
	want := cacheChild(t, folder)
	require.Contains(t, want, "result: cache 1 2 3 0")
	require.Equal(t, 3, strings.Count(want, "result:"))
	first := kept(t, folder)
	require.GreaterOrEqual(t, len(first), 4, "zeros, write, tanh, sin")

	require.Equal(t, want, cacheChild(t, folder))
	require.Equal(t, first, kept(t, folder), "nothing was compiled, which would write it again")

	var damaged string
	for name := range first {
		content, err := os.ReadFile(name)
		require.NoError(t, err)
		content[len(content)/2] ^= 1
		require.NoError(t, os.WriteFile(name, content, 0o600))
		damaged = name
	}
	require.NoError(t, os.Truncate(damaged, 7))
	before := kept(t, folder)
	require.Equal(t, want, cacheChild(t, folder))
	for name, at := range kept(t, folder) {
		require.NotEqual(t, before[name], at, "%s was written again", name)
	}
}

// TestCache_NoFolder: a folder that cannot be made is an error at once.
func TestCache_NoFolder(t *testing.T) {
	device(t, configs[0]) // or skip
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	child := exec.Command(os.Args[0], "-test.run=^TestCache_Child$")
	child.Env = append(os.Environ(), childEnv+"=1", required+"=1", xla.CacheEnv+"="+file)
	out, err := child.CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(out), xla.CacheEnv+": ")
	require.Contains(t, string(out), file)
}
