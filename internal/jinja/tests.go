package jinja

import "math/big"

// tests are the tests that can follow "is".
var tests map[string]filterFunc

func init() {
	is := func(f func(v any) bool) filterFunc {
		return func(_ *run, v any, a arg) any {
			a.bind("test")
			return f(v)
		}
	}
	constant := func(want any) filterFunc { return is(func(v any) bool { return v == want }) }
	operator := func(op string) filterFunc {
		return func(r *run, v any, a arg) any { return r.compare(op, v, a.bind("test", positional("other"))[0]) }
	}
	tests = map[string]filterFunc{
		"defined": is(func(v any) bool { return !isUndefined(v) }), "undefined": is(isUndefined),
		"none": constant(nil), "true": constant(true), "false": constant(false),
		"boolean": is(func(v any) bool { _, ok := v.(bool); return ok }),
		"integer": is(isInteger), "float": is(func(v any) bool { _, ok := v.(float64); return ok }), "number": is(isNumber),
		"string":   is(func(v any) bool { _, ok := text(v); return ok }),
		"mapping":  is(func(v any) bool { _, ok := v.(*Dict); return ok }),
		"sequence": is(isSequence), "iterable": is(iterable), "callable": is(callable),
		"escaped": is(func(v any) bool { _, ok := v.(markup); return ok }),
		"odd":     remainder(1, false), "even": remainder(0, false), "divisibleby": remainder(0, true),
		"lower": (*run).lowerTest, "upper": (*run).upperTest,
		"sameas": func(_ *run, v any, a arg) any { return same(v, a.bind("sameas", param1("other"))[0]) },
		"in":     func(r *run, v any, a arg) any { return r.contains(a.bind("in", param1("seq"))[0], v) },
		"filter": func(r *run, v any, a arg) any { a.bind("filter"); return known(r, v, filters) },
		"test":   func(r *run, v any, a arg) any { a.bind("test"); return known(r, v, tests) },
	}
	for op, aliases := range map[string][]string{
		"==": {"==", "eq", "equalto"}, "!=": {"!=", "ne"}, "<": {"<", "lt", "lessthan"}, "<=": {"<=", "le"},
		">": {">", "gt", "greaterthan"}, ">=": {">=", "ge"},
	} {
		for _, name := range aliases {
			tests[name] = operator(op)
		}
	}
}

func isUndefined(v any) bool {
	_, ok := v.(*undefined)
	return ok
}

func isInteger(v any) bool {
	switch v.(type) {
	case int, *big.Int:
		return true
	}
	return false
}

// isSequence reports whether v has a length and items.
func isSequence(v any) bool {
	switch v.(type) {
	case string, markup, *list, *tuple, *Dict, span, *undefined:
		return true
	}
	return false
}

// remainder returns a test of v % n, where n is the argument or 2.
func remainder(want int, argument bool) filterFunc {
	return func(r *run, v any, a arg) any {
		var n any = 2
		if argument {
			n = a.bind("divisibleby", param1("num"))[0]
		} else {
			a.bind("test")
		}
		return r.equal(r.operate("%", v, n), want)
	}
}

func (r *run) lowerTest(v any, a arg) any {
	a.bind("lower")
	return oneCase(r.str(v), isUpper)
}

func (r *run) upperTest(v any, a arg) any {
	a.bind("upper")
	return oneCase(r.str(v), isLower)
}

// known reports whether there is a filter or test of a name.
func known(r *run, v any, table map[string]filterFunc) bool {
	r.hashKey(v)
	s, ok := text(v)
	_, found := table[s]
	return ok && found
}
