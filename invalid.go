package art

import (
	"fmt"
	"math"
	"strings"
)

// problems collects everything that is wrong with an argument, so that one error lists it all.
type problems []string

// addf adds a problem.
func (p *problems) addf(format string, args ...any) { *p = append(*p, fmt.Sprintf(format, args...)) }

// check adds a problem unless ok.
func (p *problems) check(ok bool, format string, args ...any) {
	if !ok {
		p.addf(format, args...)
	}
}

// maxListed is how many problems an error lists: arguments may come from another process, and be long.
const maxListed = 20

// err returns the problems as one [ErrInvalid], or nil when there is none.
func (p problems) err(op, hint string) error {
	if len(p) == 0 {
		return nil
	}
	listed := strings.Join(p[:min(len(p), maxListed)], "; ")
	if more := len(p) - maxListed; more > 0 {
		listed += fmt.Sprintf("; and %d more", more)
	}
	return &Error{Op: op, Err: fmt.Errorf("%w: %s", ErrInvalid, listed), Hint: hint}
}

// finite tells whether x is neither NaN nor infinite.
func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }
