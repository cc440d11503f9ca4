package jinja

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// format is str.format.
func (r *run) format(s string, a arg) any {
	return (&formatter{r: r, args: a}).expand(s, 2)
}

// formatMap is str.format_map.
func (r *run) formatMap(s string, a arg) any {
	d, ok := a.bind("format_map", positional("mapping"))[0].(*Dict)
	if !ok {
		raise(typeError, "format_map() argument must be a dict")
	}
	return (&formatter{r: r, args: arg{named: d}}).expand(s, 2)
}

// formatter replaces the fields of a format string.
type formatter struct {
	r    *run
	args arg
	auto int // the number of the next field without a name; -1 if fields are numbered
	seen bool
}

// expand replaces fields, also those in their specifications, up to depth levels.
func (f *formatter) expand(s string, depth int) string {
	if depth == 0 {
		raise(valueError, "Max string recursion exceeded")
	}
	var parts []string
	for s != "" {
		at := strings.IndexAny(s, "{}")
		if at < 0 {
			parts = append(parts, s)
			break
		}
		parts = append(parts, s[:at])
		c := s[at : at+1]
		s = s[at+1:]
		if strings.HasPrefix(s, c) {
			parts = append(parts, c)
			s = s[1:]
			continue
		}
		if c == "}" {
			raise(valueError, "Single '}' encountered in format string")
		}
		name, end := fieldEnd(s)
		parts = append(parts, f.field(s[:name], s[name:end], depth))
		s = s[end+1:]
	}
	return f.r.joined(parts, "")
}

// fieldEnd returns the ends of the name of the field that s begins with, and of the field.
func fieldEnd(s string) (name, end int) {
	depth, bracket := 1, false
	name = -1
	for i := range len(s) {
		switch c := s[i]; {
		case bracket && name < 0:
			bracket = c != ']'
		case c == '[' && name < 0:
			bracket = true
		case c == '{':
			depth++
		case c == '}':
			if depth--; depth == 0 {
				if name < 0 {
					name = i
				}
				return name, i
			}
		case (c == ':' || c == '!') && name < 0:
			name = i
		}
	}
	if s == "" {
		raise(valueError, "Single '{' encountered in format string")
	}
	raise(valueError, "expected '}' before end of string")
	return 0, 0
}

// field formats one field: a name and, in rest, "!" and a conversion, ":" and a specification.
func (f *formatter) field(name, rest string, depth int) string {
	rest, converted := strings.CutPrefix(rest, "!")
	if converted && rest == "" {
		raise(valueError, "end of string while looking for conversion specifier")
	}
	if converted && len(rest) > 1 && rest[1] != ':' {
		raise(valueError, "expected ':' after conversion specifier")
	}
	v := f.lookup(name)
	if converted {
		if strings.IndexByte("sra", rest[0]) < 0 {
			raise(valueError, "Unknown conversion specifier %s", rest[:1])
		}
		v, rest = f.r.converted(v, rest[0]), rest[1:]
	}
	spec := strings.TrimPrefix(rest, ":")
	return f.r.formatValue(v, f.expand(spec, depth-1+boolInt(spec == "")))
}

// converted returns a value as text by one of the conversions s, r and a.
func (r *run) converted(v any, conversion byte) string {
	switch conversion {
	case 'r':
		return r.repr(v)
	case 'a':
		return asciiRepr(r.repr(v))
	}
	return r.str(v)
}

// lookup returns the value of "0.name[key]".
func (f *formatter) lookup(name string) any {
	at := strings.IndexAny(name, ".[")
	if at < 0 {
		at = len(name)
	}
	v := f.first(name[:at])
	for rest := name[at:]; rest != ""; {
		if rest[0] == '.' {
			end := strings.IndexAny(rest[1:], ".[")
			if end < 0 {
				end = len(rest) - 1
			}
			v = f.r.getattr(v, notEmpty(rest[1:1+end]))
			rest = rest[1+end:]
			continue
		}
		end := strings.IndexByte(rest, ']')
		if rest[0] != '[' || end < 0 {
			raise(valueError, "Only '.' or '[' may follow ']' in format field specifier")
		}
		v = f.r.getitem(v, fieldKey(notEmpty(rest[1:end])))
		rest = rest[end+1:]
	}
	return v
}

func notEmpty(s string) string {
	if s == "" {
		raise(valueError, "Empty attribute in format string")
	}
	return s
}

// fieldKey parses a key of a field: digits are an int.
func fieldKey(s string) any {
	if n, err := strconv.Atoi(s); err == nil && strings.Trim(s, "0123456789") == "" {
		return n
	}
	return s
}

// first returns the argument that a field's name begins with.
func (f *formatter) first(name string) any {
	key := fieldKey(name)
	if name == "" {
		if f.seen && f.auto < 0 {
			raise(valueError, "cannot switch from manual field specification to automatic field numbering")
		}
		f.seen = true
		key = f.auto
		f.auto++
	} else if _, ok := key.(int); ok {
		if f.seen && f.auto >= 0 {
			raise(valueError, "cannot switch from automatic field numbering to manual field specification")
		}
		f.seen, f.auto = true, -1
	}
	if i, ok := key.(int); ok {
		if i >= len(f.args.pos) {
			raise("IndexError", "Replacement index %d out of range for positional args tuple", i)
		}
		return f.args.pos[i]
	}
	if f.args.named != nil {
		if v, ok := f.args.named.Get(name); ok {
			return v
		}
	}
	raise("KeyError", "%s", reprString(name))
	return nil
}

// percent is s % v.
func (r *run) percent(format any, s string, v any) any {
	p := &printf{r: r, values: []any{v}, mapping: missing}
	_, p.markup = format.(markup)
	switch t := v.(type) {
	case *list:
		if t.tuple {
			p.values = t.items
		} else {
			p.mapping = v
		}
	case *Dict, *undefined, span:
		p.mapping = v
	}
	out := p.expand(s)
	if p.used < len(p.values) && p.mapping == missing {
		raise(typeError, "not all arguments converted during string formatting")
	}
	return likeText(format, out)
}

// printf replaces the conversions of a printf-style format.
type printf struct {
	r       *run
	values  []any
	used    int
	mapping any // missing if the values are not a mapping
	markup  bool
}

func (p *printf) next() any {
	if p.used >= len(p.values) {
		raise(typeError, "not enough arguments for format string")
	}
	p.used++
	return p.values[p.used-1]
}

func (p *printf) expand(s string) string {
	var parts []string
	for {
		at := strings.IndexByte(s, '%')
		if at < 0 {
			return p.r.joined(append(parts, s), "")
		}
		parts = append(parts, s[:at])
		var out string
		out, s = p.conversion(s[at+1:])
		parts = append(parts, out)
	}
}

// conversion formats the conversion after a %, and returns the rest of the format.
func (p *printf) conversion(s string) (out, rest string) {
	named := missing
	if strings.HasPrefix(s, "(") {
		key, after := mappingKey(s[1:])
		if p.mapping == missing {
			raise(typeError, "format requires a mapping")
		}
		named, s = p.r.mappingItem(p.mapping, key), after
	}
	f := spec{fill: " ", sign: '-', precision: -1, align: '>'}
	rest = strings.TrimLeft(s, "#0- +")
	flags := s[:len(s)-len(rest)]
	s = rest
	f.alternate = strings.Contains(flags, "#")
	zero, left := strings.Contains(flags, "0"), strings.Contains(flags, "-")
	switch {
	case strings.Contains(flags, "+"):
		f.sign = '+'
	case strings.Contains(flags, " "):
		f.sign = ' '
	}
	f.width, s = p.number(s, "width")
	if f.width < 0 {
		left, f.width = true, -f.width
	}
	if strings.HasPrefix(s, ".") {
		f.precision, s = p.number(s[1:], "prec")
		f.precision = max(0, f.precision)
	}
	s = strings.TrimLeft(s, "hlL")
	if s == "" {
		raise(valueError, "incomplete format")
	}
	p.r.size(f.width)
	p.r.size(max(0, f.precision))
	kind := s[0]
	if kind == '%' {
		return "%", s[1:]
	}
	if strings.IndexByte("srdiuoxXeEfFgGca", kind) < 0 {
		raise(valueError, "unsupported format character '%c'", kind)
	}
	v := named
	if v == missing {
		v = p.next()
	}
	if left {
		f.align = '<'
	} else if zero && strings.IndexByte("sarc", kind) < 0 {
		f.align, f.fill = '=', "0"
	}
	return p.value(v, kind, f), s[1:]
}

// mappingKey parses the key of "%(key)s".
func mappingKey(s string) (key, rest string) {
	depth := 1
	for i := range len(s) {
		switch s[i] {
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return s[:i], s[i+1:]
			}
		}
	}
	raise(valueError, "incomplete format key")
	return "", ""
}

func (r *run) mappingItem(mapping any, key string) any {
	d, ok := mapping.(*Dict)
	if !ok {
		reject(mapping, "%s indices must be integers or slices, not str", typeName(mapping))
	}
	v, ok := d.Get(key)
	if !ok {
		raise("KeyError", "%s", reprString(key))
	}
	return v
}

// number parses a width or a precision.
func (p *printf) number(s, what string) (int, string) {
	if strings.HasPrefix(s, "*") {
		v := p.next()
		if _, ok := bigInteger(v); !ok {
			raise(typeError, "* wants int")
		}
		n := p.r.clampInt(v, what)
		p.r.size(max(n, -n))
		return n, s[1:]
	}
	end := len(s) - len(strings.TrimLeft(s, "0123456789"))
	if end == 0 {
		return 0, s
	}
	n, err := strconv.Atoi(s[:end])
	if err != nil {
		raise(valueError, "%s too big", what)
	}
	return n, s[end:]
}

func (p *printf) value(v any, kind byte, f spec) string {
	switch kind {
	case 's', 'r', 'a':
		out := p.r.converted(v, kind)
		if _, ok := v.(markup); p.markup && (!ok || kind != 's') {
			out = p.r.escape(out)
		}
		return p.r.pad(cut(out, f.precision), f)
	case 'c':
		s, isText := text(v)
		n, ok := bigInteger(v)
		switch {
		case ok:
			s = character(n)
		case !isText || utf8.RuneCountInString(s) != 1:
			raise(typeError, "%%c requires int or char")
		}
		return p.r.pad(s, f)
	case 'e', 'E', 'f', 'F', 'g', 'G':
		if !isNumber(v) {
			reject(v, "must be real number, not %s", typeName(v))
		}
		f.kind = kind
		return p.r.formatFloat(float(v), f)
	}
	n, ok := bigInteger(v)
	if x, isFloat := v.(float64); isFloat && strings.IndexByte("diu", kind) >= 0 {
		n, ok = truncated(x), true
	}
	if !ok {
		reject(v, "%%%c format: a real number is required, not %s", kind, typeName(v))
	}
	digits, prefix := intDigits(n, kind)
	if !f.alternate {
		prefix = ""
	}
	if missing := f.precision - len(digits); missing > 0 {
		digits = p.r.spaces("0", missing) + digits
	}
	return p.r.number(signOf(n.Sign() < 0, f), prefix, digits, "", f)
}
