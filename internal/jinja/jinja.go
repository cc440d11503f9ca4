// Package jinja renders chat templates. It is Jinja2 3.1 as Hugging Face's transformers configures it: an immutable
// sandbox, trim_blocks and lstrip_blocks, break and continue, {% generation %}, and the functions raise_exception and
// strftime_now. Autoescape is off. Lists that a template writes have append and pop, which the sandbox refuses.
//
// Values are Python's: printing, comparing, slicing, formatting and the methods of strings, lists and dicts give the
// same results as in Python. An exception of Python is an [*Error], with the line of the template. Statements that need
// other files (include, import, extends) are errors when they are reached, and so are the filters pprint, random,
// urlize and wordwrap, lipsum, bytes and sets, which no chat template needs; autoescape is an error when the template
// is parsed.
//
// A [Template] is parsed once and can be rendered by many goroutines at a time. [Limits] bound the resources of a
// rendering.
//
// The package is frozen: a new feature needs a released template that uses it.
package jinja

import (
	"cmp"
	"context"
	"fmt"
	"time"
)

// Error is an error of a template: it does not parse, raised an exception, or exceeded a limit.
type Error struct {
	// Line of the template, from 1.
	Line int
	// Kind is the name of the exception in Python, such as "TypeError"; "TemplateError" is that of raise_exception,
	// "LimitError" that of exceeded [Limits].
	Kind    string
	Message string
}

// Error implements error.
func (e *Error) Error() string {
	return fmt.Sprintf("jinja: line %d: %s: %s", e.Line, e.Kind, e.Message)
}

// Limits bound the resources of a rendering. Zero fields are the defaults.
type Limits struct {
	// Work bounds time and memory together: a byte that is written counts 1, a list item 16, a dict item, statement,
	// iteration or call 64; a byte that is only read counts 1/4, an item 4. Default 2^28.
	Work int
	// Depth bounds nested calls: macros, blocks and recursive loops. Default 200.
	Depth int
	// Output bounds the length in bytes of the rendered text and of each intermediate string. Default 2^24.
	Output int
}

func (l Limits) withDefaults() Limits {
	return Limits{cmp.Or(l.Work, 1<<28), cmp.Or(l.Depth, 200), cmp.Or(l.Output, 1<<24)}
}

// Options are the options of one rendering. The zero value is the default.
type Options struct {
	// Context cancels the rendering, which then returns its error. Default: no cancellation.
	Context context.Context
	// Now is the clock of strftime_now. Default time.Now.
	Now    func() time.Time
	Limits Limits
}

// Output is a rendered template.
type Output struct {
	Text string
	// Generations are the parts of Text, as byte offsets, that {% generation %} blocks outside macros wrote.
	Generations [][2]int
}

// Template is a parsed template.
type Template struct {
	source *source
	root   *function
	blocks map[string]*function
}

// Parse parses a template.
func Parse(text string) (t *Template, err error) {
	defer catch(&err, nil)
	return compile(parse(text)), nil
}

// Render renders the template with the given variables, which come from [FromJSON] and [NewDict].
func (t *Template) Render(variables *Dict, opts Options) (out *Output, err error) {
	r := newRun(t, variables, opts)
	defer catch(&err, r)
	t.root.body(r, newEnv(t.root, nil))
	return &Output{Text: r.out.String(), Generations: r.generations}, nil
}

// Literals returns the literal texts of the template: its data and its string constants.
func (t *Template) Literals() []string { return t.source.literals }

// catch recovers a panic with an *Error as an error. Other panics continue.
func catch(err *error, r *run) {
	switch e := recover().(type) {
	case nil:
	case *Error:
		if e.Line == 0 && r != nil {
			e = &Error{r.line, e.Kind, e.Message}
		}
		*err = e
	case failure:
		*err = e.error
	default:
		panic(e)
	}
}

// The kinds of errors that are raised in several functions.
const (
	syntaxError    = "TemplateSyntaxError"
	assertionError = "TemplateAssertionError"
	runtimeError   = "TemplateRuntimeError"
	undefinedError = "UndefinedError"
	securityError  = "SecurityError"
	argumentError  = "FilterArgumentError"
	typeError      = "TypeError"
	valueError     = "ValueError"
	indexError     = "IndexError"
	overflowError  = "OverflowError"
	limitError     = "LimitError"
)

// raise panics with an error on the current line, which ends the rendering.
func raise(kind, format string, args ...any) {
	panic(&Error{Kind: kind, Message: fmt.Sprintf(format, args...)})
}

// raiseAt panics with an error on a line.
func raiseAt(line int, kind, format string, args ...any) {
	panic(&Error{Line: line, Kind: kind, Message: fmt.Sprintf(format, args...)})
}
