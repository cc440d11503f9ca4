package jinja

import (
	"math"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"unicode"
)

func (r *run) intFilter(v any, a arg) any {
	args := a.bind("int", optional("default", 0), optional("base", 10))
	if s, ok := text(v); ok {
		if n, ok := parseInt(s, r.index(args[1])); ok {
			return n
		}
		f, ok := parseFloat(s)
		if !ok || math.IsInf(f, 0) || math.IsNaN(f) {
			return args[0]
		}
		return normInt(truncated(f))
	}
	switch v := v.(type) {
	case int, bool, *big.Int:
		return positive(v)
	case float64:
		if math.IsNaN(v) {
			return args[0]
		}
		return normInt(truncated(v))
	}
	defined(v)
	return args[0]
}

// truncated is int(f).
func truncated(f float64) *big.Int {
	if math.IsInf(f, 0) {
		raise(overflowError, "cannot convert float infinity to integer")
	}
	if math.IsNaN(f) {
		raise(valueError, "cannot convert float NaN to integer")
	}
	n, _ := big.NewFloat(f).Int(nil)
	return n
}

// parseInt is int(s, base).
func parseInt(s string, base int) (any, bool) {
	if base != 0 && (base < 2 || base > 36) {
		return nil, false
	}
	s = asciiDigits(strings.TrimFunc(s, isSpace))
	sign := ""
	if s != "" && (s[0] == '+' || s[0] == '-') {
		sign, s = s[:1], s[1:]
	}
	prefixes := map[int]string{2: "0b", 8: "0o", 16: "0x"}
	lower := strings.ToLower(s)
	for b, p := range prefixes {
		if (base == b || base == 0) && strings.HasPrefix(lower, p) {
			s, base = strings.TrimPrefix(s[2:], "_"), b
			break
		}
	}
	if base == 0 {
		if strings.Trim(s, "0_") != "" && strings.HasPrefix(s, "0") {
			return nil, false
		}
		base = 10
	}
	if s == "" || strings.HasPrefix(s, "_") || strings.HasSuffix(s, "_") || strings.Contains(s, "__") ||
		strings.ContainsAny(s, "+-") {
		return nil, false
	}
	digits := strings.ReplaceAll(s, "_", "")
	if base&(base-1) != 0 && len(digits) > maxIntDigits {
		return nil, false
	}
	n, ok := new(big.Int).SetString(digits, base)
	if !ok {
		return nil, false
	}
	if sign == "-" {
		n.Neg(n)
	}
	return normInt(n), true
}

// asciiDigits replaces decimal digits of other scripts.
func asciiDigits(s string) string {
	if ascii(s) {
		return s
	}
	return strings.Map(func(c rune) rune {
		if c < 0x80 || !unicode.Is(unicode.Nd, c) {
			return c
		}
		zero := c
		for unicode.Is(unicode.Nd, zero-1) && c-zero < 9 {
			zero--
		}
		return '0' + c - zero
	}, s)
}

// strayUnderscore matches underscores that are not between digits.
var strayUnderscore = regexp.MustCompile(`(^|[^0-9])_|_([^0-9]|$)`)

// parseFloat is float(s).
func parseFloat(s string) (float64, bool) {
	s = asciiDigits(strings.TrimFunc(s, isSpace))
	if strayUnderscore.MatchString(s) {
		return 0, false
	}
	plain := strings.ToLower(strings.ReplaceAll(s, "_", ""))
	if strings.ContainsAny(plain, "xp") {
		return 0, false
	}
	f, err := strconv.ParseFloat(plain, 64)
	if err != nil && !math.IsInf(f, 0) {
		return 0, false
	}
	return f, true
}

func (r *run) floatFilter(v any, a arg) any {
	otherwise := a.bind("float", optional("default", 0.0))[0]
	if s, ok := text(v); ok {
		if f, ok := parseFloat(s); ok {
			return f
		}
		return otherwise
	}
	defined(v)
	if isNumber(v) {
		return float(v)
	}
	return otherwise
}

func (r *run) roundFilter(v any, a arg) any {
	args := a.bind("round", optional("precision", 0), optional("method", "common"))
	method, _ := text(args[1])
	if method != "common" && method != "ceil" && method != "floor" {
		raise(argumentError, "method must be common, ceil or floor")
	}
	if method == "common" {
		return r.round(v, args[0])
	}
	scale := r.operate("**", 10, args[0])
	x := r.operate("*", v, scale)
	if !isNumber(x) {
		raise(typeError, "must be real number, not %s", typeName(x))
	}
	if f, ok := x.(float64); ok {
		to := math.Floor(f)
		if method == "ceil" {
			to = math.Ceil(f)
		}
		x = normInt(truncated(to))
	}
	return r.operate("/", x, scale)
}

// round is round(v, digits): to nearest, ties to even.
func (r *run) round(v, digits any) any {
	if !isNumber(v) {
		raise(typeError, "type %s doesn't define __round__ method", typeName(v))
	}
	f, isFloat := v.(float64)
	if digits == nil {
		if !isFloat {
			return positive(v)
		}
		return normInt(truncated(math.RoundToEven(f)))
	}
	n := r.index(digits)
	if isFloat {
		return roundFloat(f, n)
	}
	if n >= 0 {
		return positive(v)
	}
	if n < -maxIntDigits {
		return 0
	}
	unit := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(-n)), nil)
	return normInt(new(big.Int).Mul(roundRat(new(big.Rat).SetFrac(toBig(v), unit)), unit))
}

func roundFloat(f float64, n int) float64 {
	switch {
	case math.IsNaN(f) || math.IsInf(f, 0) || n > 323:
		return f
	case n < -308:
		return math.Copysign(0, f)
	case n >= 0:
		out, _ := strconv.ParseFloat(strconv.FormatFloat(f, 'f', n, 64), 64) // FormatFloat writes a valid number
		return out
	}
	unit := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(-n)), nil)
	x := new(big.Rat).SetFloat64(f)
	x.Quo(x, new(big.Rat).SetInt(unit))
	out, _ := new(big.Float).SetInt(new(big.Int).Mul(roundRat(x), unit)).Float64()
	if out == 0 {
		return math.Copysign(0, f)
	}
	if math.IsInf(out, 0) {
		raise(overflowError, "rounded value too large to represent")
	}
	return out
}

// roundRat rounds to the nearest integer, ties to even.
func roundRat(x *big.Rat) *big.Int {
	twice := new(big.Int).Mul(x.Num(), big.NewInt(2))
	twice.Add(twice, x.Denom())
	double := new(big.Int).Mul(x.Denom(), big.NewInt(2))
	out, rest := new(big.Int).DivMod(twice, double, new(big.Int))
	if rest.Sign() == 0 && out.Bit(0) == 1 {
		out.Sub(out, big.NewInt(1))
	}
	return out
}

func (r *run) filesizeFilter(v any, a arg) any {
	base, infix := 1000.0, ""
	if truth(a.bind("filesizeformat", optional("binary", false))[0]) {
		base, infix = 1024, "i"
	}
	f := 0.0
	s, isText := text(v)
	switch {
	case isText:
		var ok bool
		if f, ok = parseFloat(s); !ok {
			raise(valueError, "could not convert string to float: %s", reprString(s))
		}
	case isNumber(v):
		f = float(v)
	default:
		reject(v, "float() argument must be a string or a real number, not '%s'", typeName(v))
	}
	switch {
	case f == 1:
		return "1 Byte"
	case f < base:
		return intText(truncated(f)) + " Bytes"
	}
	unit, size := base, base*base
	prefix := 0
	for f >= size && prefix < 7 {
		unit, size = size, size*base
		prefix++
	}
	letter := "kMGTPEZY"[prefix : prefix+1]
	if infix != "" {
		letter = strings.ToUpper(letter)
	}
	return strconv.FormatFloat(base*f/(unit*base), 'f', 1, 64) + " " + letter + infix + "B"
}
