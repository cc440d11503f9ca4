package jinja

import (
	"maps"
	"math"
	"math/big"
	"slices"
	"strconv"
)

// Dict is a Python dict: it keeps keys in insertion order. The zero value is not usable; see [NewDict].
type Dict struct {
	keys, values []any
	index        map[any]int // by hashKey
}

// NewDict returns an empty dict.
func NewDict() *Dict { return &Dict{index: map[any]int{}} }

// Len returns the number of keys.
func (d *Dict) Len() int { return len(d.keys) }

// Get returns the value of a string key.
func (d *Dict) Get(key string) (value any, ok bool) { return d.lookup(key) }

func (d *Dict) lookup(hash any) (value any, ok bool) {
	i, ok := d.index[hash]
	if !ok {
		return nil, false
	}
	return d.values[i], true
}

// Set sets the value of a string key: nil, a bool, int, float64, string, *Dict, or a result of [FromJSON] or [List].
func (d *Dict) Set(key string, value any) { d.insert(key, key, value) }

// List returns a Python list of values of the types that [Dict.Set] takes.
func List(items ...any) any { return newList(items...) }

func (d *Dict) insert(hash, key, value any) {
	if i, ok := d.index[hash]; ok {
		d.values[i] = value
		return
	}
	d.index[hash] = len(d.keys)
	d.keys, d.values = append(d.keys, key), append(d.values, value)
}

// set sets the value of any key.
func (d *Dict) set(r *run, key, value any) {
	r.charge(64)
	d.insert(r.hashKey(key), key, value)
}

// find returns the value of any key.
func (d *Dict) find(r *run, key any) (any, bool) { return d.lookup(r.hashKey(key)) }

// Hashes with types of their own, so that they equal no others.
type (
	bigKey       string
	tupleKey     string
	undefinedKey struct{}
	spanKey      struct{ length, start, step int }
)

// hashKey returns a comparable value that is the same for equal keys.
func (r *run) hashKey(v any) any {
	r.look(v)
	switch v := v.(type) {
	case string:
		return v
	case markup:
		return string(v)
	case bool:
		return boolInt(v)
	case float64:
		if v == math.Trunc(v) && !math.IsInf(v, 0) {
			f, _ := big.NewFloat(v).Int(nil)
			return r.hashKey(normInt(f))
		}
		return v
	case *big.Int:
		return bigKey(v.String())
	case *list:
		if v.tuple {
			return r.hashTuple(v.items)
		}
	case *undefined:
		return undefinedKey{}
	case span:
		switch n := v.len(); n {
		case 0:
			return spanKey{}
		case 1:
			return spanKey{1, v.start, 0}
		default:
			return spanKey{n, v.start, v.step}
		}
	}
	if !hashable(v) {
		raise(typeError, "unhashable type: '%s'", typeName(v))
	}
	return v
}

// hashable reports whether v can be a key, without a look at the items of tuples.
func hashable(v any) bool {
	switch v := v.(type) {
	case *list:
		return v.tuple
	case *Dict, slice:
		return false
	case *view:
		return v.what == "values"
	}
	return true
}

// canBeKey reports whether v can be a key.
func canBeKey(v any) bool {
	if t, ok := v.(*list); ok && t.tuple {
		return !slices.ContainsFunc(t.items, func(item any) bool { return !canBeKey(item) })
	}
	return hashable(v)
}

// hashTuple concatenates the hashes of the items, each with its type and length.
func (r *run) hashTuple(items []any) tupleKey {
	defer r.enter()()
	key := ""
	for _, item := range items {
		part := ""
		switch h := r.hashKey(item).(type) {
		case string:
			part = "s" + h
		case int:
			part = "i" + strconv.Itoa(h)
		case float64:
			part = "f" + strconv.FormatFloat(h, 'g', -1, 64)
		case bigKey:
			part = "b" + string(h)
		case tupleKey:
			part = "t" + string(h)
		case nil:
			part = "n"
		case undefinedKey:
			part = "u"
		default:
			raise(typeError, "a tuple with a %s cannot be a key here", typeName(item))
		}
		r.size(len(key) + len(part))
		key += strconv.Itoa(len(part)) + ":" + part
	}
	return tupleKey(key)
}

// pairs returns the items of a dict as tuples.
func (d *Dict) pairs() []any {
	out := make([]any, len(d.keys))
	for i, k := range d.keys {
		out[i] = newTuple(k, d.values[i])
	}
	return out
}

// With returns a copy of d updated with other. The keys of both must be strings.
func (d *Dict) With(other *Dict) *Dict {
	out := d.Clone()
	for i, k := range other.keys {
		out.insert(k, k, other.values[i])
	}
	return out
}

// Clone returns a shallow copy of d.
func (d *Dict) Clone() *Dict {
	return &Dict{slices.Clone(d.keys), slices.Clone(d.values), maps.Clone(d.index)}
}

// Items returns the items of a list, nil for other values. They must not be modified.
func Items(v any) []any {
	items, _ := sequence(v)
	return items
}

// MapTexts returns a value with f applied to each string in it, except for the keys of dicts.
func MapTexts(v any, f func(s string) string) any {
	switch v := v.(type) {
	case string:
		return f(v)
	case *list:
		out := &list{items: make([]any, len(v.items))}
		for i, item := range v.items {
			out.items[i] = MapTexts(item, f)
		}
		return out
	case *Dict:
		out := v.Clone()
		for i, item := range v.values {
			out.values[i] = MapTexts(item, f)
		}
		return out
	}
	return v
}
