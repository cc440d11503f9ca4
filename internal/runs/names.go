package runs

import (
	"fmt"
	"strconv"
	"strings"
)

const maxName = 128 // bytes

// checkName makes sure that a name is one plain path element on every file system: no separators, no dot names, and
// nothing that would read as a temporary file.
func checkName(what, name string) error {
	switch {
	case name == "" || len(name) > maxName:
		return fmt.Errorf("%s name %q must have 1 to %d characters", what, name, maxName)
	case strings.IndexFunc(name, func(c rune) bool { return !plain(c) }) >= 0, name[0] == '.':
		return fmt.Errorf("%s name %q may have letters, digits, '-', '_' and '.', and does not start with '.'", what, name)
	}
	return nil
}

// plain holds for ASCII letters and digits and for -_. only.
func plain(c rune) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_' || c == '.'
}

// stepName is the name of a step in the file system: 0001.
func stepName(step int) string { return fmt.Sprintf("%04d", step) }

// parseStep is the inverse of stepName.
func parseStep(name string) (step int, ok bool) {
	step, err := strconv.Atoi(name)
	return step, err == nil && step >= 0 && stepName(step) == name
}
