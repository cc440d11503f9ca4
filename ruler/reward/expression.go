package reward

import (
	"math/big"
	"strings"
)

// Bounds of an expression. A longer one is not a value.
const (
	maxExpression = 2048 // bytes
	maxDepth      = 50   // of brackets
	maxDigits     = 1000 // of a number, and its exponent
)

// evaluate computes an expression that [plainMath] has simplified: numbers, pi, + - * / ^ % ( ) and sqrt, with * left
// out where it may be. ok is false for everything else and for what is beyond the bounds.
func evaluate(text string) (s surd, ok bool) {
	if len(text) > maxExpression {
		return nil, false
	}
	p := &parser{rest: text}
	s = p.sum()
	p.space()
	return s, !p.failed && p.rest == ""
}

// parser computes an expression as it reads it, by recursive descent.
//
//	sum     = product { ("+" | "-") product }
//	product = signed { "*" signed | "/" signed | power }    a power may not begin with a digit here
//	signed  = { "+" | "-" } power
//	power   = factor [ "^" signed ]
//	argument = "(" sum ")" | digit
//	factor  = ( number | mixed | "pi" | "(" sum ")" | "frac" argument argument | "sqrt" [ "[" sum "]" ] factor ) { "%" }
type parser struct {
	calculator
	rest  string
	depth int
}

func (p *parser) space() { p.rest = strings.TrimLeft(p.rest, " ") }

// next skips a word or a sign and tells whether it was there.
func (p *parser) next(word string) bool {
	p.space()
	rest, ok := strings.CutPrefix(p.rest, word)
	if ok {
		p.rest = rest
	}
	return ok
}

func (p *parser) expect(word string) {
	if !p.next(word) {
		p.fail()
	}
}

func (p *parser) begins(chars string) bool {
	p.space()
	return p.rest != "" && strings.IndexByte(chars, p.rest[0]) >= 0
}

func (p *parser) sum() surd {
	if p.depth++; p.depth > maxDepth {
		return p.fail()
	}
	defer func() { p.depth-- }()
	s := p.product()
	for !p.failed {
		switch {
		case p.next("+"):
			s = p.calculator.sum(s, p.product(), 1)
		case p.next("-"):
			s = p.calculator.sum(s, p.product(), -1)
		default:
			return s
		}
	}
	return s
}

func (p *parser) product() surd {
	s := p.signed()
	for !p.failed {
		switch {
		case p.next("*"):
			s = p.calculator.product(s, p.signed())
		case p.next("/"):
			s = p.quotient(s, p.signed())
		case p.begins("(fsp"):
			s = p.calculator.product(s, p.power())
		default:
			return s
		}
	}
	return s
}

func (p *parser) signed() surd {
	negative := false
	for p.begins("+-") {
		negative = negative != (p.rest[0] == '-')
		p.rest = p.rest[1:]
	}
	s := p.power()
	if negative {
		s = p.calculator.sum(surd{}, s, -1)
	}
	return s
}

func (p *parser) power() surd {
	if p.depth++; p.depth > maxDepth {
		return p.fail()
	}
	defer func() { p.depth-- }()
	s := p.atom()
	for !p.failed && p.next("%") {
		s = p.quotient(s, whole(100))
	}
	if p.next("^") {
		s = p.calculator.power(s, p.signed())
	}
	return s
}

func (p *parser) atom() surd {
	switch {
	case p.failed:
		return surd{}
	case p.next("pi"):
		return surd{unit{1, 1}: big.NewRat(1, 1)}
	case p.next("("):
		return p.bracketed()
	case p.next("frac"):
		over := p.argument()
		return p.quotient(over, p.argument())
	case p.next("sqrt"):
		return p.rootOf()
	}
	p.space()
	n := numberLength(p.rest)
	x, ok := parseDecimal(strings.ReplaceAll(p.rest[:n], ",", ""))
	if n == 0 || !ok {
		return p.fail()
	}
	p.rest = p.rest[n:] // an integer before a proper fraction is a mixed number: 1 1/2, and 1 frac(1)(2)
	if fraction, length := mixedFraction(p.rest); length > 0 && x.IsInt() {
		p.rest = p.rest[length:]
		x.Add(x, fraction)
	}
	return p.checked(rational(x))
}

// bracketed reads up to the closing bracket.
func (p *parser) bracketed() surd {
	s := p.sum()
	p.expect(")")
	return s
}

// argument reads an argument of a fraction: in brackets, or one digit.
func (p *parser) argument() surd {
	if p.next("(") {
		return p.bracketed()
	}
	if !p.begins("0123456789") {
		return p.fail()
	}
	digit := p.rest[0]
	p.rest = p.rest[1:]
	return whole(int64(digit - '0'))
}

// rootOf reads what a root is of, and before it which.
func (p *parser) rootOf() surd {
	n := big.NewRat(2, 1)
	if p.next("[") {
		index, ok := p.sum().rat()
		p.expect("]")
		if !ok || p.failed {
			return p.fail()
		}
		n = index
	}
	if p.depth++; p.depth > maxDepth || !n.IsInt() || !n.Num().IsInt64() {
		return p.fail()
	}
	defer func() { p.depth-- }()
	return p.root(p.atom(), n.Num().Int64())
}
