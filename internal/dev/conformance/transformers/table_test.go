package transformers

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

var tablePath = flag.String("table", "", "file that gets the results as a table in Markdown")

// table has what was found of each family in each check: the worst number, or a word.
type table struct {
	mu       sync.Mutex
	families []string
	checks   []string
	cells    map[[2]string]cell
}

type cell struct {
	word  string
	value float64
	count int
}

var results = &table{cells: map[[2]string]cell{}}

func (t *table) set(family, check string, c cell) {
	if !slices.Contains(t.families, family) {
		t.families = append(t.families, family)
	}
	if !slices.Contains(t.checks, check) {
		t.checks = append(t.checks, check)
	}
	t.cells[[2]string{family, check}] = c
}

// note sets a word.
func (t *table) note(family, check, word string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.set(family, check, cell{word: word})
}

// add adds to a count.
func (t *table) add(family, check string, n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n += t.cells[[2]string{family, check}].count
	t.set(family, check, cell{count: n, word: strconv.Itoa(n)})
}

// worst keeps the largest of some numbers.
func (t *table) worst(family, check string, value float64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if before, ok := t.cells[[2]string{family, check}]; ok && before.value >= value {
		return
	}
	t.set(family, check, cell{value: value})
}

// String returns the table: a row for each family, in the order of families.py.
func (t *table) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "| family | %s |\n|%s\n", strings.Join(t.checks, " | "), strings.Repeat("---|", len(t.checks)+1))
	for _, family := range t.families {
		fmt.Fprintf(&b, "| %s |", family)
		for _, check := range t.checks {
			c, ok := t.cells[[2]string{family, check}]
			text := ""
			if ok {
				text = cmp.Or(c.word, "0")
			}
			if c.value != 0 {
				text = fmt.Sprintf("%.1e", c.value)
			}
			fmt.Fprintf(&b, " %s |", text)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// TestMain makes a folder for recordings where none is chosen, and writes the table.
func TestMain(m *testing.M) {
	flag.Parse()
	if *folder == "" {
		var err error
		if *folder, err = os.MkdirTemp("", "transformers"); err != nil {
			log.Fatal(err)
		}
		defer os.RemoveAll(*folder)
	}
	m.Run()
	if *tablePath != "" && len(results.cells) > 0 {
		if err := os.WriteFile(*tablePath, []byte(results.String()), 0o644); err != nil {
			log.Panic(err)
		}
	}
}

// lines returns the lines of a text that are JSON.
func lines(text string) (list []string) {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "{") {
			list = append(list, line)
		}
	}
	return list
}

func decode(t *testing.T, line string, to any) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(line), to), line)
}

// TestApart: a difference that is not a number, or of another size, is no agreement.
func TestApart(t *testing.T) {
	logits := []float32{1, -4, 2, 0}
	ln := func(z, other float64) float32 { return float32(z - math.Log(math.Exp(z)+math.Exp(other))) }
	want := []float32{ln(1, -4), ln(-4, 1), ln(2, 0), ln(0, 2)}
	require.InDelta(t, 0, apart(logits, want, 2), 1e-7)
	require.InDelta(t, 0.25, apart(logits, []float32{want[0], want[1] + 1, want[2], want[3]}, 2), 1e-6, "relative to 4")
	require.True(t, math.IsInf(apart(logits, []float32{want[0], float32(math.NaN()), want[2], want[3]}, 2), 1))
	require.True(t, math.IsInf(apart(logits, want[:2], 2), 1))
}
