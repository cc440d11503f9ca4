// Package jinja renders chat templates. It is Jinja2 3.1 as Hugging Face's transformers sets it up: a sandbox in which
// nothing can be changed, trim_blocks and lstrip_blocks, break and continue, {% generation %}, and the functions
// raise_exception and strftime_now. Autoescape is off.
//
// Values are Python's: printing, comparing, slicing, formatting and the methods of strings, lists and dicts give what
// Python gives, and what raises an exception there is an [*Error] here, with the line of the template. What needs other
// files (include, import, extends) is an error when it is reached, and so are the filters pprint, random, urlize and
// wordwrap, lipsum, bytes and sets, which no chat template has use for; autoescape is one when the template is parsed.
//
// A [Template] is parsed once and can be rendered by many goroutines at a time. What a template may use up is bounded by
// [Limits].
package jinja

import (
	"context"
	"fmt"
	"time"
)

// Error is what a template did wrong: it does not parse, it raised an exception, or it ran into a limit.
type Error struct {
	// Line of the template, from 1.
	Line int
	// Kind is the name of the exception in Python, such as "TypeError"; "TemplateError" is what raise_exception raises,
	// "LimitError" what exceeds [Limits].
	Kind    string
	Message string
}

// Error implements error.
func (e *Error) Error() string {
	return fmt.Sprintf("jinja: line %d: %s: %s", e.Line, e.Kind, e.Message)
}

// Limits bound what rendering may use up. Zero fields are the defaults.
type Limits struct {
	// Work bounds time and memory together: a byte that is made counts 1, an item of a list 16, one of a dict, a statement,
	// iteration or call 64; of what is only looked at a byte counts 1/4 and an item 4. Default 2^28.
	Work int
	// Depth bounds calls within calls: macros, blocks and recursive loops. Default 200.
	Depth int
	// Output bounds the rendered text, and every string on the way, in bytes. Default 2^24.
	Output int
}

func (l Limits) withDefaults() Limits {
	if l.Work == 0 {
		l.Work = 1 << 28
	}
	if l.Depth == 0 {
		l.Depth = 200
	}
	if l.Output == 0 {
		l.Output = 1 << 24
	}
	return l
}

// Options shape one rendering. The zero value is the default.
type Options struct {
	// Context ends the rendering early, with its error. Default: none does.
	Context context.Context
	// Now is the clock of strftime_now. Default time.Now.
	Now    func() time.Time
	Limits Limits
}

// Output is a rendered template.
type Output struct {
	Text string
	// Generations are the parts of Text, as byte offsets, that {% generation %} blocks wrote outside of macros.
	Generations [][2]int
}

// Template is a parsed template.
type Template struct {
	source *source
	root   *function
	blocks map[string]*function
}

// Parse reads a template.
func Parse(text string) (t *Template, err error) {
	defer catch(&err, nil)
	src := parse(text)
	return compile(src), nil
}

// Render renders the template with the given variables, which come from [FromJSON] and [NewDict].
func (t *Template) Render(variables *Dict, opts Options) (out *Output, err error) {
	r := newRun(t, variables, opts)
	defer catch(&err, r)
	r.main()
	return &Output{Text: r.out.text(), Generations: r.generations}, nil
}

// Literals returns the texts that stand in the template: its data and its string constants.
func (t *Template) Literals() []string { return t.source.literals }

// catch turns a panic with an *Error into an error. Other panics go on.
func catch(err *error, r *run) {
	switch e := recover().(type) {
	case nil:
	case *Error:
		if e.Line == 0 && r != nil {
			e = &Error{r.line, e.Kind, e.Message}
		}
		*err = e
	case ended:
		*err = e.err
	default:
		panic(e)
	}
}

// The kinds of errors that are named more than once.
const (
	syntaxError    = "TemplateSyntaxError"
	assertionError = "TemplateAssertionError"
	runtimeError   = "TemplateRuntimeError"
	undefinedError = "UndefinedError"
	securityError  = "SecurityError"
	argumentError  = "FilterArgumentError"
	typeError      = "TypeError"
	valueError     = "ValueError"
	overflowError  = "OverflowError"
	limitError     = "LimitError"
)

// raise ends the rendering with an error on the current line.
func raise(kind, format string, args ...any) {
	panic(&Error{Kind: kind, Message: fmt.Sprintf(format, args...)})
}

// raiseAt ends with an error on a line.
func raiseAt(line int, kind, format string, args ...any) {
	panic(&Error{Line: line, Kind: kind, Message: fmt.Sprintf(format, args...)})
}
