package grammar

import (
	"fmt"
	"math/big"
	"strings"
)

// maxDigits bounds the digits before and after the decimal point of a number, and maxExponent those of its exponent: a
// model could write digits for ever, and a float64 holds every number so bounded. Bounds with more digits allow more.
const (
	maxDigits   = 20
	maxExponent = 2
)

// bound is a limit of a number.
type bound struct {
	value     *big.Rat // with a finite decimal expansion
	exclusive bool
}

// numberBounds are the constraints on one number.
type numberBounds struct {
	integer  bool
	low      *bound
	high     *bound
	multiple int // divisor of an integer; 0 is none
}

// key identifies the constraints.
func (n numberBounds) key() string {
	describe := func(b *bound) string {
		if b == nil {
			return "none"
		}
		return fmt.Sprint(b.value.RatString(), b.exclusive)
	}
	return fmt.Sprintf("number %t %s %s %d", n.integer, describe(n.low), describe(n.high), n.multiple)
}

// numberRule returns the rule of the numbers within bounds, which it makes if needed.
func (c *compilation) numberRule(bounds numberBounds) int32 {
	return c.shared(bounds.key(), func() *dfa { return build(c.number(bounds), c.budget) })
}

// number is the numbers within bounds.
func (c *compilation) number(bounds numberBounds) fragment {
	minus := optional(literal("-"))
	if bounds.low == nil && bounds.high == nil && bounds.multiple == 0 {
		if bounds.integer {
			return sequence(minus, wholeDigits(maxDigits))
		}
		exponent := sequence(byteSet([2]byte{'e', 'e'}, [2]byte{'E', 'E'}),
			optional(byteSet([2]byte{'+', '+'}, [2]byte{'-', '-'})), repeat(digit, 1, maxExponent))
		return sequence(minus, wholeDigits(maxDigits), optional(fraction(maxDigits)), optional(exponent))
	}
	return anyOf(c.positive(bounds), sequence(literal("-"), c.negative(bounds)))
}

// wholeDigits is a whole number without sign and leading zeros.
func wholeDigits(most int) fragment {
	return anyOf(literal("0"), sequence(byteSet([2]byte{'1', '9'}), repeat(digit, 0, most-1)))
}

// fraction is a decimal point with digits.
func fraction(most int) fragment { return sequence(literal("."), repeat(digit, 1, most)) }

// positive is the numbers within bounds that have no sign.
func (c *compilation) positive(bounds numberBounds) fragment {
	var low, high *bound
	if b := bounds.low; b != nil && (b.value.Sign() > 0 || b.value.Sign() == 0 && b.exclusive) {
		low = b
	}
	if high = bounds.high; high != nil && high.value.Sign() < 0 {
		return never
	}
	return c.magnitude(bounds, low, high)
}

// negative is the numbers within bounds that have a minus sign, without it.
func (c *compilation) negative(bounds numberBounds) fragment {
	var low, high *bound
	if b := bounds.high; b != nil && (b.value.Sign() < 0 || b.value.Sign() == 0 && b.exclusive) {
		low = b.negate()
	}
	if b := bounds.low; b != nil {
		if b.value.Sign() >= 0 {
			return never
		}
		high = b.negate()
	}
	return c.magnitude(bounds, low, high)
}

func (b *bound) negate() *bound {
	return &bound{new(big.Rat).Neg(b.value), b.exclusive}
}

// magnitude is the decimal numbers without sign and exponent between low and high, which are not negative.
func (c *compilation) magnitude(bounds numberBounds, low, high *bound) fragment {
	whole, decimals := maxDigits, maxDigits
	for _, b := range []*bound{low, high} {
		if b != nil {
			w, f := b.digits()
			whole, decimals = max(whole, len(w)+1), max(decimals, len(f)+1)
		}
	}
	form := wholeDigits(whole)
	if !bounds.integer {
		form = sequence(form, optional(fraction(decimals)))
	}
	parts := []*dfa{build(form, c.budget)}
	if low != nil {
		parts = append(parts, build(atLeast(low), c.budget))
	}
	if high != nil {
		parts = append(parts, build(atMost(high), c.budget))
	}
	if bounds.multiple > 0 {
		parts = append(parts, multipleOf(bounds.multiple, c.budget))
	}
	return intersect(c.budget, parts...).fragment
}

// digits returns the digits before and after the decimal point, the latter without trailing zeros.
func (b *bound) digits() (whole, decimals string) {
	places, _ := b.value.FloatPrec()
	whole, decimals, _ = strings.Cut(b.value.FloatString(places), ".")
	return whole, decimals
}

// below and above are one digit less or greater than another.
func below(d byte) fragment {
	if d == '0' {
		return never
	}
	return byteSet([2]byte{'0', d - 1})
}

func above(d byte) fragment {
	if d == '9' {
		return never
	}
	return byteSet([2]byte{d + 1, '9'})
}

var (
	digits       = repeat(digit, 0, -1)
	anyFraction  = optional(sequence(literal("."), digits))
	zeroFraction = optional(sequence(literal("."), repeat(literal("0"), 0, -1)))
)

// atLeast is the decimal numbers from b upwards. Their form is checked elsewhere.
func atLeast(b *bound) fragment {
	whole, decimals := b.digits()
	parts := []fragment{sequence(digit, repeat(digit, len(whole), -1), anyFraction)}
	for i := range whole {
		rest := repeat(digit, len(whole)-1-i, len(whole)-1-i)
		parts = append(parts, sequence(literal(whole[:i]), above(whole[i]), rest, anyFraction))
	}
	return anyOf(append(parts, sequence(literal(whole), fractionAtLeast(decimals, b.exclusive)))...)
}

// fractionAtLeast is the fractions from one upwards.
func fractionAtLeast(decimals string, exclusive bool) fragment {
	var parts []fragment
	for i := range decimals {
		parts = append(parts, sequence(literal("."+decimals[:i]), above(decimals[i]), digits))
	}
	equal := sequence(literal("."+decimals), digits)
	switch {
	case exclusive:
		equal = sequence(literal("."+decimals), repeat(literal("0"), 0, -1), byteSet([2]byte{'1', '9'}), digits)
	case decimals == "":
		equal = anyFraction
	}
	return anyOf(append(parts, equal)...)
}

// atMost is the decimal numbers from zero to b. Their form is checked elsewhere.
func atMost(b *bound) fragment {
	whole, decimals := b.digits()
	var parts []fragment
	if len(whole) > 1 {
		parts = append(parts, sequence(repeat(digit, 1, len(whole)-1), anyFraction))
	}
	for i := range whole {
		rest := repeat(digit, len(whole)-1-i, len(whole)-1-i)
		parts = append(parts, sequence(literal(whole[:i]), below(whole[i]), rest, anyFraction))
	}
	return anyOf(append(parts, sequence(literal(whole), fractionAtMost(decimals, b.exclusive)))...)
}

// fractionAtMost is the fractions from zero to one.
func fractionAtMost(decimals string, exclusive bool) fragment {
	var parts []fragment
	for i := range decimals {
		// A prefix is less, because the last decimal is not zero.
		parts = append(parts, sequence(literal("."+decimals[:i]), optional(sequence(below(decimals[i]), digits))))
	}
	if decimals != "" {
		parts = append(parts, nothing)
	}
	switch {
	case exclusive:
	case decimals == "":
		parts = append(parts, zeroFraction)
	default:
		parts = append(parts, sequence(literal("."+decimals), repeat(literal("0"), 0, -1)))
	}
	return anyOf(parts...)
}

// multipleOf is the sequences of digits whose value a divisor divides. State i stands for the remainder i.
func multipleOf(divisor int, b *budget) *dfa {
	result := &dfa{}
	for remainder := range divisor {
		b.addState()
		state := dfaState{final: remainder == 0}
		for d := range 10 {
			to := int32((remainder*10 + d) % divisor)
			state.bytes = append(state.bytes, byteEdge{byte('0' + d), byte('0' + d), to})
		}
		result.states = append(result.states, state)
	}
	return result
}
