package credit

import (
	"errors"
	"fmt"
	"slices"
)

// problems collects everything that is wrong with a configuration.
type problems []error

// addf adds a problem.
func (p *problems) addf(format string, args ...any) { *p = append(*p, fmt.Errorf(format, args...)) }

// check adds a problem unless ok.
func (p *problems) check(ok bool, format string, args ...any) {
	if !ok {
		p.addf(format, args...)
	}
}

// notNegative checks that *x, if there is one, is a finite number of at least 0.
func (p *problems) notNegative(name string, x *float64) {
	if x != nil {
		p.check(finite(*x) && *x >= 0, "%s is %v, want a finite number >= 0", name, *x)
	}
}

// join adds the problems of each part.
func (p *problems) join(parts ...error) {
	for _, err := range parts {
		if list, ok := err.(interface{ Unwrap() []error }); ok {
			*p = append(*p, list.Unwrap()...)
		} else if err != nil {
			*p = append(*p, err)
		}
	}
}

// err joins the problems, nil for none.
func (p problems) err() error { return errors.Join(p...) }

// checkName checks that a name is empty or among the known ones.
func checkName[T ~string](p *problems, what string, got T, known ...T) {
	p.check(got == "" || slices.Contains(known, got), "unknown %s %q, want one of %q", what, got, known)
}

// valueOr returns a pointer to a copy of *p, or to v when p is nil.
func valueOr[T any](p *T, v T) *T {
	if p != nil {
		v = *p
	}
	return &v
}
