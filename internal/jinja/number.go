package jinja

import (
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
)

// maxIntDigits is Python's limit on the digits of an int in conversions from and to str.
const maxIntDigits = 4300

// maxIntBits bounds the size of an int.
const maxIntBits = 1 << 17

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// normInt returns an int in its canonical form.
func normInt(v *big.Int) any {
	if v.IsInt64() {
		if n := v.Int64(); int64(int(n)) == n {
			return int(n)
		}
	}
	if v.BitLen() > maxIntBits {
		raise(limitError, "an int of more than %d bits", maxIntBits)
	}
	return v
}

// integer returns an int or bool as a small int; ok is false for others and for big ones.
func integer(v any) (n int, ok bool) {
	switch v := v.(type) {
	case int:
		return v, true
	case bool:
		return boolInt(v), true
	}
	return 0, false
}

// bigInteger returns an int or bool.
func bigInteger(v any) (*big.Int, bool) {
	if n, ok := integer(v); ok {
		return big.NewInt(int64(n)), true
	}
	b, ok := v.(*big.Int)
	return b, ok
}

// toBig is bigInteger for a value that is one.
func toBig(v any) *big.Int {
	n, _ := bigInteger(v)
	return n
}

func isNumber(v any) bool {
	switch v.(type) {
	case int, bool, float64, *big.Int:
		return true
	}
	return false
}

// float is float(v) for a number.
func float(v any) float64 {
	switch v := v.(type) {
	case float64:
		return v
	case *big.Int:
		f, _ := new(big.Float).SetInt(v).Float64()
		if math.IsInf(f, 0) {
			raise(overflowError, "int too large to convert to float")
		}
		return f
	}
	n, _ := integer(v)
	return float64(n)
}

// clampInt returns an int, clamped to the range of Go's int; what is the message of a TypeError for other values.
func (r *run) clampInt(v any, what string) int {
	if n, ok := integer(v); ok {
		return n
	}
	b, ok := v.(*big.Int)
	if !ok {
		raise(typeError, "%s", what)
	}
	if b.Sign() < 0 {
		return math.MinInt
	}
	return math.MaxInt
}

// index returns an int argument.
func (r *run) index(v any) int {
	n, ok := integer(v)
	if _, big := v.(*big.Int); big {
		raise(overflowError, "cannot fit 'int' into an index-sized integer")
	}
	if !ok {
		raise(typeError, "'%s' object cannot be interpreted as an integer", typeName(v))
	}
	return n
}

// operate is an arithmetic operator.
func (r *run) operate(op string, a, b any) any {
	if s, ok := text(a); ok && op == "%" {
		return r.percent(a, s, b)
	}
	defined(a)
	defined(b)
	if isNumber(a) && isNumber(b) {
		_, fa := a.(float64)
		_, fb := b.(float64)
		if fa || fb || op == "/" {
			return floatOperate(op, a, b)
		}
		return r.intOperate(op, a, b)
	}
	switch op {
	case "+":
		return r.add(a, b)
	case "*":
		if v, ok := r.repeat(a, b); ok {
			return v
		}
		if v, ok := r.repeat(b, a); ok {
			return v
		}
	}
	return unsupported(op, a, b)
}

func unsupported(op string, a, b any) any {
	if op == "**" {
		op = "** or pow()"
	}
	raise(typeError, "unsupported operand type(s) for %s: '%s' and '%s'", op, typeName(a), typeName(b))
	return nil
}

// add concatenates strings, lists or tuples.
func (r *run) add(a, b any) any {
	if s, ok := text(a); ok {
		t, ok := text(b)
		if !ok {
			raise(typeError, `can only concatenate str (not "%s") to str`, typeName(b))
		}
		_, ma := a.(markup)
		_, mb := b.(markup)
		if mb && !ma {
			s = r.escape(s)
		}
		if ma && !mb {
			t = r.escape(t)
		}
		r.size(len(s) + len(t))
		if ma || mb {
			return markup(s + t)
		}
		return s + t
	}
	if a, ok := a.(*list); ok {
		if b, ok := b.(*list); ok && a.tuple == b.tuple {
			r.charge(16 * (len(a.items) + len(b.items)))
			return &list{items: slices.Concat(a.items, b.items), tuple: a.tuple}
		}
		raise(typeError, `can only concatenate %s (not "%s") to %[1]s`, typeName(a), typeName(b))
	}
	return unsupported("+", a, b)
}

// repeat is a * n for a string, list or tuple.
func (r *run) repeat(a, n any) (any, bool) {
	if _, ok := bigInteger(n); !ok {
		return nil, false
	}
	count := max(0, r.index(n))
	if s, ok := text(a); ok {
		r.size(r.times(count, len(s)))
		return likeText(a, strings.Repeat(s, count)), true
	}
	l, ok := a.(*list)
	if !ok {
		return nil, false
	}
	r.size(16 * r.times(count, len(l.items)))
	if len(l.items) == 0 {
		count = 0
	}
	return &list{items: slices.Repeat(l.items, count), tuple: l.tuple}, true
}

// likeText returns s as markup if v is.
func likeText(v any, s string) any {
	if _, ok := v.(markup); ok {
		return markup(s)
	}
	return s
}

func (r *run) intOperate(op string, a, b any) any {
	x, okX := integer(a)
	y, okY := integer(b)
	if okX && okY {
		if v, ok := smallOperate(op, x, y); ok {
			return v
		}
	}
	p, q := toBig(a), toBig(b)
	r.charge(p.BitLen() + q.BitLen())
	switch op {
	case "+":
		return normInt(new(big.Int).Add(p, q))
	case "-":
		return normInt(new(big.Int).Sub(p, q))
	case "*":
		return normInt(new(big.Int).Mul(p, q))
	case "**":
		return r.power(p, q)
	}
	if q.Sign() == 0 {
		raise("ZeroDivisionError", "integer division or modulo by zero")
	}
	div, mod := new(big.Int).QuoRem(p, q, new(big.Int))
	if mod.Sign() != 0 && mod.Sign() != q.Sign() {
		div.Sub(div, big.NewInt(1))
		mod.Add(mod, q)
	}
	if op == "//" {
		return normInt(div)
	}
	return normInt(mod)
}

// smallOperate computes with small ints; ok is false if the result may be big.
func smallOperate(op string, x, y int) (v any, ok bool) {
	const half = 1 << 30
	switch op {
	case "+":
		z := x + y
		return z, (z > x) == (y > 0)
	case "-":
		z := x - y
		return z, (z < x) == (y > 0)
	case "*":
		return x * y, x > -half && x < half && y > -half && y < half
	case "//", "%":
		if y == 0 || y == -1 {
			return nil, false
		}
		div, mod := x/y, x%y
		if mod != 0 && (mod < 0) != (y < 0) {
			div, mod = div-1, mod+y
		}
		if op == "//" {
			return div, true
		}
		return mod, true
	}
	return nil, false
}

func (r *run) power(p, q *big.Int) any {
	if q.Sign() < 0 {
		return floatOperate("**", normInt(p), normInt(q))
	}
	if p.BitLen() <= 1 { // -1, 0 or 1
		if q.Sign() == 0 || p.Sign() < 0 && q.Bit(0) == 0 {
			return 1
		}
		return normInt(p)
	}
	if !q.IsInt64() || q.Int64() > maxIntBits || int64(p.BitLen()-1)*q.Int64() > maxIntBits {
		raise(limitError, "an int of more than %d bits", maxIntBits)
	}
	r.charge(p.BitLen() * int(q.Int64()))
	return normInt(new(big.Int).Exp(p, q, nil))
}

func floatOperate(op string, a, b any) any {
	x, y := float(a), float(b)
	switch op {
	case "+":
		return x + y
	case "-":
		return x - y
	case "*":
		return x * y
	case "**":
		return floatPower(x, y)
	}
	if y == 0 {
		raise("ZeroDivisionError", "division by zero")
	}
	if op == "/" {
		p, okP := bigInteger(a)
		q, okQ := bigInteger(b)
		if okP && okQ && (p.BitLen() > 53 || q.BitLen() > 53) { // not exact as floats
			f, _ := new(big.Rat).SetFrac(p, q).Float64()
			return f
		}
		return x / y
	}
	div, mod := floatDivmod(x, y)
	if op == "//" {
		return div
	}
	return mod
}

func floatPower(x, y float64) float64 {
	if x == 0 && y < 0 {
		raise("ZeroDivisionError", "0.0 cannot be raised to a negative power")
	}
	if x < 0 && y != math.Trunc(y) && !math.IsInf(x, 0) && !math.IsInf(y, 0) {
		raise(valueError, "a negative number to the power of a fraction is complex, which is not supported")
	}
	f := math.Pow(x, y)
	if math.IsInf(f, 0) && !math.IsInf(x, 0) && !math.IsInf(y, 0) {
		raise(overflowError, "(34, 'Numerical result out of range')")
	}
	return f
}

// floatDivmod is divmod for floats, with the same steps as CPython.
func floatDivmod(x, y float64) (div, mod float64) {
	mod = math.Mod(x, y)
	div = (x - mod) / y
	if mod != 0 {
		if (y < 0) != (mod < 0) {
			mod += y
			div--
		}
	} else {
		mod = math.Copysign(0, y)
	}
	if div == 0 {
		return math.Copysign(0, x/y), mod
	}
	floor := math.Floor(div)
	if div-floor > 0.5 {
		floor++
	}
	return floor, mod
}

func negate(v any) any {
	if f, ok := v.(float64); ok {
		return -f
	}
	n, ok := bigInteger(v)
	if !ok {
		reject(v, "bad operand type for unary -: '%s'", typeName(v))
	}
	return normInt(new(big.Int).Neg(n))
}

func positive(v any) any {
	switch v := v.(type) {
	case int, float64, *big.Int:
		return v
	case bool:
		return boolInt(v)
	}
	reject(v, "bad operand type for unary +: '%s'", typeName(v))
	return nil
}

// intText is str(v) for an int.
func intText(v *big.Int) string {
	if v.BitLen() > maxIntDigits*4 || len(v.String()) > maxIntDigits+1 {
		raise(valueError, "Exceeds the limit (%d digits) for integer string conversion", maxIntDigits)
	}
	return v.String()
}

// floatText is repr(f): the shortest digits that round to f, with an exponent below 1e-4 and from 1e16 on.
func floatText(f float64) string {
	if math.IsInf(f, 0) || math.IsNaN(f) {
		return strings.ToLower(strings.TrimPrefix(strconv.FormatFloat(f, 'f', -1, 64), "+"))
	}
	if mantissa, tail, exponent := scientific(f, -1); exponent < -4 || exponent >= 16 {
		return mantissa + tail
	}
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}
