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
	const aligns = "<>=^"
	filled := len(p.rest) > 1 && strings.ContainsRune(aligns, p.rest[1])
	if filled {
		f.fill = string(p.next())
	}
	if p.is(aligns) {
		f.align = byte(p.next())
	}
	if p.is("+- ") {
		f.sign = byte(p.next())
	}
	f.noMinus = p.take('z')
	f.alternate = p.take('#')
	if p.take('0') {
		if f.align == 0 {
			f.align = '='
		}
		if !filled {
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
		var ok bool
		if f.precision, ok = p.number(); !ok {
			raise(valueError, "Format specifier missing precision")
		}
		r.size(f.precision)
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
	if f.align == 0 || f.align == '=' {
		f.align = '<'
	}
	return r.pad(cut(s, f.precision), f)
}

// cut returns the first n characters of a text; all of them if n is negative.
func cut(s string, n int) string {
	if n < 0 || n >= utf8.RuneCountInString(s) {
		return s
	}
	return string([]rune(s)[:n])
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
	if f.align != '=' || f.fill != "0" {
		fill = 0
	}
	digits = grouped(digits, f.grouping, group, fill)
	head, tail := sign+prefix, digits+rest
	switch f.align {
	case '=':
		return head + r.spaces(f.fill, f.width-len(head)-len(tail)) + tail
	case 0:
		f.align = '>'
	}
	return r.pad(head+tail, f)
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
	switch f.kind {
	case 0, 'd', 'b', 'o', 'x', 'X':
	case 'n':
		if f.grouping != "" {
			raise(valueError, "Cannot specify '%s' with 'n'.", f.grouping)
		}
	case 'c':
		if f.sign != '-' || f.alternate || f.grouping != "" {
			raise(valueError, "Sign, alternate form or grouping not allowed with integer format specifier 'c'")
		}
		if f.align == 0 {
			f.align = '<'
		}
		return r.pad(character(v), f)
	default:
		f.unknown("int")
	}
	digits, prefix := intDigits(v, f.kind)
	if f.grouping == "," && prefix != "" {
		raise(valueError, "Cannot specify ',' with '%c'.", f.kind)
	}
	if !f.alternate {
		prefix = ""
	}
	return r.number(signOf(v.Sign() < 0, f), prefix, digits, "", f)
}

// character is chr(n).
func character(n *big.Int) string {
	if !n.IsInt64() || n.Int64() < 0 || n.Int64() > utf8.MaxRune {
		raise(overflowError, "%%c arg not in range(0x110000)")
	}
	return string(rune(n.Int64()))
}

// intDigits returns the digits of an int without its sign in the base of a format, and the prefix of that base.
func intDigits(n *big.Int, kind byte) (digits, prefix string) {
	abs := new(big.Int).Abs(n)
	switch kind {
	case 'b':
		return abs.Text(2), "0b"
	case 'o':
		return abs.Text(8), "0o"
	case 'x':
		return abs.Text(16), "0x"
	case 'X':
		return strings.ToUpper(abs.Text(16)), "0X"
	}
	return intText(abs), ""
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
	mantissa, tail, exponent := scientific(x, p-1)
	if exponent == p-1 && x != 0 && !strings.Contains(s, "e") {
		return trimZeros(mantissa) + tail
	}
	if !strings.ContainsAny(s, ".e") {
		s += ".0"
	}
	return s
}

// scientific returns the parts of a number in scientific notation, and its exponent.
func scientific(x float64, precision int) (mantissa, tail string, exponent int) {
	s := strconv.FormatFloat(x, 'e', precision, 64)
	at := strings.IndexByte(s, 'e')
	exponent, _ = strconv.Atoi(s[at+1:]) // FormatFloat writes one
	return s[:at], s[at:], exponent
}

func trimZeros(s string) string {
	if !strings.Contains(s, ".") {
		return s
	}
	return strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
}

// floatDigits formats a float that is not negative as C does, with e, f, g or their capitals.
func floatDigits(x float64, kind byte, precision int, alternate bool) string {
	mantissa, tail := floatText(x), "" // of inf and nan
	if !math.IsInf(x, 0) && !math.IsNaN(x) {
		switch kind | 0x20 {
		case 'e':
			mantissa, tail, _ = scientific(x, precision)
		case 'f':
			mantissa = strconv.FormatFloat(x, 'f', precision, 64)
		default: // an exponent below 1e-4 and from 10^precision on, no trailing zeros unless it is alternate
			precision = max(1, precision)
			var exponent int
			mantissa, tail, exponent = scientific(x, precision-1)
			if exponent >= -4 && exponent < precision {
				mantissa, tail = strconv.FormatFloat(x, 'f', precision-1-exponent, 64), ""
			}
			if !alternate {
				mantissa = trimZeros(mantissa)
			}
		}
		if alternate && !strings.Contains(mantissa, ".") {
			mantissa += "."
		}
	}
	s := mantissa + tail
	if kind < 'a' {
		return strings.ToUpper(s)
	}
	return s
}
