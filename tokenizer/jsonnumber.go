package tokenizer

import (
	"math"
	"strconv"
	"strings"
	"sync"
)

// serdeNumber parses a JSON number as the reference does, whose parser serde_json is fast rather than exact: it takes
// the first 19 or 20 digits as an integer, and multiplies or divides it by a power of ten, rounding each step. Scores
// that differ by one bit can change a segmentation. ok is false for text that is not a JSON number, or too large.
func serdeNumber(text string) (value float64, ok bool) {
	rest, negative := strings.CutPrefix(text, "-")
	d := decimal{rest: rest}
	whole := d.digits(0, 1)
	if whole == 0 || whole > 1 && rest[0] == '0' {
		return 0, false
	}
	if d.take(".") && d.digits(-1, 0) == 0 {
		return 0, false
	}
	if (d.take("e") || d.take("E")) && !d.power() || d.rest != "" {
		return 0, false
	}
	value = d.value()
	if negative {
		value = -value
	}
	return value, !math.IsInf(value, 0)
}

// decimal is a number that is being parsed: the rest of its text, and integer · 10^exponent.
type decimal struct {
	rest     string
	integer  uint64
	exponent int
}

func (d *decimal) take(text string) (ok bool) {
	d.rest, ok = strings.CutPrefix(d.rest, text)
	return ok
}

// digits consumes digits, and returns how many there are. From the first digit that would overflow the integer on, they
// are dropped. Each kept digit adds kept to the exponent, each dropped one dropped.
func (d *decimal) digits(kept, dropped int) (count int) {
	for full := false; d.rest != "" && '0' <= d.rest[0] && d.rest[0] <= '9'; count++ {
		digit := uint64(d.rest[0] - '0')
		d.rest = d.rest[1:]
		if full = full || d.integer > (math.MaxUint64-digit)/10; full {
			d.exponent += dropped
			continue
		}
		d.integer = d.integer*10 + digit
		d.exponent += kept
	}
	return count
}

// maxPower is a power of ten beyond which every number is zero or too large.
const maxPower = 1 << 30

// power reads what follows an "e".
func (d *decimal) power() bool {
	sign := 1
	if d.take("-") {
		sign = -1
	} else {
		d.take("+")
	}
	power := decimal{rest: d.rest}
	if power.digits(0, 0) == 0 {
		return false
	}
	d.rest = power.rest
	d.exponent += sign * int(min(power.integer, maxPower))
	return true
}

// powersOfTen are those that a float64 can represent.
var powersOfTen = sync.OnceValue(func() *[309]float64 {
	var out [309]float64
	for i := range out {
		out[i], _ = strconv.ParseFloat("1e"+strconv.Itoa(i), 64)
	}
	return &out
})

// value computes integer · 10^exponent; infinity if it is too large.
func (d *decimal) value() float64 {
	powers := powersOfTen()
	value, exponent := float64(d.integer), d.exponent
	for value != 0 && exponent < 1-len(powers) {
		value /= 1e308
		exponent += 308
	}
	switch {
	case value == 0:
		return 0
	case exponent < 0:
		return value / powers[-exponent]
	case exponent < len(powers):
		return value * powers[exponent]
	}
	return math.Inf(1)
}
