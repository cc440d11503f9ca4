package jinja

import (
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// filterFunc is a filter or a test of a value, with arguments.
type filterFunc func(r *run, v any, a arg) any

var filters map[string]filterFunc

func init() {
	filters = map[string]filterFunc{
		"attr": (*run).attrFilter, "batch": (*run).batchFilter, "center": (*run).centerFilter,
		"d": (*run).defaultFilter, "default": (*run).defaultFilter, "dictsort": (*run).dictsortFilter,
		"filesizeformat": (*run).filesizeFilter, "float": (*run).floatFilter, "format": (*run).formatFilter,
		"groupby": (*run).groupbyFilter, "indent": (*run).indentFilter, "int": (*run).intFilter,
		"join": (*run).joinFilter, "map": (*run).mapFilter, "max": extreme("max", ">"), "min": extreme("min", "<"),
		"pprint": absent("pprint"), "random": absent("random"), "reject": selection(false, false),
		"rejectattr": selection(false, true), "replace": (*run).replaceFilter, "round": (*run).roundFilter,
		"select": selection(true, false), "selectattr": selection(true, true), "slice": (*run).sliceFilter,
		"sort": (*run).sortFilter, "sum": (*run).sumFilter, "tojson": (*run).tojsonFilter, "trim": (*run).trimFilter,
		"truncate": (*run).truncateFilter, "unique": (*run).uniqueFilter, "urlize": absent("urlize"),
		"wordwrap": absent("wordwrap"), "xmlattr": (*run).xmlattrFilter,
	}
	for name, f := range map[string]func(r *run, v any) any{ // without arguments
		"abs": (*run).abs, "capitalize": textFilter(capitalize), "count": (*run).length, "e": (*run).escapeValue,
		"escape": (*run).escapeValue, "first": (*run).first, "items": (*run).pairs, "last": (*run).last,
		"length": (*run).length, "lower": textFilter(toLower), "reverse": (*run).reverse,
		"striptags": (*run).stripTags, "title": textFilter(titleWords), "upper": textFilter(toUpper),
		"urlencode": (*run).urlEncode, "wordcount": (*run).wordCount,
		"forceescape": func(r *run, v any) any { return markup(r.escape(r.str(v))) },
		"list":        func(r *run, v any) any { return &list{items: r.items(v)} },
		"safe":        func(r *run, v any) any { return markup(r.str(v)) },
		"string":      func(r *run, v any) any { return likeText(v, r.str(v)) },
	} {
		filters[name] = func(r *run, v any, a arg) any {
			a.bind(name)
			return f(r, v)
		}
	}
}

// absent returns an unsupported filter of Jinja2, which raises an error.
func absent(name string) filterFunc {
	return func(*run, any, arg) any {
		raise(runtimeError, "the filter %s is not supported: its output is not for a model", name)
		return nil
	}
}

// textFilter returns a filter that applies f to a text.
func textFilter(f func(s string) string) func(r *run, v any) any {
	return func(r *run, v any) any {
		out := f(r.str(v))
		r.size(len(out))
		return likeText(v, out)
	}
}

func (r *run) length(v any) any {
	n, ok := length(v)
	if !ok {
		raise(typeError, "object of type '%s' has no len()", typeName(v))
	}
	return n
}

func (r *run) defaultFilter(v any, a arg) any {
	args := a.bind("default", optional("default_value", ""), optional("boolean", false))
	if _, ok := v.(*undefined); ok || truth(args[1]) && !truth(v) {
		return args[0]
	}
	return v
}

func (r *run) abs(v any) any {
	if f, ok := v.(float64); ok {
		return math.Abs(f)
	}
	n, ok := bigInteger(v)
	if !ok {
		raise(typeError, "bad operand type for abs(): '%s'", typeName(v))
	}
	return normInt(new(big.Int).Abs(n))
}

// attrFilter is the filter attr: getattr that ignores items.
func (r *run) attrFilter(v any, a arg) any {
	name := a.bind("attr", param1("name"))[0]
	s, ok := text(name)
	if !ok {
		raise(typeError, "attribute name must be string, not '%s'", typeName(name))
	}
	if value, ok := r.attribute(v, s); ok {
		return value
	}
	return &undefined{object: v, name: s, of: true}
}

func (r *run) first(v any) any {
	if item, ok := r.iterate(v)(); ok {
		return item
	}
	return &undefined{hint: "No first item, sequence was empty."}
}

func (r *run) last(v any) any {
	items := r.items(r.reversed(v))
	if len(items) == 0 {
		return &undefined{hint: "No last item, sequence was empty."}
	}
	return items[0]
}

// reversed is reversed(v).
func (r *run) reversed(v any) any {
	switch v := v.(type) {
	case string, markup, *list, *Dict, span, *view, *undefined:
		items := slices.Clone(r.items(v))
		slices.Reverse(items)
		r.charge(16 * len(items))
		return newGenerator(nil, each(items))
	}
	raise(typeError, "'%s' object is not reversible", typeName(v))
	return nil
}

func (r *run) reverse(v any) any {
	if s, ok := text(v); ok {
		runes := []rune(s)
		slices.Reverse(runes)
		r.charge(len(s))
		return likeText(v, string(runes))
	}
	switch v := v.(type) {
	case *list, *Dict, span, *view, *undefined:
		return r.reversed(v)
	}
	if !iterable(v) {
		raise(argumentError, "argument must be iterable")
	}
	items := slices.Clone(r.items(v))
	slices.Reverse(items)
	return &list{items: items}
}

func (r *run) pairs(v any) any {
	var next iterator
	return newGenerator(nil, func() (any, bool) {
		if next == nil {
			switch d := v.(type) {
			case *undefined:
				next = each(nil)
			case *Dict:
				next = each(d.pairs())
			default:
				raise(typeError, "Can only get item pairs from a mapping.")
			}
		}
		return next()
	})
}

func (r *run) trimFilter(v any, a arg) any {
	chars := a.bind("trim", optional("chars", nil))[0]
	s := r.str(v)
	r.charge(len(s))
	return likeText(v, stripText(s, chars, true, true))
}

func (r *run) centerFilter(v any, a arg) any {
	width := a.bind("center", optional("width", 80))[0]
	return likeText(v, r.padded(r.str(v), r.index(width), " ", "center"))
}

func (r *run) replaceFilter(v any, a arg) any {
	args := a.bind("replace", param1("old"), param1("new"), optional("count", nil))
	count := -1
	if args[2] != nil {
		count = r.index(args[2])
	}
	return r.replaced(r.str(v), r.str(args[0]), r.str(args[1]), count)
}

func (r *run) joinFilter(v any, a arg) any {
	args := a.bind("join", optional("d", ""), optional("attribute", nil))
	get := r.getter(args[1], false, nil)
	var parts []string
	for _, item := range r.items(v) {
		parts = append(parts, r.str(get(item)))
		r.charge(16)
	}
	return r.joined(parts, r.str(args[0]))
}

// getter returns a function that looks up "a.b.0" in an item. fold makes a str lower case; otherwise replaces undefined
// values on the way unless it is nil.
func (r *run) getter(attribute any, fold bool, otherwise any) func(any) any {
	parts := attributeParts(attribute)
	return func(item any) any {
		for _, p := range parts {
			item = r.getitem(item, p)
			if _, ok := item.(*undefined); ok && otherwise != nil {
				item = otherwise
			}
		}
		if s, ok := text(item); ok && fold {
			return toLower(s)
		}
		return item
	}
}

func attributeParts(attribute any) []any {
	if attribute == nil {
		return nil
	}
	s, ok := text(attribute)
	if !ok {
		return []any{attribute}
	}
	var out []any
	for _, p := range strings.Split(s, ".") {
		if n, err := strconv.Atoi(p); err == nil && all(p, isDigitRune) {
			out = append(out, n)
		} else {
			out = append(out, p)
		}
	}
	return out
}

// sorted sorts items by keys; the sort is stable.
func (r *run) sorted(items []any, key func(any) any, reverse bool) []any {
	type keyed struct{ key, item any }
	list := make([]keyed, len(items))
	for i, item := range items {
		list[i] = keyed{key(item), item}
	}
	slices.SortStableFunc(list, func(a, b keyed) int {
		r.charge(8)
		if reverse {
			a, b = b, a
		}
		switch {
		case r.ordered("<", a.key, b.key):
			return -1
		case r.ordered("<", b.key, a.key):
			return 1
		}
		return 0
	})
	out := make([]any, len(items))
	for i, k := range list {
		out[i] = k.item
	}
	r.charge(16 * len(out))
	return out
}

func (r *run) sortFilter(v any, a arg) any {
	args := a.bind("sort", optional("reverse", false), optional("case_sensitive", false), optional("attribute", nil))
	fold := !truth(args[1])
	var getters []func(any) any
	if s, ok := text(args[2]); ok {
		for p := range strings.SplitSeq(s, ",") {
			getters = append(getters, r.getter(p, fold, nil))
		}
	} else {
		getters = append(getters, r.getter(args[2], fold, nil))
	}
	return &list{items: r.sorted(r.items(v), func(item any) any {
		key := newList()
		for _, g := range getters {
			key.items = append(key.items, g(item))
		}
		return key
	}, truth(args[0]))}
}

func (r *run) dictsortFilter(v any, a arg) any {
	args := a.bind("dictsort", optional("case_sensitive", false), optional("by", "key"), optional("reverse", false))
	by, _ := text(args[1])
	if by != "key" && by != "value" {
		raise(argumentError, `You can only sort by either "key" or "value"`)
	}
	d := dictOf(v)
	key := r.getter(boolInt(by == "value"), !truth(args[0]), nil)
	return &list{items: r.sorted(d.pairs(), key, truth(args[2]))}
}

// dictOf returns a value that must be a dict.
func dictOf(v any) *Dict {
	d, ok := v.(*Dict)
	if !ok {
		defined(v)
		raise("AttributeError", "'%s' object has no attribute 'items'", typeName(v))
	}
	return d
}

func (r *run) uniqueFilter(v any, a arg) any {
	args := a.bind("unique", optional("case_sensitive", false), optional("attribute", nil))
	get := r.getter(args[1], !truth(args[0]), nil)
	seen := NewDict()
	return r.lazily(v, func() func(any) (any, bool) {
		return func(item any) (any, bool) {
			key := get(item)
			_, known := seen.find(r, key)
			if !known {
				seen.set(r, key, nil)
			}
			return item, !known
		}
	})
}

func extreme(name, op string) filterFunc {
	return func(r *run, v any, a arg) any {
		args := a.bind(name, optional("case_sensitive", false), optional("attribute", nil))
		get := r.getter(args[1], !truth(args[0]), nil)
		items := r.items(v)
		if len(items) == 0 {
			return &undefined{hint: "No aggregated item, sequence was empty."}
		}
		best, bestKey := items[0], get(items[0])
		for _, item := range items[1:] {
			r.charge(8)
			if key := get(item); r.ordered(op, key, bestKey) {
				best, bestKey = item, key
			}
		}
		return best
	}
}

func (r *run) sumFilter(v any, a arg) any {
	args := a.bind("sum", optional("attribute", nil), optional("start", 0))
	get := r.getter(args[0], false, nil)
	total := args[1]
	if _, ok := text(total); ok {
		raise(typeError, "sum() can't sum strings [use ''.join(seq) instead]")
	}
	for _, item := range r.items(v) {
		total = r.operate("+", total, get(item))
	}
	return total
}

func (r *run) mapFilter(v any, a arg) any {
	return r.lazily(v, func() func(any) (any, bool) {
		if !truth(v) {
			return nil
		}
		f := r.mapping(a)
		return func(item any) (any, bool) { return f(item), true }
	})
}

// mapping returns the function that the filter map applies: an attribute lookup, or a filter.
func (r *run) mapping(a arg) func(any) any {
	if len(a.pos) == 0 && a.named != nil {
		if _, ok := a.named.Get("attribute"); ok {
			args := arg{named: a.named}
			for _, k := range a.named.keys {
				if k != "attribute" && k != "default" {
					raise(argumentError, "Unexpected keyword argument %s", r.repr(k))
				}
			}
			bound := args.bind("map", param1("attribute"), optional("default", nil))
			return r.getter(bound[0], false, bound[1])
		}
	}
	if len(a.pos) == 0 {
		raise(argumentError, "map requires a filter argument")
	}
	name, _ := text(a.pos[0])
	f := filters[name]
	if f == nil {
		raise(runtimeError, "No filter named %s.", r.repr(a.pos[0]))
	}
	rest := arg{a.pos[1:], a.named}
	return func(item any) any { return f(r, item, rest) }
}

// selection returns select, reject, selectattr or rejectattr.
func selection(keep, attribute bool) filterFunc {
	return func(r *run, v any, a arg) any {
		return r.lazily(v, func() func(any) (any, bool) {
			if !truth(v) {
				return nil
			}
			holds := r.predicate(a, attribute)
			return func(item any) (any, bool) { return item, holds(item) == keep }
		})
	}
}

// predicate returns the condition of the filters select, reject and so on: a test, or whether an item is true.
func (r *run) predicate(a arg, attribute bool) func(any) bool {
	get := func(v any) any { return v }
	pos := a.pos
	if attribute {
		if len(pos) == 0 {
			raise(argumentError, "Missing parameter for attribute name")
		}
		get, pos = r.getter(pos[0], false, nil), pos[1:]
	}
	if len(pos) == 0 {
		return func(v any) bool { return truth(get(v)) }
	}
	name, _ := text(pos[0])
	f := tests[name]
	if f == nil {
		raise(runtimeError, "No test named %s.", r.repr(pos[0]))
	}
	rest := arg{pos[1:], a.named}
	return func(v any) bool { return truth(f(r, get(v), rest)) }
}

// sliceFilter divides items into n lists; the first ones get one more item if the number is not divisible.
func (r *run) sliceFilter(v any, a arg) any {
	args := a.bind("slice", param1("slices"), optional("fill_with", nil))
	var next iterator
	return newGenerator(v, func() (any, bool) {
		if next != nil {
			return next()
		}
		items, n := r.items(v), r.index(args[0])
		if n == 0 {
			raise("ZeroDivisionError", "integer division or modulo by zero")
		}
		r.size(16 * max(0, n))
		var out []any
		for i, at := 0, 0; i < n; i++ {
			end := at + len(items)/n + boolInt(i < len(items)%n)
			part := slices.Clone(items[at:end])
			if args[1] != nil && i >= len(items)%n {
				part = append(part, args[1])
			}
			out, at = append(out, &list{items: part}), end
		}
		next = each(out)
		return next()
	})
}

func (r *run) batchFilter(v any, a arg) any {
	args := a.bind("batch", param1("linecount"), optional("fill_with", nil))
	var next iterator
	return newGenerator(v, func() (any, bool) {
		if next == nil {
			next = r.iterate(v)
		}
		part := newList()
		for !r.equal(len(part.items), args[0]) || len(part.items) == 0 {
			item, ok := next()
			if !ok {
				break
			}
			r.charge(16)
			part.items = append(part.items, item)
		}
		if len(part.items) == 0 {
			return nil, false
		}
		if args[1] != nil && r.ordered("<", len(part.items), args[0]) {
			n := r.index(args[0])
			r.size(16 * n)
			for len(part.items) < n {
				part.items = append(part.items, args[1])
			}
		}
		return part, true
	})
}

func (r *run) groupbyFilter(v any, a arg) any {
	args := a.bind("groupby", param1("attribute"), optional("default", nil), optional("case_sensitive", false))
	fold := !truth(args[2])
	get, name := r.getter(args[0], fold, args[1]), r.getter(args[0], false, args[1])
	out := newList()
	var last any
	for i, item := range r.sorted(r.items(v), get, false) {
		key := get(item)
		if i == 0 || !r.equal(key, last) {
			out.items = append(out.items, &list{items: []any{name(item), newList()}, tuple: true, group: true})
		}
		last = key
		members := out.items[len(out.items)-1].(*list).items[1].(*list)
		members.items = append(members.items, item)
	}
	return out
}

func (r *run) formatFilter(v any, a arg) any {
	if a.named == nil || a.named.Len() == 0 {
		return r.percent(v, r.str(v), newTuple(a.pos...))
	}
	if len(a.pos) > 0 {
		raise(argumentError, "can't handle positional and keyword arguments at the same time")
	}
	return r.percent(v, r.str(v), a.named)
}

func (r *run) indentFilter(v any, a arg) any {
	args := a.bind("indent", optional("width", 4), optional("first", false), optional("blank", false))
	indention, ok := text(args[0])
	if !ok {
		if _, isInt := bigInteger(args[0]); !isInt {
			unsupported("*", " ", args[0])
		}
		indention = r.spaces(" ", r.index(args[0]))
	}
	s, _ := text(r.operate("+", v, "\n"))
	lines := splitLines(s, false)
	r.size(len(s) + len(lines)*len(indention))
	var b strings.Builder
	for i, line := range lines {
		if i > 0 {
			b.WriteByte('\n')
		}
		if i == 0 && truth(args[1]) || i > 0 && (line != "" || truth(args[2])) {
			b.WriteString(indention)
		}
		b.WriteString(line)
	}
	return likeText(v, b.String())
}

func (r *run) truncateFilter(v any, a arg) any {
	args := a.bind("truncate", optional("length", 255), optional("killwords", false), optional("end", "..."),
		optional("leeway", nil))
	end := textArg(args[2])
	size, leeway := r.index(args[0]), 5
	if args[3] != nil {
		leeway = r.index(args[3])
	}
	n, ok := length(v)
	endSize := utf8.RuneCountInString(end)
	if size < endSize || leeway < 0 {
		raise("AssertionError", "expected length >= %d and leeway >= 0, got %d and %d", endSize, size, leeway)
	}
	if !ok {
		raise(typeError, "object of type '%s' has no len()", typeName(v))
	}
	if n <= size+leeway {
		return v
	}
	s, ok := text(v)
	if !ok {
		raise(typeError, "expected str, not %s", typeName(v))
	}
	s = cut(s, size-endSize)
	if !truth(args[1]) {
		s = splitRight(s, " ", 1)[0]
	}
	return likeText(v, s+end)
}

func (r *run) wordCount(v any) any {
	n, in := 0, false
	for _, c := range r.str(v) {
		word := c == '_' || unicode.IsLetter(c) || unicode.IsNumber(c)
		n += boolInt(word && !in)
		in = word
	}
	return n
}

// titleWords is the filter title: unlike in str.title, an apostrophe does not begin a word.
func titleWords(s string) string {
	var b strings.Builder
	word := ""
	flush := func() {
		if word != "" {
			c, n := utf8.DecodeRuneInString(word)
			b.WriteString(toUpper(string(c)) + toLower(word[n:]))
			word = ""
		}
	}
	for _, c := range s {
		if c == '-' || isSpace(c) || strings.ContainsRune("({[<", c) {
			flush()
			b.WriteRune(c)
		} else {
			word += string(c)
		}
	}
	flush()
	return b.String()
}
