package jinja

import "unicode/utf8"

// maxGenerators bounds the length of a chain of generators.
const maxGenerators = 500

// newGenerator returns a generator over the items of source, which may be a generator too.
func newGenerator(source any, next iterator) *generator {
	g := &generator{next: next, name: "generator"}
	if s, ok := source.(*generator); ok {
		g.depth = s.depth + 1
	}
	if g.depth > maxGenerators {
		raise(limitError, "a chain of more than %d generators", maxGenerators)
	}
	return g
}

// lazily returns a generator over the results of a step for the items of v, without those for which the step reports
// false. It does nothing until the first item is read: then begin returns the step, nil if there is nothing to iterate
// over.
func (r *run) lazily(v any, begin func() (step func(item any) (made any, keep bool))) *generator {
	var step func(any) (any, bool)
	var next iterator
	return newGenerator(v, func() (any, bool) {
		if next == nil {
			if step = begin(); step == nil {
				return nil, false
			}
			next = r.iterate(v)
		}
		for item := range next.all {
			r.step(0)
			if made, keep := step(item); keep {
				return made, true
			}
		}
		return nil, false
	})
}

// iterable reports whether v can be iterated over.
func iterable(v any) bool { return iterate(v) != nil }

// all yields the items that are left.
func (next iterator) all(yield func(item any) bool) {
	for item, ok := next(); ok && yield(item); {
		item, ok = next()
	}
}

// iterate is iter(v).
func (r *run) iterate(v any) iterator {
	next := iterate(v)
	if next == nil {
		raise(typeError, "'%s' object is not iterable", typeName(v))
	}
	return next
}

// iterate returns nil if v cannot be iterated over.
func iterate(v any) iterator {
	switch v := v.(type) {
	case string:
		return characters(v)
	case markup:
		return characters(string(v))
	case *list:
		return each(v.items)
	case *Dict:
		return each(v.keys)
	case *undefined:
		return each(nil)
	case *view:
		return each(v.items())
	case span:
		i, n := v.start, v.len()
		return func() (any, bool) {
			if n == 0 {
				return nil, false
			}
			n--
			i += v.step
			return i - v.step, true
		}
	case *generator:
		return v.next
	case *loop:
		return func() (any, bool) {
			if !v.advance() {
				return nil, false
			}
			return newTuple(v.current, v), true
		}
	}
	return nil
}

func each(items []any) iterator {
	i := 0
	return func() (any, bool) {
		if i == len(items) {
			return nil, false
		}
		i++
		return items[i-1], true
	}
}

func characters(s string) iterator {
	return func() (any, bool) {
		_, n := utf8.DecodeRuneInString(s)
		c := s[:n]
		s = s[n:]
		return c, n > 0
	}
}

// items is list(v), as a slice that must not be modified.
func (r *run) items(v any) []any {
	if items, ok := sequence(v); ok {
		return items
	}
	var out []any
	for item := range r.iterate(v).all {
		r.charge(16)
		out = append(out, item)
	}
	return out
}

// unpack returns the items of v, which must be n.
func (r *run) unpack(v any, n int) []any {
	next := iterate(v)
	if next == nil {
		raise(typeError, "cannot unpack non-iterable %s object", typeName(v))
	}
	var out []any
	for item := range next.all {
		if len(out) == n {
			raise(valueError, "too many values to unpack (expected %d)", n)
		}
		out = append(out, item)
	}
	if len(out) < n {
		raise(valueError, "not enough values to unpack (expected %d, got %d)", n, len(out))
	}
	return out
}

// loop is the variable "loop".
type loop struct {
	r         *run
	items     any
	next      iterator
	again     recursion
	depth0    int
	index0    int
	known     int // the number of items, -1 if it is not known yet
	current   any
	before    any
	after     any // the next item, if peeked
	peeked    bool
	exhausted bool
	changedTo any
}

func newLoop(r *run, items any, again recursion, depth int) *loop {
	return &loop{
		r: r, items: items, next: r.iterate(items), again: again, depth0: depth,
		index0: -1, known: -1, current: missing, changedTo: missing,
	}
}

// advance goes to the next item.
func (l *loop) advance() bool {
	item, ok := l.peek()
	if !ok {
		return false
	}
	l.peeked, l.after = false, nil
	l.index0++
	l.before, l.current = l.current, item
	return true
}

// peek returns the next item.
func (l *loop) peek() (any, bool) {
	if !l.peeked && !l.exhausted {
		item, ok := l.next()
		l.after, l.peeked, l.exhausted = item, ok, !ok
	}
	return l.after, l.peeked
}

// length is the number of items; it evaluates all items of a generator.
func (l *loop) length() int {
	if l.known >= 0 {
		return l.known
	}
	if n, ok := length(l.items); ok {
		l.known = n
		return n
	}
	rest := l.r.items(newGenerator(nil, l.next))
	l.next = each(rest)
	l.known = len(rest) + l.index0 + 1 + boolInt(l.peeked)
	return l.known
}

// loopAttributes are the attributes of "loop".
var loopAttributes map[string]func(l *loop) any

func init() {
	loopAttributes = map[string]func(l *loop) any{
		"index0":    func(l *loop) any { return l.index0 },
		"index":     func(l *loop) any { return l.index0 + 1 },
		"depth0":    func(l *loop) any { return l.depth0 },
		"depth":     func(l *loop) any { return l.depth0 + 1 },
		"length":    func(l *loop) any { return l.length() },
		"revindex0": func(l *loop) any { return l.length() - l.index0 - 1 },
		"revindex":  func(l *loop) any { return l.length() - l.index0 },
		"first":     func(l *loop) any { return l.index0 == 0 },
		"cycle":     func(l *loop) any { return newBuiltin("cycle", l.cycle) },
		"changed":   func(l *loop) any { return newBuiltin("changed", l.changed) },
		"last": func(l *loop) any {
			_, more := l.peek()
			return !more
		},
		"previtem": func(l *loop) any {
			if l.index0 == 0 {
				return &undefined{hint: "there is no previous item"}
			}
			return l.before
		},
		"nextitem": func(l *loop) any {
			if item, ok := l.peek(); ok {
				return item
			}
			return &undefined{hint: "there is no next item"}
		},
	}
}

func (l *loop) cycle(_ *run, a arg) any {
	a.noNamed("cycle")
	if len(a.pos) == 0 {
		raise(typeError, "no items for cycling given")
	}
	return a.pos[l.index0%len(a.pos)]
}

func (l *loop) changed(r *run, a arg) any {
	a.noNamed("changed")
	values := newTuple(a.pos...)
	if l.changedTo != missing && r.equal(l.changedTo, values) {
		return false
	}
	l.changedTo = values
	return true
}

// call renders the body of a recursive loop for other items.
func (l *loop) call(r *run, a arg) any {
	args := a.bind("loop", param1("iterable"))
	if l.again == nil {
		raise(typeError, "The loop must have the 'recursive' marker to be called recursively.")
	}
	return l.again(args[0], l.depth0+1)
}
