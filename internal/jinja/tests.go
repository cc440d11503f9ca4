package jinja

// tests are the tests that can follow "is".
var tests map[string]filterFunc

func init() {
	operator := func(op string) filterFunc {
		return func(r *run, v any, a arg) any { return r.compare(op, v, a.bind("test", positional("other"))[0]) }
	}
	tests = map[string]filterFunc{
		"sameas": func(_ *run, v any, a arg) any { return same(v, a.bind("sameas", param1("other"))[0]) },
		"in":     func(r *run, v any, a arg) any { return r.contains(a.bind("in", param1("seq"))[0], v) },
		"divisibleby": func(r *run, v any, a arg) any {
			return r.equal(r.operate("%", v, a.bind("divisibleby", param1("num"))[0]), 0)
		},
	}
	for op, aliases := range map[string][]string{
		"==": {"==", "eq", "equalto"}, "!=": {"!=", "ne"}, "<": {"<", "lt", "lessthan"}, "<=": {"<=", "le"},
		">": {">", "gt", "greaterthan"}, ">=": {">=", "ge"},
	} {
		for _, name := range aliases {
			tests[name] = operator(op)
		}
	}
	for name, f := range map[string]func(r *run, v any) bool{ // without arguments
		"defined":   func(r *run, v any) bool { return !is[*undefined](r, v) },
		"undefined": is[*undefined], "boolean": is[bool], "float": is[float64], "mapping": is[*Dict], "escaped": is[markup],
		"none":     func(_ *run, v any) bool { return v == nil },
		"true":     func(_ *run, v any) bool { return v == true },
		"false":    func(_ *run, v any) bool { return v == false },
		"number":   func(_ *run, v any) bool { return isNumber(v) },
		"integer":  func(r *run, v any) bool { return isNumber(v) && !is[float64](r, v) && !is[bool](r, v) },
		"string":   func(_ *run, v any) bool { _, ok := text(v); return ok },
		"sequence": func(_ *run, v any) bool { return isSequence(v) },
		"iterable": func(_ *run, v any) bool { return iterable(v) },
		"callable": func(_ *run, v any) bool { return callable(v) },
		"odd":      func(r *run, v any) bool { return r.equal(r.operate("%", v, 2), 1) },
		"even":     func(r *run, v any) bool { return r.equal(r.operate("%", v, 2), 0) },
		"lower":    func(r *run, v any) bool { return oneCase(r.str(v), isUpper) },
		"upper":    func(r *run, v any) bool { return oneCase(r.str(v), isLower) },
		"filter":   func(r *run, v any) bool { return known(r, v, filters) },
		"test":     func(r *run, v any) bool { return known(r, v, tests) },
	} {
		tests[name] = func(r *run, v any, a arg) any {
			a.bind(name)
			return f(r, v)
		}
	}
}

// is is a test of the type of a value.
func is[T any](_ *run, v any) bool {
	_, ok := v.(T)
	return ok
}

// isSequence reports whether v has a length and items.
func isSequence(v any) bool {
	switch v.(type) {
	case string, markup, *list, *Dict, span, *undefined:
		return true
	}
	return false
}

// known reports whether there is a filter or test of a name.
func known(r *run, v any, table map[string]filterFunc) bool {
	r.hashKey(v)
	s, ok := text(v)
	_, found := table[s]
	return ok && found
}
