package jinja

import (
	"context"
	"maps"
	"strings"
	"time"
)

// run is one rendering.
type run struct {
	template    *Template
	variables   *Dict
	vars        map[string]any // set at the top level of the template
	now         func() time.Time
	limits      Limits
	out         *strings.Builder
	root        *strings.Builder // of the whole rendering
	line        int
	work, depth int
	asked       int // the work at the last check of ctx
	ctx         context.Context
	blockText   string // the text of a filter block or set block, before it is filtered
	generations [][2]int
}

func newRun(t *Template, variables *Dict, opts Options) *run {
	if variables == nil {
		variables = NewDict()
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.Context == nil {
		opts.Context = context.Background()
	}
	out := &strings.Builder{}
	return &run{
		ctx:      opts.Context,
		template: t, variables: variables, vars: map[string]any{}, now: opts.Now, limits: opts.Limits.withDefaults(),
		out: out, root: out, line: 1,
	}
}

// resolve looks up a name in the context: the variables that the template has set, those given to it, the globals.
func (r *run) resolve(name string) any {
	if v, ok := r.vars[name]; ok {
		return v
	}
	if v, ok := r.variables.Get(name); ok {
		return v
	}
	if v, ok := globals[name]; ok {
		return v
	}
	return missing
}

// step counts a statement, an iteration or a call, and records its line unless that is 0.
func (r *run) step(line int) {
	if line > 0 {
		r.line = line
	}
	r.charge(64)
}

// charge counts work: bytes or items that are written.
func (r *run) charge(n int) {
	r.work += n
	if r.work > r.limits.Work || r.work < 0 {
		raise(limitError, "the template exceeds the limit of work")
	}
	if r.work-r.asked > workPerAsk {
		r.asked = r.work
		if err := r.ctx.Err(); err != nil {
			panic(failure{err})
		}
	}
}

// workPerAsk is the work between checks of the context: less than a millisecond.
const workPerAsk = 1 << 16

// failure is the panic value for an error that is not of the template, such as the end of a rendering's context.
type failure struct{ error }

// itemWork is the work of reading a list item.
const itemWork = 4

// look counts the work of reading a text.
func (r *run) look(v any) {
	if s, ok := text(v); ok {
		r.charge(len(s) / 4)
	}
}

// enter counts a nested call; the result must be called at its end.
func (r *run) enter() func() {
	r.depth++
	if r.depth > r.limits.Depth {
		raise(limitError, "the template nests its calls or values more than %d deep", r.limits.Depth)
	}
	return r.leave
}

func (r *run) leave() { r.depth-- }

// size checks the length in bytes of a string before it is built.
func (r *run) size(n int) {
	if n > r.limits.Output || n < 0 {
		raise(limitError, "a text of more than %d bytes", r.limits.Output)
	}
	r.charge(n)
}

// times returns n * each, which must not exceed the limit of a text.
func (r *run) times(n, each int) int {
	if each > 0 && n > r.limits.Output/each {
		r.size(r.limits.Output + 1)
	}
	return n * each
}

// write writes text.
func (r *run) write(s string) {
	r.charge(len(s))
	if r.out.Len()+len(s) > r.limits.Output {
		raise(limitError, "the output has more than %d bytes", r.limits.Output)
	}
	r.out.WriteString(s)
}

// writeText writes the value of a block, which must be a str.
func (r *run) writeText(v any) {
	s, ok := text(v)
	if !ok {
		raise(typeError, "expected str instance, %s found", typeName(v))
	}
	r.write(s)
}

// capture returns the output of f.
func (r *run) capture(f func()) string {
	outer := r.out
	r.out = &strings.Builder{}
	f()
	text := r.out.String()
	r.out = outer
	return text
}

// generation writes the content of a generation block, and records its range.
func (r *run) generation(text string) {
	start := r.out.Len()
	r.write(text)
	if r.out == r.root {
		r.generations = append(r.generations, [2]int{start, start + len(text)})
	}
}

// block runs a block, which sees locals in addition to the context.
func (r *run) block(name string, locals map[string]any) {
	defer r.enter()()
	fn, outer := r.template.blocks[name], r.vars
	if len(locals) > 0 {
		r.vars = maps.Clone(outer)
		for k, v := range locals {
			if v != missing {
				r.vars[k] = v
			}
		}
	}
	fn.body(r, newEnv(fn, nil))
	r.vars = outer
}

// joined concatenates strings.
func (r *run) joined(parts []string, sep string) string {
	n := len(sep) * max(0, len(parts)-1)
	for _, p := range parts {
		n += len(p)
	}
	r.size(n)
	return strings.Join(parts, sep)
}
