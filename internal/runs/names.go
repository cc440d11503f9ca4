package runs

import (
	"fmt"
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
