package jinja

import (
	"math/big"
	"strconv"
	"strings"
)

// format is str.format.
func (r *run) format(s string, a arg) any {
	f := &formatter{r: r, args: a}
	return f.expand(s, 2)
}

// formatMap is str.format_map.
func (r *run) formatMap(s string, a arg) any {
	d, ok := a.bind("format_map", positional("mapping"))[0].(*Dict)
	if !ok {
		raise(typeError, "format_map() argument must be a dict")
	}
	f := &formatter{r: r, args: arg{named: d}}
	return f.expand(s, 2)
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
		field, rest := fieldEnd(s)
		parts = append(parts, f.field(field, depth))
		s = rest
	}
	return f.r.joined(parts, "")
}

// fieldEnd splits s after the field that it begins with.
func fieldEnd(s string) (field, rest string) {
	depth, bracket := 1, false
	inName := true
	for i := range len(s) {
		switch c := s[i]; {
		case bracket && inName:
			bracket = c != ']'
		case c == '[' && inName:
			bracket = true
		case c == '{':
			depth++
		case c == '}':
			if depth--; depth == 0 {
				return s[:i], s[i+1:]
			}
		case c == ':' || c == '!':
			inName = false
		}
	}
	if s == "" {
		raise(valueError, "Single '{' encountered in format string")
	}
	raise(valueError, "expected '}' before end of string")
	return "", ""
}

// field formats one field: name, "!" and a conversion, ":" and a specification.
func (f *formatter) field(s string, depth int) string {
	name, conversion, spec := s, "", ""
	if at := nameEnd(s); at >= 0 {
		name = s[:at]
		if s[at] == '!' {
			conversion = s[at+1 : min(at+2, len(s))]
			if conversion == "" {
				raise(valueError, "end of string while looking for conversion specifier")
			}
			rest := s[at+1+len(conversion):]
			if rest != "" && rest[0] != ':' {
				raise(valueError, "expected ':' after conversion specifier")
			}
			spec = strings.TrimPrefix(rest, ":")
		} else {
			spec = s[at+1:]
		}
	}
	v := f.lookup(name)
	switch conversion {
	case "":
	case "s":
		v = f.r.str(v)
	case "r":
		v = f.r.repr(v)
	case "a":
		v = asciiRepr(f.r.repr(v))
	default:
		raise(valueError, "Unknown conversion specifier %s", conversion)
	}
	return f.r.formatValue(v, f.expand(spec, depth-1+boolInt(spec == "")))
}

// nameEnd returns the end of the name of a field, -1 if nothing follows it.
func nameEnd(s string) int {
	bracket := false
	for i := range len(s) {
		switch c := s[i]; {
		case bracket:
			bracket = c != ']'
		case c == '[':
			bracket = true
		case c == ':' || c == '!':
			return i
		}
	}
	return -1
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
	zero, left := false, false
	for s != "" && strings.IndexByte("#0- +", s[0]) >= 0 {
		switch s[0] {
		case '#':
			f.alternate = true
		case '0':
			zero = true
		case '-':
			left = true
		case '+':
			f.sign = '+'
		case ' ':
			if f.sign != '+' {
				f.sign = ' '
			}
		}
		s = s[1:]
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
		return p.text(v, kind, f)
	case 'c':
		return p.char(v, f)
	case 'e', 'E', 'f', 'F', 'g', 'G':
		if !isNumber(v) {
			reject(v, "must be real number, not %s", typeName(v))
		}
		f.kind = kind
		return p.r.formatFloat(float(v), f)
	}
	return p.integer(v, kind, f)
}

func (p *printf) text(v any, kind byte, f spec) string {
	out := p.r.str(v)
	switch kind {
	case 'r':
		out = p.r.repr(v)
	case 'a':
		out = asciiRepr(p.r.repr(v))
	}
	if _, ok := v.(markup); p.markup && (!ok || kind != 's') {
		out = p.r.escape(out)
	}
	if f.precision >= 0 {
		if runes := []rune(out); f.precision < len(runes) {
			out = string(runes[:f.precision])
		}
	}
	return p.r.pad(out, f)
}

func (p *printf) char(v any, f spec) string {
	if s, ok := text(v); ok {
		if len([]rune(s)) != 1 {
			raise(typeError, "%%c requires int or char")
		}
		return p.r.pad(s, f)
	}
	n, ok := bigInteger(v)
	if !ok {
		raise(typeError, "%%c requires int or char")
	}
	if !n.IsInt64() || n.Int64() < 0 || n.Int64() > 0x10ffff {
		raise(overflowError, "%%c arg not in range(0x110000)")
	}
	return p.r.pad(string(rune(n.Int64())), f)
}

func (p *printf) integer(v any, kind byte, f spec) string {
	n, ok := bigInteger(v)
	if x, isFloat := v.(float64); isFloat && strings.IndexByte("diu", kind) >= 0 {
		n, ok = truncated(x), true
	}
	if !ok {
		reject(v, "%%%c format: a real number is required, not %s", kind, typeName(v))
	}
	digits, prefix := "", ""
	switch kind {
	case 'o':
		digits, prefix = new(big.Int).Abs(n).Text(8), "0o"
	case 'x', 'X':
		digits, prefix = new(big.Int).Abs(n).Text(16), "0x"
	default:
		intText(n) // for its limit
		digits = new(big.Int).Abs(n).String()
	}
	if !f.alternate {
		prefix = ""
	}
	if kind == 'X' {
		digits, prefix = strings.ToUpper(digits), strings.ToUpper(prefix)
	}
	if missing := f.precision - len(digits); missing > 0 {
		digits = p.r.spaces("0", missing) + digits
	}
	return p.r.number(signOf(n.Sign() < 0, f), prefix, digits, "", f)
}
