package transformers

import (
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/internal/safetensors"
)

var (
	seed     = flag.Uint64("seed", 1, "of configurations and weights")
	configs  = flag.Int("configs", 4, "configurations of each family")
	deep     = flag.Int("deep", 2, "of these, those whose keys are changed, and that get long inputs")
	families = flag.String("families", "", "rows of families.py, separated by semicolons; all where empty")
	folder   = flag.String("dir", "", "where recordings are kept; those that are there are used as they are")
)

// Record is record.json of a checkpoint.
type Record struct {
	Dir    string
	Name   string // of the folder
	Family string
	Row    int  // of the family in the table
	Built  bool // by this library; other families are to be refused
	GGUF   bool // it is for llama.cpp, and has Rows alone
	Rows   [][]int32
	Prompt []int32
	Greedy []int32 // continuation of Prompt

	Adapters []struct {
		Name  string
		Built bool
	}

	logits map[string][]float32
}

// python runs a script of this folder, and returns what it prints.
func python(t *testing.T, script string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Getenv("ART_PYTHON"), append([]string{"-B", script}, args...)...)
	var stderr strings.Builder
	cmd.Stderr, cmd.Env = &stderr, append(os.Environ(), "OMP_NUM_THREADS=1", "OPENBLAS_NUM_THREADS=1")
	out, err := cmd.Output()
	require.NoError(t, err, "%s: %s", script, stderr.String())
	return string(out)
}

// records returns the recordings of the chosen families, which it makes where there are none: those for llama.cpp, or
// the others.
func records(t *testing.T, gguf bool) (list []*Record) {
	t.Helper()
	if os.Getenv("ART_PYTHON") == "" {
		t.Skip("for a comparison with transformers; see the documentation of this package")
	}
	at, err := filepath.Abs(*folder)
	require.NoError(t, err)
	at = filepath.Join(at, fmt.Sprintf("seed-%d", *seed))
	if _, err := os.Stat(at); err != nil {
		args := []string{strconv.FormatUint(*seed, 10), strconv.Itoa(*configs), at + ".part"}
		if *families != "" {
			args = append(args, strings.Split(*families, ";")...)
		}
		require.NoError(t, os.RemoveAll(at+".part"))
		t.Log(python(t, "record.py", args...))
		require.NoError(t, os.Rename(at+".part", at))
	}
	paths, err := filepath.Glob(filepath.Join(at, "*", "record.json"))
	require.NoError(t, err)
	for _, path := range paths {
		r := &Record{Dir: filepath.Dir(path), Name: filepath.Base(filepath.Dir(path))}
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(text, r))
		if r.GGUF != gguf || *families != "" && !slices.Contains(strings.Split(*families, ";"), r.Family) {
			continue
		}
		if r.Built {
			r.logits = readTensors(t, filepath.Join(r.Dir, "reference.safetensors"))
		}
		list = append(list, r)
	}
	require.NotEmpty(t, list, "no recordings")
	slices.SortStableFunc(list, func(a, b *Record) int { return a.Row - b.Row })
	return list
}

// deepOnes returns the recordings of families that are built whose keys are changed, and that get long inputs. A script
// adds to each what has no file of that name.
func deepOnes(t *testing.T, script, file string) (list []*Record) {
	t.Helper()
	var without []string
	for _, r := range records(t, false) {
		var n int
		_, err := fmt.Sscanf(r.Name[strings.LastIndex(r.Name, "-")+1:], "%d", &n)
		require.NoError(t, err)
		if !r.Built || n >= *deep {
			continue
		}
		list = append(list, r)
		if _, err := os.Stat(filepath.Join(r.Dir, file)); err != nil {
			without = append(without, r.Dir)
		}
	}
	if len(list) == 0 {
		t.Skip("no family is built")
	}
	if len(without) > 0 {
		t.Log(python(t, script, without...))
	}
	return list
}

// readJSON reads a file of a recording.
func (r *Record) readJSON(t *testing.T, file string, to any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(r.Dir, file))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, to))
}

// readTensors reads a file of tensors.
func readTensors(t *testing.T, path string) map[string][]float32 {
	t.Helper()
	f, err := safetensors.Open(path)
	require.NoError(t, err)
	defer f.Close()
	found := map[string][]float32{}
	for _, name := range f.Names() {
		x, _ := f.Tensor(name)
		found[name], err = x.Float32s()
		require.NoError(t, err, name)
	}
	return found
}

// apart returns the largest difference between the log-softmax of logits [T, V] and logprobs, relative to the largest
// logit. NaN counts as infinitely far.
func apart(logits, logprobs []float32, v int) float64 {
	if len(logits) != len(logprobs) {
		return math.Inf(1)
	}
	worst, scale := 0.0, 0.0
	for i, want := range logSoftmax(logits, v) {
		scale = max(scale, math.Abs(float64(logits[i])))
		d := math.Abs(want - float64(logprobs[i]))
		if math.IsNaN(d) {
			return math.Inf(1)
		}
		worst = max(worst, d)
	}
	return worst / scale
}

// logSoftmax normalises rows of logits.
func logSoftmax(logits []float32, v int) (out []float64) {
	for row := range slices.Chunk(logits, v) {
		top, sum := float64(slices.Max(row)), 0.0
		for _, z := range row {
			sum += math.Exp(float64(z) - top)
		}
		for _, z := range row {
			out = append(out, float64(z)-top-math.Log(sum))
		}
	}
	return out
}

// narrow rounds to float32.
func narrow(list []float64) (out []float32) {
	for _, x := range list {
		out = append(out, float32(x))
	}
	return out
}
