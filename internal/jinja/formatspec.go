package jinja

import (
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"
)

// spec is a format specification of Python: [[fill]align][sign][z][#][0][width][grouping][.precision][type].
type spec struct {
	fill      string
	align     byte // '<', '>', '=', '^'; 0 for the default
	sign      byte // '+', '-', ' '
	alternate bool
	noMinus   bool // "z": -0 is 0
	width     int
	grouping  string
	precision int // -1 if there is none
	kind      byte
}

func (r *run) parseSpec(s string) spec {
	f := spec{fill: " ", sign: '-', precision: -1}
	p := &specReader{[]rune(s)}
	aligned := p.alignment(&f)
	if p.is("+- ") {
		f.sign = byte(p.next())
	}
	f.noMinus = p.take('z')
	f.alternate = p.take('#')
	if p.take('0') {
		if f.align == 0 {
			f.align = '='
		}
		if !aligned {
			f.fill = "0"
		}
	}
	f.width, _ = p.number()
	if p.is(",_") {
		f.grouping = string(p.next())
		if p.is(",_") {
			raise(valueError, "Cannot specify both ',' and '_'.")
		}
	}
	if p.take('.') {
		precision, ok := p.number()
		if !ok {
			raise(valueError, "Format specifier missing precision")
		}
		f.precision = precision
		r.size(precision)
	}
	if len(p.rest) > 1 || len(p.rest) == 1 && p.rest[0] >= utf8.RuneSelf {
		raise(valueError, "Invalid format specifier")
	}
	if len(p.rest) == 1 {
		f.kind = byte(p.next())
	}
	r.size(f.width * len(f.fill))
	return f
}

// specReader parses a format specification.
type specReader struct{ rest []rune }

func (p *specReader) is(set string) bool {
	return len(p.rest) > 0 && strings.ContainsRune(set, p.rest[0])
}

func (p *specReader) next() rune {
	c := p.rest[0]
	p.rest = p.rest[1:]
	return c
}

func (p *specReader) take(c rune) bool {
	if !p.is(string(c)) {
		return false
	}
	p.next()
	return true
}

// alignment parses [[fill]align], and reports whether there is a fill.
func (p *specReader) alignment(f *spec) (filled bool) {
	const aligns = "<>=^"
	if len(p.rest) > 1 && strings.ContainsRune(aligns, p.rest[1]) {
		f.fill = string(p.next())
		filled = true
	}
	if p.is(aligns) {
		f.align = byte(p.next())
	}
	return filled
}

func (p *specReader) number() (n int, ok bool) {
	digits := ""
	for p.is("0123456789") {
		digits += string(p.next())
	}
	n, err := strconv.Atoi(digits)
	if err != nil && digits != "" {
		raise(valueError, "Too many decimal digits in format string")
	}
	return n, digits != ""
}

// formatValue is format(v, s).
func (r *run) formatValue(v any, s string) string {
	if t, ok := text(v); ok {
		return r.formatText(t, r.parseSpec(s))
	}
	switch v := v.(type) {
	case bool:
		if s == "" {
			return r.str(v)
		}
		return r.formatInt(big.NewInt(int64(boolInt(v))), r.parseSpec(s))
	case int:
		return r.formatInt(big.NewInt(int64(v)), r.parseSpec(s))
	case *big.Int:
		return r.formatInt(v, r.parseSpec(s))
	case float64:
		return r.formatFloat(v, r.parseSpec(s))
	}
	if s != "" {
		raise(typeError, "unsupported format string passed to %s.__format__", typeName(v))
	}
	return r.str(v)
}

func (f *spec) unknown(what string) {
	raise(valueError, "Unknown format code '%c' for object of type '%s'", f.kind, what)
}

func (r *run) formatText(s string, f spec) string {
	if f.kind != 0 && f.kind != 's' {
		f.unknown("str")
	}
	switch {
	case f.sign != '-' || f.noMinus:
		raise(valueError, "Sign not allowed in string format specifier")
	case f.alternate:
		raise(valueError, "Alternate form (#) not allowed in string format specifier")
	case f.align == '=' && f.fill != "0":
		raise(valueError, "'=' alignment not allowed in string format specifier")
	case f.grouping != "":
		raise(valueError, "Cannot specify '%s' with 's'.", f.grouping)
	}
	if f.precision >= 0 && f.precision < utf8.RuneCountInString(s) {
		s = string([]rune(s)[:f.precision])
	}
	if f.align == 0 || f.align == '=' {
		f.align = '<'
	}
	return r.pad(s, f)
}

// pad pads a text to the width.
func (r *run) pad(s string, f spec) string {
	missing := f.width - utf8.RuneCountInString(s)
	if missing <= 0 {
		return s
	}
	left := 0
	switch f.align {
	case '>':
		left = missing
	case '^':
		left = missing / 2
	}
	return r.spaces(f.fill, left) + s + r.spaces(f.fill, missing-left)
}

// number formats a sign, a prefix such as 0x, digits, and a rest such as a fraction.
func (r *run) number(sign, prefix, digits, rest string, f spec) string {
	group := 3
	if strings.IndexByte("bxXo", f.kind) >= 0 && f.kind != 0 {
		group = 4
	}
	fill := f.width - len(sign) - len(prefix) - len(rest)
	if f.align == '=' && f.fill == "0" {
		digits = grouped(digits, f.grouping, group, fill)
	} else {
		digits = grouped(digits, f.grouping, group, 0)
	}
	head := sign + prefix
	switch f.align {
	case '=':
		return head + r.spaces(f.fill, f.width-len(head)-len(digits)-len(rest)) + digits + rest
	case 0:
		f.align = '>'
	}
	return r.pad(head+digits+rest, f)
}

// grouped inserts a separator between groups of digits, and pads them with zeros to a width.
func grouped(digits, sep string, group, width int) string {
	if sep == "" {
		if n := width - len(digits); n > 0 {
			return strings.Repeat("0", n) + digits
		}
		return digits
	}
	out := ""
	for {
		part := digits[max(0, len(digits)-group):]
		digits = digits[:len(digits)-len(part)]
		if digits == "" && len(part) < group {
			if n := min(group-len(part), width-len(out)-len(part)); n > 0 {
				part = strings.Repeat("0", n) + part
			}
		}
		out = part + out
		if digits == "" && len(out) >= width {
			return out
		}
		out = sep + out
		if digits == "" { // padding continues before the separator
			digits = "0"
			if width-len(out) > 1 {
				digits = strings.Repeat("0", min(group, width-len(out)))
			}
		}
	}
}

func signOf(negative bool, f spec) string {
	switch {
	case negative:
		return "-"
	case f.sign != '-':
		return string(f.sign)
	}
	return ""
}

func (r *run) formatInt(v *big.Int, f spec) string {
	if strings.IndexByte("eEfFgG%", f.kind) >= 0 && f.kind != 0 {
		return r.formatFloat(float(normInt(v)), f)
	}
	if f.precision >= 0 {
		raise(valueError, "Precision not allowed in integer format specifier")
	}
	if f.noMinus {
		raise(valueError, "Negative zero coercion (z) not allowed in format specifier with integer format code")
	}
	base, prefix := 10, ""
	switch f.kind {
	case 0, 'd', 'n':
		if f.kind == 'n' && f.grouping != "" {
			raise(valueError, "Cannot specify '%s' with 'n'.", f.grouping)
		}
	case 'b':
		base, prefix = 2, "0b"
	case 'o':
		base, prefix = 8, "0o"
	case 'x':
		base, prefix = 16, "0x"
	case 'X':
		base, prefix = 16, "0X"
	case 'c':
		return r.formatChar(v, f)
	default:
		f.unknown("int")
	}
	if f.grouping == "," && base != 10 {
		raise(valueError, "Cannot specify ',' with '%c'.", f.kind)
	}
	if !f.alternate {
		prefix = ""
	}
	if base == 10 {
		intText(v) // for its limit
	}
	digits := new(big.Int).Abs(v).Text(base)
	if f.kind == 'X' {
		digits = strings.ToUpper(digits)
	}
	return r.number(signOf(v.Sign() < 0, f), prefix, digits, "", f)
}

func (r *run) formatChar(v *big.Int, f spec) string {
	if f.sign != '-' || f.alternate || f.grouping != "" {
		raise(valueError, "Sign, alternate form or grouping not allowed with integer format specifier 'c'")
	}
	if !v.IsInt64() || v.Int64() < 0 || v.Int64() > utf8.MaxRune {
		raise(overflowError, "%%c arg not in range(0x110000)")
	}
	if f.align == 0 {
		f.align = '<'
	}
	return r.pad(string(rune(v.Int64())), f)
}

func (r *run) formatFloat(v float64, f spec) string {
	negative := math.Signbit(v) && !math.IsNaN(v)
	x := math.Abs(v)
	var digits string
	switch f.kind {
	case 0:
		digits = plainFloat(x, f)
	case 'e', 'E', 'f', 'F', 'g', 'G', 'n', '%':
		kind, precision := f.kind, f.precision
		if precision < 0 {
			precision = 6
		}
		if kind == '%' {
			x, kind = x*100, 'f'
		}
		digits = floatDigits(x, kind, precision, f.alternate)
	default:
		f.unknown("float")
	}
	if f.kind == '%' {
		digits += "%"
	}
	if f.noMinus && strings.Trim(digits, "0.%e+") == "" {
		negative = false
	}
	whole := len(digits) - len(strings.TrimLeft(digits, "0123456789"))
	if whole == 0 { // inf and nan
		if f.fill == "0" && f.align == '=' {
			return r.number(signOf(negative, f), "", digits, "", spec{fill: "0", align: '=', width: f.width})
		}
		return r.number(signOf(negative, f), "", digits, "", spec{fill: f.fill, align: f.align, width: f.width})
	}
	f.kind = 0
	return r.number(signOf(negative, f), "", digits[:whole], digits[whole:], f)
}

// plainFloat is the format without a type: repr, or general with at least one digit after the point.
func plainFloat(x float64, f spec) string {
	if f.precision < 0 {
		return floatText(x)
	}
	s := floatDigits(x, 'g', f.precision, f.alternate)
	if strings.ContainsAny(s, "infa") {
		return s
	}
	// Without a type the exponent is used from one digit less on, so that there is room for ".0".
	p := max(1, f.precision)
	e := strconv.FormatFloat(x, 'e', p-1, 64)
	exponent, _ := strconv.Atoi(e[strings.IndexByte(e, 'e')+1:]) // FormatFloat writes one
	if exponent == p-1 && x != 0 && !strings.Contains(s, "e") {
		return trimZeros(e[:strings.IndexByte(e, 'e')]) + e[strings.IndexByte(e, 'e'):]
	}
	if !strings.ContainsAny(s, ".e") {
		s += ".0"
	}
	return s
}

func trimZeros(s string) string {
	if !strings.Contains(s, ".") {
		return s
	}
	return strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
}

// floatDigits formats a float that is not negative as C does, with e, f, g or their capitals.
func floatDigits(x float64, kind byte, precision int, alternate bool) string {
	lower := kind | 0x20
	if math.IsInf(x, 0) || math.IsNaN(x) {
		s := strings.TrimPrefix(strings.ToLower(strconv.FormatFloat(x, 'f', -1, 64)), "+")
		if kind < 'a' {
			return strings.ToUpper(s)
		}
		return s
	}
	s := ""
	switch lower {
	case 'e', 'f':
		s = strconv.FormatFloat(x, lower, precision, 64)
		if alternate && precision == 0 {
			s = strings.Replace(s+"e", "e", ".e", 1)
			s = strings.TrimSuffix(s, "e")
		}
	default:
		s = generalDigits(x, precision, alternate)
	}
	if kind < 'a' {
		return strings.ToUpper(s)
	}
	return s
}

// generalDigits is %g: an exponent below 1e-4 and from 10^precision on, no trailing zeros unless it is alternate.
func generalDigits(x float64, precision int, alternate bool) string {
	precision = max(1, precision)
	e := strconv.FormatFloat(x, 'e', precision-1, 64)
	at := strings.IndexByte(e, 'e')
	exponent, _ := strconv.Atoi(e[at+1:]) // FormatFloat writes one
	mantissa, tail := e[:at], e[at:]
	if exponent >= -4 && exponent < precision {
		mantissa, tail = strconv.FormatFloat(x, 'f', precision-1-exponent, 64), ""
	}
	if alternate {
		if !strings.Contains(mantissa, ".") {
			mantissa += "."
		}
	} else {
		mantissa = trimZeros(mantissa)
	}
	return mantissa + tail
}
