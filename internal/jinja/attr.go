package jinja

import (
	"math"
	"math/big"
	"slices"
	"strings"
	"unicode/utf8"
)

// getattr is "v.name": an attribute, else an item.
func (r *run) getattr(v any, name string) any {
	if a, ok := r.attribute(v, name); ok {
		return a
	}
	if d, ok := v.(*Dict); ok {
		if item, ok := d.Get(name); ok {
			return item
		}
	}
	return &undefined{object: v, name: name, of: true}
}

// getitem is "v[key]": an item, else an attribute.
func (r *run) getitem(v, key any) any {
	if item, ok := r.item(v, key); ok {
		return item
	}
	if name, ok := text(key); ok {
		if a, ok := r.attribute(v, name); ok {
			return a
		}
	}
	return &undefined{object: v, name: key, of: true}
}

// item returns v[key]; ok is false if Python raises a TypeError or LookupError.
func (r *run) item(v, key any) (any, bool) {
	switch v := v.(type) {
	case *Dict:
		if !canBeKey(key) {
			return nil, false
		}
		return v.find(r, key)
	case *undefined:
		v.fail()
	}
	if s, ok := key.(slice); ok {
		switch v.(type) {
		case string, markup, *list, span:
			return r.slice(v, s), true
		}
		return nil, false
	}
	i, ok := integer(key)
	if !ok {
		return nil, false
	}
	switch v := v.(type) {
	case string, markup:
		t, _ := text(v)
		c, ok := r.character(t, i)
		return likeText(v, c), ok
	case span:
		i, ok := fromEnd(i, v.len())
		return v.start + i*v.step, ok
	case *list:
		if i, ok := fromEnd(i, len(v.items)); ok {
			return v.items[i], true
		}
	}
	return nil, false
}

// fromEnd returns an index of n items that counts from the end if it is negative; ok is false if there is no such item.
func fromEnd(i, n int) (index int, ok bool) {
	if i < 0 {
		i += n
	}
	return i, i >= 0 && i < n
}

// character returns the i-th code point of a text, counted from the end if i is negative.
func (r *run) character(s string, i int) (string, bool) {
	r.look(s)
	n := utf8.RuneCountInString(s)
	i, ok := fromEnd(i, n)
	if !ok {
		return "", false
	}
	if n == len(s) {
		return s[i : i+1], true
	}
	r.charge(4 * len(s))
	return string([]rune(s)[i]), true
}

// attribute returns an attribute that is not an item; ok is false if there is none. An attribute that the sandbox
// forbids is undefined, and using it is a SecurityError.
func (r *run) attribute(v any, name string) (a any, ok bool) {
	if u, isUndefined := v.(*undefined); isUndefined {
		if !strings.HasPrefix(name, "__") || !strings.HasSuffix(name, "__") {
			u.fail()
		}
		return nil, false
	}
	if ns, isNamespace := v.(*namespace); isNamespace {
		return ns.attrs.Get(name)
	}
	if l, ok := v.(*list); ok && l.own && (name == "append" || name == "pop") {
		return l.change(name), true
	}
	if special(name) || changes(v, name) {
		return &undefined{
			hint:   "access to attribute " + reprString(name) + " of '" + typeName(v) + "' object is unsafe.",
			object: v, name: name, of: true, kind: securityError,
		}, true
	}
	switch v := v.(type) {
	case string, markup:
		return stringMethod(v, name)
	case *list, span:
		return r.sequenceMethod(v, name)
	case *Dict:
		return dictMethod(v, name)
	case *loop:
		if get, ok := loopAttributes[name]; ok {
			return get(v), true
		}
	case *macro:
		return v.attribute(name)
	case *cycler:
		return v.attribute(name)
	case *joiner:
		return map[string]any{"sep": v.sep, "used": v.used}[name], name == "sep" || name == "used"
	case templateSelf:
		return method(name, func(r *run) any {
			return r.capture(func() { r.block(name, nil) })
		}), r.template.blocks[name] != nil
	case int, bool, *big.Int, float64:
		return numberAttribute(v, name)
	case *builtin:
		a, ok = v.attrs[name]
		return a, ok
	}
	return nil, false
}

// special reports whether an attribute is one of those that all Python objects have, which templates try to use.
func special(name string) bool {
	switch name {
	case "__class__", "__doc__", "__dict__", "__init__", "__str__", "__repr__", "__eq__", "__hash__", "__len__",
		"__iter__", "__getitem__", "__contains__", "__getattribute__", "__reduce__", "__module__",
		"__subclasshook__", "__dir__", "__format__", "__sizeof__", "__new__", "__setattr__", "__delattr__",
		"__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__init_subclass__", "__reduce_ex__":
		return true
	}
	return false
}

// changes reports whether a method modifies its receiver.
func changes(v any, name string) bool {
	_, isDict := v.(*Dict)
	l, isList := v.(*list)
	isList = isList && !l.tuple
	switch name {
	case "clear", "pop":
		return isDict || isList
	case "append", "reverse", "insert", "sort", "extend", "remove":
		return isList
	case "popitem", "setdefault", "update":
		return isDict
	}
	return false
}

// change is the methods append and pop of a list that the rendering has made. The sandbox of transformers refuses them
// there too, but the released template of Kimi K2 needs them for a queue of ids, which others render. Only values that
// hold no others are appended, so that no list contains itself.
func (l *list) change(name string) any {
	return newBuiltin(name, func(r *run, a arg) any {
		a.noNamed(name)
		r.charge(16 + 16*len(l.items))
		if name == "append" {
			switch value := a.bind(name, positional("object"))[0].(type) {
			case string, markup, int, bool, nil:
				l.items = append(slices.Clip(l.items), value)
				return nil
			}
			raise(securityError, "a value of a list cannot be appended unless it is a text or a number")
		}
		at, isInt := a.bind(name, optionalPositional("index", -1))[0].(int)
		at, ok := fromEnd(at, len(l.items))
		if !ok || !isInt {
			raise(indexError, "pop index out of range")
		}
		value := l.items[at]
		l.items = slices.Delete(slices.Clone(l.items), at, at+1)
		return value
	})
}

func (r *run) sequenceMethod(v any, name string) (any, bool) {
	if s, ok := v.(span); ok {
		switch name {
		case "start":
			return s.start, true
		case "stop":
			return s.stop, true
		case "step":
			return s.step, true
		}
	}
	if l, ok := v.(*list); ok && l.group && (name == "grouper" || name == "list") {
		return l.items[boolInt(name == "list")], true
	}
	switch name {
	case "count":
		return newBuiltin(name, func(r *run, a arg) any {
			want, n := a.bind(name, positional("value"))[0], 0
			for _, item := range r.items(v) {
				r.charge(itemWork)
				n += boolInt(r.equal(item, want))
			}
			return n
		}), true
	case "index":
		return newBuiltin(name, func(r *run, a arg) any {
			args := a.bind(name, positional("value"), optionalPositional("start", 0), optionalPositional("stop", math.MaxInt))
			items := r.items(v)
			what := "slice indices must be integers or have an __index__ method"
			from, to := clampRange(r.clampInt(args[1], what), r.clampInt(args[2], what), len(items))
			for i := from; i < to; i++ {
				r.charge(itemWork)
				if r.equal(items[i], args[0]) {
					return i
				}
			}
			raise(valueError, "%s is not in %s", r.repr(args[0]), typeName(v))
			return nil
		}), true
	case "copy":
		l, ok := v.(*list)
		return method(name, func(*run) any { return newList(l.items...) }), ok && !l.tuple
	}
	return nil, false
}

// clampRange clamps start and stop to n items; negative ones count from the end.
func clampRange(start, stop, n int) (from, to int) {
	clamp := func(i int) int {
		if i < 0 {
			i = max(0, i+n)
		}
		return min(i, n)
	}
	return clamp(start), clamp(stop)
}

func dictMethod(d *Dict, name string) (any, bool) {
	switch name {
	case "keys", "values", "items":
		return method(name, func(*run) any { return &view{d, name} }), true
	case "copy":
		return method(name, func(*run) any { return d.Clone() }), true
	case "get":
		return newBuiltin(name, func(r *run, a arg) any {
			args := a.bind(name, positional("key"), optionalPositional("default", nil))
			if v, ok := d.find(r, args[0]); ok {
				return v
			}
			return args[1]
		}), true
	case "fromkeys":
		return newBuiltin(name, fromKeys), true
	}
	return nil, false
}

// fromKeys is dict.fromkeys.
func fromKeys(r *run, a arg) any {
	args := a.bind("fromkeys", positional("iterable"), optionalPositional("value", nil))
	d := NewDict()
	for _, k := range r.items(args[0]) {
		d.set(r, k, args[1])
	}
	return d
}

func numberAttribute(v any, name string) (any, bool) {
	f, isFloat := v.(float64)
	switch name {
	case "real":
		return positive(v), true
	case "imag":
		if isFloat {
			return 0.0, true
		}
		return 0, true
	case "numerator":
		return positive(v), !isFloat
	case "denominator":
		return 1, !isFloat
	case "is_integer":
		return method(name, func(*run) any { return f == math.Trunc(f) && !math.IsInf(f, 0) }), isFloat
	case "bit_length":
		return method(name, func(*run) any { return toBig(v).BitLen() }), !isFloat
	case "conjugate":
		return method(name, func(*run) any { return positive(v) }), true
	}
	return nil, false
}

func (c *cycler) attribute(name string) (any, bool) {
	switch name {
	case "current":
		return c.items[c.pos], true
	case "pos":
		return c.pos, true
	case "items":
		return newTuple(c.items...), true
	case "next":
		return method(name, func(*run) any {
			v := c.items[c.pos]
			c.pos = (c.pos + 1) % len(c.items)
			return v
		}), true
	case "reset":
		return method(name, func(*run) any {
			c.pos = 0
			return nil
		}), true
	}
	return nil, false
}

// slice is v[start:stop:step].
func (r *run) slice(v any, s slice) any {
	switch v := v.(type) {
	case string, markup:
		t, _ := text(v)
		return likeText(v, r.sliceText(t, s))
	case span:
		start, step, _, stop := r.sliceIndices(s, v.len())
		return span{v.start + start*v.step, v.start + stop*v.step, v.step * step}
	case *list:
		start, step, n, _ := r.sliceIndices(s, len(v.items))
		r.charge(16 * n)
		out := make([]any, n)
		for i := range out {
			out[i] = v.items[start+i*step]
		}
		return &list{items: out, tuple: v.tuple}
	case *Dict:
		raise(typeError, "unhashable type: 'slice'")
	}
	reject(v, "'%s' object is not subscriptable", typeName(v))
	return nil
}

func (r *run) sliceText(t string, s slice) string {
	n := utf8.RuneCountInString(t)
	start, step, count, _ := r.sliceIndices(s, n)
	r.charge(4 * len(t))
	if n == len(t) && step == 1 {
		return t[start : start+count]
	}
	runes := []rune(t)
	if step == 1 {
		return string(runes[start : start+count])
	}
	out := make([]rune, count)
	for i := range out {
		out[i] = runes[start+i*step]
	}
	return string(out)
}

// sliceIndices returns the start of a slice of n items, its step, its number of items, and its stop.
func (r *run) sliceIndices(s slice, n int) (start, step, count, stop int) {
	what := "slice indices must be integers or None or have an __index__ method"
	step = 1
	if s.step != nil {
		step = r.clampInt(s.step, what)
	}
	if step == 0 {
		raise(valueError, "slice step cannot be zero")
	}
	step = max(step, -math.MaxInt)
	low, high := 0, n
	if step < 0 {
		low, high = -1, n-1
	}
	bound := func(v any, otherwise int) int {
		if v == nil {
			return otherwise
		}
		i := r.clampInt(v, what)
		if i < 0 {
			return max(i+n, low)
		}
		return min(i, high)
	}
	if step > 0 {
		start, stop = bound(s.start, low), bound(s.stop, high)
	} else {
		start, stop = bound(s.start, high), bound(s.stop, low)
	}
	return start, step, span{start, stop, step}.len(), stop
}
