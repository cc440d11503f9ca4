package tenancy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/goart-dev/art/backend/server/access"
)

// Caller is who sends a request.
type Caller struct {
	Tenant string
	key    *access.Key // nil: no limits
}

// Unlimited returns a caller without limits.
func Unlimited(tenant string) *Caller { return &Caller{Tenant: tenant} }

// DeniedError says what a key lacks. Its HTTP status is 403.
type DeniedError struct{ text string }

// Error implements error.
func (e *DeniedError) Error() string { return e.text }

func (c *Caller) denied(format string, args ...any) error {
	return &DeniedError{fmt.Sprintf("the key %q of %q %s", c.key.Name, c.Tenant, fmt.Sprintf(format, args...))}
}

// Key is the name of the key, "" for one without limits.
func (c *Caller) Key() string {
	if c.key == nil {
		return ""
	}
	return c.key.Name
}

// Limited reports whether the key has limits.
func (c *Caller) Limited() bool { return c.key != nil }

// Needs is a [DeniedError] unless the key has one of the scopes, which what needs.
func (c *Caller) Needs(what string, any ...access.Scope) error {
	if c.key == nil || len(c.key.Scopes) == 0 || len(any) == 0 {
		return nil
	}
	if slices.ContainsFunc(any, func(s access.Scope) bool { return slices.Contains(c.key.Scopes, s) }) {
		return nil
	}
	quoted := make([]string, len(any))
	for i, s := range any {
		quoted[i] = fmt.Sprintf("%q", s)
	}
	return c.denied("has the scopes %q; %s needs %s", c.key.Scopes, what, strings.Join(quoted, " or "))
}

// narrowed reports whether the key is limited to projects or runs.
func (c *Caller) narrowed() bool { return c.key != nil && len(c.key.Projects)+len(c.key.Runs) > 0 }

// sees reports whether the key covers a run of a project.
func (c *Caller) sees(project, run string) bool {
	return !c.narrowed() || project != "" && slices.Contains(c.key.Projects, project) ||
		run != "" && slices.Contains(c.key.Runs, run)
}

// Reaches is a [DeniedError] unless the key covers a run of a project. run is "" for one that is still to be made.
func (c *Caller) Reaches(project, run string) error {
	if c.sees(project, run) {
		return nil
	}
	if run == "" {
		return c.denied("is limited to %s; the project %.100q is not among them", c.limits(), project)
	}
	return c.denied("is limited to %s; %.200q is not among them", c.limits(), run)
}

// ReachesProject is a [DeniedError] unless the key covers something of a project: it, or a run PROJECT/NAME.
func (c *Caller) ReachesProject(project string) error {
	if c.sees(project, "") {
		return nil
	}
	if slices.ContainsFunc(c.key.Runs, func(run string) bool { return strings.HasPrefix(run, project+"/") }) {
		return nil
	}
	return c.Reaches(project, "")
}

// ReachesBase is a [DeniedError] for a key that is limited to projects or runs: a base model is none.
func (c *Caller) ReachesBase(name string) error {
	if !c.narrowed() {
		return nil
	}
	return c.denied("is limited to %s; the base model %.100q is not among them", c.limits(), name)
}

// Project returns the project of a key that is limited to one, for requests that name none.
func (c *Caller) Project() string {
	if c.narrowed() && len(c.key.Projects) == 1 {
		return c.key.Projects[0]
	}
	return ""
}

func (c *Caller) limits() string {
	var parts []string
	if len(c.key.Projects) > 0 {
		parts = append(parts, fmt.Sprintf("the projects %q", c.key.Projects))
	}
	if len(c.key.Runs) > 0 {
		parts = append(parts, fmt.Sprintf("the runs %q", c.key.Runs))
	}
	return strings.Join(parts, " and ")
}
