package jinja

import (
	"context"
	"strings"
	"time"
)

// run is one rendering.
type run struct {
	template    *Template
	variables   *Dict
	vars        map[string]any // what the template has set at its top level
	now         func() time.Time
	limits      Limits
	out         *buffer
	root        *buffer
	line        int
	work, depth int
	asked       int // work at which ctx was asked last whether it has ended
	ctx         context.Context
	blockText   string // the text that a filter block or a set block is about to filter
	generations [][2]int
}

// buffer collects text.
type buffer struct{ b strings.Builder }

func (b *buffer) text() string { return b.b.String() }

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
	out := &buffer{}
	return &run{
		ctx:      opts.Context,
		template: t, variables: variables, vars: map[string]any{}, now: opts.Now, limits: opts.Limits.withDefaults(),
		out: out, root: out, line: 1,
	}
}

func (r *run) main() { r.template.root.body(r, newEnv(r.template.root, nil)) }

// resolve looks a name up in the context: what the template has set, the variables it was given, the globals.
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

// step counts a statement, an iteration or a call, and notes its line unless that is 0.
func (r *run) step(line int) {
	if line > 0 {
		r.line = line
	}
	r.charge(64)
}

// charge counts work: bytes or elements that are made.
func (r *run) charge(n int) {
	r.work += n
	if r.work > r.limits.Work || r.work < 0 {
		raise(limitError, "the template does too much: its limit of work is used up")
	}
	if r.work-r.asked > workPerAsk {
		r.asked = r.work
		if err := r.ctx.Err(); err != nil {
			panic(ended{err})
		}
	}
}

// workPerAsk is how much work may pass until the end of the context is noticed: less than a millisecond.
const workPerAsk = 1 << 16

// ended is the panic of a rendering whose context has ended.
type ended struct{ err error }

// itemWork is what looking at an item of a list counts.
const itemWork = 4

// look counts reading a text without making one.
func (r *run) look(v any) {
	if s, ok := text(v); ok {
		r.charge(len(s) / 4)
	}
}

// enter counts a call within calls. The result ends it.
func (r *run) enter() func() {
	r.depth++
	if r.depth > r.limits.Depth {
		raise(limitError, "the template nests its calls or values more than %d deep", r.limits.Depth)
	}
	return r.leave
}

func (r *run) leave() { r.depth-- }

// size checks the length of a string that is about to be made, in bytes.
func (r *run) size(n int) {
	if n > r.limits.Output || n < 0 {
		raise(limitError, "a text of more than %d bytes", r.limits.Output)
	}
	r.charge(n)
}

// write writes text.
func (r *run) write(s string) {
	r.charge(len(s))
	if r.out.b.Len()+len(s) > r.limits.Output {
		raise(limitError, "the output has more than %d bytes", r.limits.Output)
	}
	r.out.b.WriteString(s)
}

// writeText writes the value of a block, which has to be a text.
func (r *run) writeText(v any) {
	s, ok := text(v)
	if !ok {
		raise(typeError, "expected str instance, %s found", typeName(v))
	}
	r.write(s)
}

// capture returns what f writes.
func (r *run) capture(f func()) string {
	outer := r.out
	r.out = &buffer{}
	f()
	text := r.out.text()
	r.out = outer
	return text
}

// generation writes what a generation block holds.
func (r *run) generation(text string) {
	start := r.out.b.Len()
	r.write(text)
	if r.out == r.root {
		r.generations = append(r.generations, [2]int{start, start + len(text)})
	}
}

// block runs a block, which sees locals besides the context.
func (r *run) block(name string, locals map[string]any) {
	defer r.enter()()
	fn, outer := r.template.blocks[name], r.vars
	if len(locals) > 0 {
		r.vars = map[string]any{}
		for k, v := range outer {
			r.vars[k] = v
		}
		for k, v := range locals {
			if v != missing {
				r.vars[k] = v
			}
		}
	}
	fn.body(r, newEnv(fn, nil))
	r.vars = outer
}

// joined joins strings.
func (r *run) joined(parts []string, sep string) string {
	n := len(sep) * max(0, len(parts)-1)
	for _, p := range parts {
		n += len(p)
	}
	r.size(n)
	return strings.Join(parts, sep)
}
