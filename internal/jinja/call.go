package jinja

import "slices"

// call is v(...).
func (r *run) call(v any, a arg, line int) any {
	r.step(line)
	switch f := v.(type) {
	case *builtin:
		return f.call(r, a)
	case *macro:
		out := f.call(r, a)
		r.line = line
		return out
	case *loop:
		out := f.call(r, a)
		r.line = line
		return out
	case *joiner:
		a.bind("joiner")
		if !f.used {
			f.used = true
			return ""
		}
		return f.sep
	case *undefined:
		f.fail()
	}
	raise(typeError, "'%s' object is not callable", typeName(v))
	return nil
}

func callable(v any) bool {
	switch v.(type) {
	case *builtin, *macro, *loop, *joiner, *undefined:
		return true
	}
	return false
}

// macro is a macro with the environment of its definition.
type macro struct {
	code *macroCode
	env  *env
}

// call runs a macro, and returns its output.
func (m *macro) call(r *run, a arg) string {
	defer r.enter()()
	e := newEnv(m.code.fn, m.env)
	m.code.bind(r, e, m.arguments(r, a))
	return r.capture(func() { m.code.fn.body(r, e) })
}

// arguments orders the arguments of a macro by its variables; those not given are missing.
func (m *macro) arguments(r *run, a arg) []any {
	code := m.code
	named, taken := a.named, map[any]bool{}
	if named == nil {
		named = NewDict()
	}
	take := func(name string) any {
		v, ok := named.Get(name)
		if !ok {
			return missing
		}
		taken[name] = true
		return v
	}
	n := min(len(a.pos), len(code.params))
	values := slices.Clone(a.pos[:n])
	for _, name := range code.params[n:] {
		values = append(values, take(name))
	}
	if code.wantsCaller && !code.explicitCaller {
		caller := take("caller")
		if caller == missing || caller == nil {
			caller = &undefined{hint: "No caller defined", name: "caller"}
		}
		values = append(values, caller)
	}
	rest := NewDict()
	for i, k := range named.keys {
		if !taken[k] {
			rest.insert(k, k, named.values[i])
		}
	}
	switch {
	case code.wantsKwargs:
		values = append(values, rest)
	case rest.Len() > 0:
		raise(typeError, "macro '%s' takes no keyword argument %s", code.name, r.repr(rest.keys[0]))
	}
	switch {
	case code.wantsVarargs:
		values = append(values, newTuple(a.pos[n:]...))
	case len(a.pos) > len(code.params):
		raise(typeError, "macro '%s' takes not more than %d argument(s)", code.name, len(code.params))
	}
	return values
}

// attribute returns an attribute of a macro.
func (m *macro) attribute(name string) (any, bool) {
	switch name {
	case "name":
		if m.code.name == "" {
			return nil, true
		}
		return m.code.name, true
	case "arguments":
		out := newTuple()
		for _, p := range m.code.params {
			out.items = append(out.items, p)
		}
		return out, true
	case "catch_kwargs":
		return m.code.wantsKwargs, true
	case "catch_varargs":
		return m.code.wantsVarargs, true
	case "caller":
		return m.code.wantsCaller, true
	case "explicit_caller":
		return m.code.explicitCaller, true
	}
	return nil, false
}

// parameter of a built-in function.
type parameter struct {
	name     string
	optional bool
	value    any  // the default, if it is optional
	posOnly  bool // it cannot be passed by name
}

func param1(name string) parameter { return parameter{name: name} }

func optional(name string, value any) parameter {
	return parameter{name: name, optional: true, value: value}
}

func positional(name string) parameter { return parameter{name: name, posOnly: true} }

func optionalPositional(name string, value any) parameter {
	return parameter{name, true, value, true}
}

// bind returns the arguments of a function in the order of its parameters.
func (a arg) bind(function string, params ...parameter) []any {
	if len(a.pos) > len(params) {
		raise(typeError, "%s() takes at most %d arguments (%d given)", function, len(params), len(a.pos))
	}
	out := make([]any, len(params))
	copy(out, a.pos)
	if len(params) > 0 && params[0].posOnly { // then all are
		a.noNamed(function)
	}
	used := 0
	for i, p := range params {
		var named any
		ok := false
		if a.named != nil && !p.posOnly {
			named, ok = a.named.Get(p.name)
		}
		switch {
		case ok && i < len(a.pos):
			raise(typeError, "%s() got multiple values for argument '%s'", function, p.name)
		case ok:
			out[i] = named
			used++
		case i >= len(a.pos) && !p.optional:
			raise(typeError, "%s() missing required argument: '%s'", function, p.name)
		case i >= len(a.pos):
			out[i] = p.value
		}
	}
	if a.named != nil && used < a.named.Len() {
		raise(typeError, "%s() got an unexpected keyword argument", function)
	}
	return out
}

// noNamed rejects keyword arguments.
func (a arg) noNamed(function string) {
	if a.named != nil && a.named.Len() > 0 {
		raise(typeError, "%s() takes no keyword arguments", function)
	}
}
