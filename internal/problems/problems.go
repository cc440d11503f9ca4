// Package problems collects everything that is wrong with an argument, so that one error lists it all.
package problems

import (
	"fmt"
	"math"
	"strings"
	"unicode"

	"github.com/goart-dev/art"
)

// List are problems, each without a capital and a full stop.
type List []string

// Addf adds a problem.
func (l *List) Addf(format string, args ...any) { *l = append(*l, fmt.Sprintf(format, args...)) }

// Check adds a problem unless ok.
func (l *List) Check(ok bool, format string, args ...any) {
	if !ok {
		l.Addf(format, args...)
	}
}

// NotNegative checks that x is a finite number of at least 0.
func (l *List) NotNegative(name string, x float64) {
	l.Check(x >= 0 && !math.IsInf(x, 1), "%s is %v, want a finite number >= 0", name, x)
}

// FileName checks that s can be the name of a file on every system, by the rules of the names of models.
func (l *List) FileName(what, s string) {
	l.Check(s != "" && s != "." && s != ".." && strings.TrimSpace(s) == s && !strings.ContainsAny(s, `/\@`) &&
		!strings.ContainsFunc(s, unicode.IsControl), `%s is %q: it must not be empty, "." or "..", contain / \ @ or a `+
		"control character, or begin or end with a space", what, s)
}

// Err returns the problems as one [art.ErrInvalid], nil for none.
func (l List) Err(op, hint string) error {
	if len(l) == 0 {
		return nil
	}
	const most = 20 // arguments may come from another process, and be long
	text := strings.Join(l[:min(len(l), most)], "; ")
	if more := len(l) - most; more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return &art.Error{Op: op, Err: fmt.Errorf("%w: %s", art.ErrInvalid, text), Hint: hint}
}
