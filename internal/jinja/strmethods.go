package jinja

import (
	"math"
	"strings"
	"unicode"
	"unicode/utf8"
)

// stringMethod returns a method of a str. Methods of markup return markup.
func stringMethod(v any, name string) (any, bool) {
	method, ok := stringMethods[name]
	if !ok {
		return nil, false
	}
	s, _ := text(v)
	_, isMarkup := v.(markup)
	return newBuiltin(name, func(r *run, a arg) any {
		r.charge(len(s))
		if !isMarkup {
			return method(r, s, a)
		}
		return marked(method(r, s, r.escaped(name, a)))
	}), true
}

// marked returns a str, or the strs of a list or tuple, as markup.
func marked(v any) any {
	switch v := v.(type) {
	case string:
		return markup(v)
	case *list:
		out := &list{tuple: v.tuple}
		for _, item := range v.items {
			out.items = append(out.items, marked(item))
		}
		return out
	}
	return v
}

// escaped escapes the arguments of methods that combine markup with other texts.
func (r *run) escaped(method string, a arg) arg {
	switch method {
	case "join":
		if len(a.pos) == 1 {
			out := newList()
			for _, item := range r.items(a.pos[0]) {
				out.items = append(out.items, r.escapedValue(item))
			}
			return arg{pos: []any{out}}
		}
	case "replace", "format", "center", "ljust", "rjust":
		out := arg{named: a.named}
		for _, v := range a.pos {
			out.pos = append(out.pos, r.escapedValue(v))
		}
		return out
	}
	return a
}

func (r *run) escapedValue(v any) any {
	if s, ok := v.(string); ok {
		return markup(r.escape(s))
	}
	return v
}

// stringMethods are the methods of str, which take the text and the arguments.
var stringMethods map[string]func(r *run, s string, a arg) any

func init() {
	stringMethods = map[string]func(r *run, s string, a arg) any{
		"capitalize": plain(capitalize), "casefold": plain(caseFold), "lower": plain(toLower), "upper": plain(toUpper),
		"swapcase": plain(swapCase), "title": plain(title),
		"isalnum": test(func(c rune) bool { return unicode.IsLetter(c) || isNumericRune(c) || isDigitRune(c) }),
		"isalpha": test(unicode.IsLetter), "isdecimal": test(func(c rune) bool { return unicode.Is(unicode.Nd, c) }),
		"isdigit": test(isDigitRune), "isnumeric": test(isNumericRune), "isspace": test(isSpace),
		"isascii": whole(ascii),
		"isprintable": whole(func(s string) bool {
			return s == "" || all(s, func(c rune) bool { return c == ' ' || unicode.IsPrint(c) })
		}),
		"isidentifier": whole(isIdentifier), "istitle": whole(isTitle),
		"islower": whole(func(s string) bool { return oneCase(s, isUpper) }),
		"isupper": whole(func(s string) bool { return oneCase(s, isLower) }),
		"strip":   strip(true, true), "lstrip": strip(true, false), "rstrip": strip(false, true),
		"split": (*run).split, "rsplit": (*run).rsplit, "splitlines": (*run).splitlines,
		"partition": partition(strings.Index), "rpartition": partition(strings.LastIndex),
		"startswith": fix("startswith", strings.HasPrefix), "endswith": fix("endswith", strings.HasSuffix),
		"removeprefix": trim("removeprefix", strings.TrimPrefix), "removesuffix": trim("removesuffix", strings.TrimSuffix),
		"find": find("find", strings.Index, false), "rfind": find("rfind", strings.LastIndex, false),
		"index": find("index", strings.Index, true), "rindex": find("rindex", strings.LastIndex, true),
		"count": (*run).count, "replace": (*run).replace, "join": (*run).join,
		"center": pad("center"), "ljust": pad("ljust"), "rjust": pad("rjust"), "zfill": (*run).zfill,
		"expandtabs": (*run).expandTabs, "format": (*run).format, "format_map": (*run).formatMap,
		"maketrans": (*run).makeTrans, "translate": (*run).translate, "encode": encode,
	}
}

// plain returns a method without arguments that returns a text.
func plain(f func(s string) string) func(r *run, s string, a arg) any {
	return func(r *run, s string, a arg) any {
		a.bind("method")
		out := f(s)
		r.size(len(out))
		return out
	}
}

// whole returns a method without arguments that reports whether a text has a property.
func whole(f func(s string) bool) func(r *run, s string, a arg) any {
	return func(_ *run, s string, a arg) any {
		a.bind("method")
		return f(s)
	}
}

// test is whole for a property of each character.
func test(is func(c rune) bool) func(r *run, s string, a arg) any {
	return whole(func(s string) bool { return all(s, is) })
}

// textArg returns an argument that is a str.
func textArg(v any) string {
	s, ok := text(v)
	if !ok {
		raise(typeError, "must be str, not %s", typeName(v))
	}
	return s
}

func strip(left, right bool) func(r *run, s string, a arg) any {
	return func(_ *run, s string, a arg) any {
		chars := a.bind("strip", optionalPositional("chars", nil))[0]
		return stripText(s, chars, left, right)
	}
}

func stripText(s string, chars any, left, right bool) string {
	is := isSpace
	if chars != nil {
		set := textArg(chars)
		is = func(c rune) bool { return strings.ContainsRune(set, c) }
	}
	if left {
		s = strings.TrimLeftFunc(s, is)
	}
	if right {
		s = strings.TrimRightFunc(s, is)
	}
	return s
}

// texts returns a list of strings.
func (r *run) texts(parts []string) any {
	out := make([]any, len(parts))
	for i, p := range parts {
		out[i] = p
	}
	r.charge(16 * len(parts))
	return &list{items: out}
}

func splitArgs(r *run, name string, a arg) (sep any, limit int) {
	args := a.bind(name, optional("sep", nil), optional("maxsplit", -1))
	return args[0], max(-1, r.index(args[1]))
}

// separator returns a separator, which must not be empty.
func separator(v any) string {
	s := textArg(v)
	if s == "" {
		raise(valueError, "empty separator")
	}
	return s
}

func (r *run) split(s string, a arg) any {
	sep, limit := splitArgs(r, "split", a)
	if sep == nil {
		return r.texts(splitSpace(s, limit))
	}
	if limit >= 0 && limit < math.MaxInt {
		limit++
	}
	return r.texts(strings.SplitN(s, separator(sep), limit))
}

func (r *run) rsplit(s string, a arg) any {
	sep, limit := splitArgs(r, "rsplit", a)
	if sep == nil {
		return r.texts(splitSpaceRight(s, limit))
	}
	return r.texts(splitRight(s, separator(sep), limit))
}

func (r *run) splitlines(s string, a arg) any {
	return r.texts(splitLines(s, truth(a.bind("splitlines", optional("keepends", false))[0])))
}

func partition(index func(s, sep string) int) func(r *run, s string, a arg) any {
	return func(_ *run, s string, a arg) any {
		sep := separator(a.bind("partition", positional("sep"))[0])
		at := index(s, sep)
		if at >= 0 {
			return newTuple(s[:at], sep, s[at+len(sep):])
		}
		if index("ab", "") == 0 { // from the left
			return newTuple(s, "", "")
		}
		return newTuple("", "", s)
	}
}

// within binds the arguments of a method that searches a text in s[start:end]. It returns the text, that part of s, and
// its offset in code points; ok is false if start is after the end.
func (r *run) within(name, s string, a arg) (sought any, part string, offset int, ok bool) {
	args := a.bind(name, positional("sub"), optionalPositional("start", nil), optionalPositional("end", nil))
	if args[1] == nil && args[2] == nil {
		return args[0], s, 0, true
	}
	n := utf8.RuneCountInString(s)
	what := "slice indices must be integers or None or have an __index__ method"
	from, to := 0, math.MaxInt
	if args[1] != nil {
		from = r.clampInt(args[1], what)
	}
	if args[2] != nil {
		to = r.clampInt(args[2], what)
	}
	ok = from <= n
	if from, to = clampRange(from, to, n); !ok || from > to {
		return args[0], "", 0, false
	}
	return args[0], string([]rune(s)[from:to]), from, true
}

func fix(name string, has func(s, fix string) bool) func(r *run, s string, a arg) any {
	return func(r *run, s string, a arg) any {
		fix, part, _, ok := r.within(name, s, a)
		fixes := []any{fix}
		if t, isList := fix.(*list); isList && t.tuple {
			fixes = t.items
		}
		for _, f := range fixes {
			t, isText := text(f)
			if !isText {
				raise(typeError, "%s first arg must be str or a tuple of str, not %s", name, typeName(f))
			}
			if ok && has(part, t) {
				return true
			}
		}
		return false
	}
}

func trim(name string, cut func(s, fix string) string) func(r *run, s string, a arg) any {
	return func(_ *run, s string, a arg) any {
		return cut(s, textArg(a.bind(name, positional("fix"))[0]))
	}
}

func find(name string, index func(s, sub string) int, must bool) func(r *run, s string, a arg) any {
	return func(r *run, s string, a arg) any {
		sought, part, offset, ok := r.within(name, s, a)
		if sub := textArg(sought); ok {
			if at := index(part, sub); at >= 0 {
				return offset + utf8.RuneCountInString(part[:at])
			}
		}
		if must {
			raise(valueError, "substring not found")
		}
		return -1
	}
}

func (r *run) count(s string, a arg) any {
	sought, part, _, ok := r.within("count", s, a)
	sub := textArg(sought)
	if !ok {
		return 0
	}
	return strings.Count(part, sub)
}

func (r *run) replace(s string, a arg) any {
	args := a.bind("replace", positional("old"), positional("new"), optionalPositional("count", -1))
	return r.replaced(s, textArg(args[0]), textArg(args[1]), r.index(args[2]))
}

// replaced is s.replace(old, new, count).
func (r *run) replaced(s, old, new string, count int) string {
	n := strings.Count(s, old)
	if count >= 0 {
		n = min(n, count)
	}
	if grow := len(new) - len(old); grow > 0 {
		r.size(len(s) + r.times(n, grow))
	}
	r.charge(len(s))
	return strings.Replace(s, old, new, n)
}

func (r *run) join(s string, a arg) any {
	v := a.bind("join", positional("iterable"))[0]
	if !iterable(v) {
		raise(typeError, "can only join an iterable")
	}
	items := r.items(v)
	parts := make([]string, len(items))
	for i, item := range items {
		t, ok := text(item)
		if !ok {
			raise(typeError, "sequence item %d: expected str instance, %s found", i, typeName(item))
		}
		parts[i] = t
	}
	return r.joined(parts, s)
}

// spaces returns a character n times.
func (r *run) spaces(fill string, n int) string {
	if n <= 0 {
		return ""
	}
	r.size(r.times(n, len(fill)))
	return strings.Repeat(fill, n)
}

func pad(name string) func(r *run, s string, a arg) any {
	return func(r *run, s string, a arg) any {
		args := a.bind(name, positional("width"), optionalPositional("fillchar", " "))
		fill := textArg(args[1])
		if utf8.RuneCountInString(fill) != 1 {
			raise(typeError, "The fill character must be exactly one character long")
		}
		return r.padded(s, r.index(args[0]), fill, name)
	}
}

func (r *run) padded(s string, width int, fill, name string) string {
	n := utf8.RuneCountInString(s)
	if width <= n {
		return s
	}
	missing := width - n
	left := 0
	switch name {
	case "rjust":
		left = missing
	case "center":
		left = missing/2 + missing&width&1
	}
	return r.spaces(fill, left) + s + r.spaces(fill, missing-left)
}

func (r *run) zfill(s string, a arg) any {
	width := r.index(a.bind("zfill", positional("width"))[0])
	zeros := r.spaces("0", width-utf8.RuneCountInString(s))
	if strings.HasPrefix(s, "+") || strings.HasPrefix(s, "-") {
		return s[:1] + zeros + s[1:]
	}
	return zeros + s
}

func (r *run) expandTabs(s string, a arg) any {
	size := r.index(a.bind("expandtabs", optional("tabsize", 8))[0])
	var b strings.Builder
	column := 0
	for _, c := range s {
		switch c {
		case '\t':
			if size > 0 {
				n := size - column%size
				b.WriteString(r.spaces(" ", n))
				column += n
			}
		case '\n', '\r':
			b.WriteRune(c)
			column = 0
		default:
			b.WriteRune(c)
			column++
		}
	}
	r.size(b.Len())
	return b.String()
}

// makeTrans is str.maketrans.
func (r *run) makeTrans(_ string, a arg) any {
	args := a.bind("maketrans", positional("x"), optionalPositional("y", missing), optionalPositional("z", ""))
	out := NewDict()
	if args[1] == missing {
		d, ok := args[0].(*Dict)
		if !ok {
			raise(typeError, "if you give only one argument to maketrans it must be a dict")
		}
		for i, k := range d.keys {
			if s, ok := text(k); ok {
				if utf8.RuneCountInString(s) != 1 {
					raise(valueError, "string keys in translate table must be of length 1")
				}
				k = int([]rune(s)[0])
			}
			out.set(r, k, d.values[i])
		}
		return out
	}
	from, to := []rune(textArg(args[0])), []rune(textArg(args[1]))
	if len(from) != len(to) {
		raise(valueError, "the first two maketrans arguments must have equal length")
	}
	for i, c := range from {
		out.set(r, int(c), int(to[i]))
	}
	for _, c := range textArg(args[2]) {
		out.set(r, int(c), nil)
	}
	return out
}

func (r *run) translate(s string, a arg) any {
	table, ok := a.bind("translate", positional("table"))[0].(*Dict)
	if !ok {
		raise(typeError, "translate() argument must be a dict, as maketrans returns")
	}
	var b strings.Builder
	for _, c := range s {
		v, ok := table.find(r, int(c))
		switch v := v.(type) {
		case int:
			b.WriteRune(rune(v))
		case nil:
			if !ok {
				b.WriteRune(c)
			}
		default:
			t := textArg(v)
			r.size(len(t))
			b.WriteString(t)
		}
	}
	r.size(b.Len())
	return b.String()
}

// encode raises an error: bytes are not supported.
func encode(*run, string, arg) any {
	raise(typeError, "str.encode is not supported: there is no type bytes")
	return nil
}
