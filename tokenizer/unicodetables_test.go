package tokenizer

import (
	"os"
	"os/exec"
	"testing"
	"unicode"
)

// TestUnicodeTables_Generated: unicodetables.go is what make_unicodetables.py writes. It needs a Python with the
// packages that the script names, in ART_GOLDEN_PYTHON.
func TestUnicodeTables_Generated(t *testing.T) {
	python := os.Getenv("ART_GOLDEN_PYTHON")
	if python == "" {
		t.Skip("set ART_GOLDEN_PYTHON to the Python that make_unicodetables.py describes")
	}
	want, err := exec.CommandContext(t.Context(), python, "make_unicodetables.py", "-print").Output()
	must(t, err)
	if string(want) != string(read(t, "unicodetables.go")) {
		t.Error("unicodetables.go differs from what make_unicodetables.py prints: run it")
	}
}

// TestUnicodeTables_Go: in the Unicode version of Go's tables, the characters of ours are what the tables say.
func TestUnicodeTables_Go(t *testing.T) {
	assigned := append([]*unicode.RangeTable{unicode.Cc, unicode.Cf}, unicode.GraphicRanges...)
	for name, table := range map[string]struct {
		ours *unicode.RangeTable
		is   func(rune) bool
	}{
		"laterAccents":     {laterAccents, func(r rune) bool { return unicode.Is(unicode.M, r) && !isMark(r) }},
		"laterPunctuation": {laterPunctuation, func(r rune) bool { return unicode.Is(unicode.P, r) && !isPunctuation(r) }},
		"laterMarks":       {laterMarks, func(r rune) bool { return oldClass(r) == 0 && len(decomposition{}.of(r)) == 1 }},
		"laterCompatible":  {laterCompatible, func(r rune) bool { return len(decomposition{compatible: true}.of(r)) == 1 }},
	} {
		known := 0
		for r := rune(0); r <= unicode.MaxRune; r++ {
			if !unicode.Is(table.ours, r) || !unicode.In(r, assigned...) {
				continue
			}
			if known++; !table.is(r) {
				t.Errorf("%s has %U, which is something else in Unicode %s", name, r, unicode.Version)
			}
		}
		if known < 100 {
			t.Errorf("%s: only %d characters are known to Go", name, known)
		}
	}
}
