package jinja

import (
	"cmp"
	"math"
	"math/big"
	"strings"
)

// compare is a comparison operator.
func (r *run) compare(op string, a, b any) bool {
	switch op {
	case "==":
		return r.equal(a, b)
	case "!=":
		return !r.equal(a, b)
	case "in":
		return r.contains(b, a)
	case "not in":
		return !r.contains(b, a)
	}
	return r.ordered(op, a, b)
}

// same is "a is b", as far as values of this package can decide it.
func same(a, b any) bool {
	switch x := a.(type) {
	case float64:
		y, ok := b.(float64)
		return ok && x == y
	case *big.Int:
		y, ok := b.(*big.Int)
		return ok && x.Cmp(y) == 0
	case slice:
		return false
	}
	return a == b
}

// equal is a == b.
func (r *run) equal(a, b any) bool {
	if isNumber(a) && isNumber(b) {
		c, ok := compareNumbers(a, b)
		return ok && c == 0
	}
	if s, ok := text(a); ok {
		t, ok := text(b)
		if !ok || len(s) != len(t) {
			return false
		}
		r.look(s)
		return s == t
	}
	switch a := a.(type) {
	case *list:
		b, ok := b.(*list)
		return ok && (a == b || a.tuple == b.tuple && r.equalItems(a.items, b.items))
	case *Dict:
		b, ok := b.(*Dict)
		return ok && (a == b || r.equalDicts(a, b))
	case *undefined:
		_, ok := b.(*undefined)
		return ok
	case span:
		b, ok := b.(span)
		return ok && r.hashKey(a) == r.hashKey(b)
	case *view:
		b, ok := b.(*view)
		return ok && r.equalViews(a, b)
	}
	return same(a, b)
}

func (r *run) equalItems(a, b []any) bool {
	if len(a) != len(b) {
		return false
	}
	defer r.enter()()
	for i := range a {
		r.charge(itemWork)
		if !r.equal(a[i], b[i]) {
			return false
		}
	}
	return true
}

func (r *run) equalDicts(a, b *Dict) bool {
	if a.Len() != b.Len() {
		return false
	}
	defer r.enter()()
	for i, k := range a.keys {
		r.charge(itemWork)
		v, ok := b.find(r, k)
		if !ok || !r.equal(a.values[i], v) {
			return false
		}
	}
	return true
}

// equalViews compares views as sets; views of values equal only themselves.
func (r *run) equalViews(a, b *view) bool {
	if a == b {
		return true
	}
	if a.what == "values" || b.what == "values" || a.dict.Len() != b.dict.Len() {
		return false
	}
	for _, item := range a.items() {
		if !r.contains(b, item) {
			return false
		}
	}
	return true
}

func (v *view) items() []any {
	switch v.what {
	case "keys":
		return v.dict.keys
	case "values":
		return v.dict.values
	}
	return v.dict.pairs()
}

// compareNumbers returns -1, 0 or 1; ok is false for NaN, which has no order.
func compareNumbers(a, b any) (c int, ok bool) {
	x, okX := integer(a)
	y, okY := integer(b)
	if okX && okY {
		return cmp.Compare(x, y), true
	}
	f, isF := a.(float64)
	g, isG := b.(float64)
	if isF && math.IsNaN(f) || isG && math.IsNaN(g) {
		return 0, false
	}
	return exact(a).Cmp(exact(b)), true
}

// exact returns a number without rounding it.
func exact(v any) *big.Float {
	if f, ok := v.(float64); ok {
		return big.NewFloat(f)
	}
	n := toBig(v)
	return new(big.Float).SetPrec(uint(max(64, n.BitLen()))).SetInt(n)
}

// ordered is one of the operators <, <=, > and >=.
func (r *run) ordered(op string, a, b any) bool {
	defined(a)
	defined(b)
	if isNumber(a) && isNumber(b) {
		c, ok := compareNumbers(a, b)
		return ok && holds(op, c)
	}
	if s, ok := text(a); ok {
		if t, ok := text(b); ok {
			r.look(s)
			return holds(op, strings.Compare(s, t)) // the order of UTF-8 is that of code points
		}
	}
	x, okX := a.(*list)
	y, okY := b.(*list)
	if okX && okY && x.tuple == y.tuple {
		return r.orderedItems(op, x.items, y.items)
	}
	raise(typeError, "'%s' not supported between instances of '%s' and '%s'", op, typeName(a), typeName(b))
	return false
}

// orderedItems compares the first items that differ, or else the lengths.
func (r *run) orderedItems(op string, a, b []any) bool {
	defer r.enter()()
	for i := range min(len(a), len(b)) {
		r.charge(itemWork)
		if !r.equal(a[i], b[i]) {
			return r.ordered(op, a[i], b[i])
		}
	}
	return holds(op, cmp.Compare(len(a), len(b)))
}

func holds(op string, c int) bool {
	switch op {
	case "<":
		return c < 0
	case "<=":
		return c <= 0
	case ">":
		return c > 0
	}
	return c >= 0
}

// contains is "item in v".
func (r *run) contains(v, item any) bool {
	if s, ok := text(v); ok {
		t, ok := text(item)
		if !ok {
			raise(typeError, "'in <string>' requires string as left operand, not %s", typeName(item))
		}
		r.charge(len(s))
		return strings.Contains(s, t)
	}
	d, ok := v.(*Dict)
	if w, isView := v.(*view); isView && w.what == "keys" {
		d, ok = w.dict, true
	}
	if ok {
		_, ok := d.find(r, item)
		return ok
	}
	if !iterable(v) {
		raise(typeError, "argument of type '%s' is not iterable", typeName(v))
	}
	for x := range r.iterate(v).all {
		r.charge(itemWork)
		if r.equal(x, item) {
			return true
		}
	}
	return false
}
