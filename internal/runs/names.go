package runs

import (
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

const maxName = 128 // bytes

// checkName checks that a name is a single path element: no separators, no leading dot, which temporary files have, and
// no '@', which separates the name of a model from its step.
func checkName(what, name string) error {
	switch {
	case name == "" || len(name) > maxName:
		return fmt.Errorf("%s name %q must have 1 to %d bytes", what, name, maxName)
	case strings.ContainsAny(name, `/\@`), strings.ContainsFunc(name, unicode.IsControl), !utf8.ValidString(name):
		return fmt.Errorf("%s name %q has '/', '\\', '@' or a character that cannot be printed", what, name)
	case name[0] == '.', strings.TrimSpace(name) != name:
		return fmt.Errorf("%s name %q begins with '.', or begins or ends with a space", what, name)
	case runtime.GOOS == "windows" && !isWindowsName(name):
		return fmt.Errorf("%s name %q cannot be the name of a folder on Windows", what, name)
	}
	return nil
}

// windowsDevices are names that Windows keeps for devices, with any ending.
var windowsDevices = strings.Fields("con prn aux nul com0 com1 com2 com3 com4 com5 com6 com7 com8 com9 " +
	"lpt0 lpt1 lpt2 lpt3 lpt4 lpt5 lpt6 lpt7 lpt8 lpt9")

// isWindowsName reports whether a name that is fine elsewhere can be a folder on Windows, where a colon begins the name
// of a stream within a file, and a dot at the end is dropped.
func isWindowsName(name string) bool {
	stem, _, _ := strings.Cut(strings.ToLower(name), ".")
	return !strings.ContainsAny(name, `<>:"|?*`) && !strings.HasSuffix(name, ".") && !slices.Contains(windowsDevices, stem)
}

// checkSplit refuses a split whose name differs from a stored one, or from that of updates, only in case: they would
// have one folder on macOS and Windows.
func (r *Run) checkSplit(split string) error {
	stored, err := r.splits()
	if err != nil {
		return err
	}
	for _, other := range append(stored, trainSplit) {
		if other != split && strings.EqualFold(other, split) {
			return fmt.Errorf("split name %q differs from %q only in capitals, which some file systems do not tell apart",
				split, other)
		}
	}
	return nil
}

// stepName is the name of a step in the file system: 0001.
func stepName(step int) string { return fmt.Sprintf("%04d", step) }

// parseStep is the inverse of stepName.
func parseStep(name string) (step int, ok bool) {
	step, err := strconv.Atoi(name)
	return step, err == nil && step >= 0 && stepName(step) == name
}
