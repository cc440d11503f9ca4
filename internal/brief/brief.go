// Package brief bounds what errors list: a wrong file may have a problem in each of thousands of tensors or layers, and
// an error must stay readable.
package brief

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// most is how many problems, or names, are listed.
const most = 20

// Errors joins the first errors, and says how many more there are. Some may be nil.
func Errors(errs []error) error {
	errs = slices.DeleteFunc(slices.Clone(errs), func(err error) bool { return err == nil })
	if more := len(errs) - most; more > 0 {
		errs = append(errs[:most], fmt.Errorf("and %d more problems like these", more))
	}
	return errors.Join(errs...)
}

// Names lists the first names, and says how many more there are.
func Names(names []string) string {
	if more := len(names) - most; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), more)
	}
	return strings.Join(names, ", ")
}

// Text is the beginning of a text.
func Text(text string) string {
	const bytes = 200
	if len(text) <= bytes {
		return text
	}
	return strings.ToValidUTF8(text[:bytes], "") + "..."
}
