package reward

import (
	"math/big"
	"math/bits"
	"slices"
	"strconv"
	"strings"
)

// Bounds of exact arithmetic. What exceeds one of them is not a value.
const (
	maxBits     = 4096  // of a numerator or a denominator
	maxTerms    = 16    // of a sum
	maxWork     = 3_000 // products of terms in one expression, or as much other work
	rootWork    = 100   // of a root
	maxRadicand = 10_000_000_000
	maxPower    = 1000 // of an exponent
)

// unit is what a term of a surd has beside its coefficient: sqrt(root) pi^pi.
type unit struct {
	root uint64 // without a square factor
	pi   int
}

// surd is an exact number: a sum of terms, each a rational times a unit. Of each unit there is one term at most, and
// none is 0, so that two surds are the same number exactly when they have the same terms (pi counts as an unknown).
type surd map[unit]*big.Rat

var one = unit{root: 1}

func rational(x *big.Rat) surd {
	s := surd{}
	s.add(one, x)
	return s
}

func whole(n int64) surd { return rational(new(big.Rat).SetInt64(n)) }

func (s surd) add(u unit, x *big.Rat) {
	sum := new(big.Rat).Set(x)
	if old := s[u]; old != nil {
		sum.Add(sum, old)
	}
	if s[u] = sum; sum.Sign() == 0 {
		delete(s, u)
	}
}

// rat returns the value of a surd that is rational.
func (s surd) rat() (*big.Rat, bool) {
	if len(s) == 0 {
		return new(big.Rat), true
	}
	x := s[one]
	return x, x != nil && len(s) == 1
}

func (s surd) key() string {
	var terms []string
	for u, x := range s {
		terms = append(terms, x.RatString()+"*sqrt("+strconv.FormatUint(u.root, 10)+")*pi^"+strconv.Itoa(u.pi))
	}
	slices.Sort(terms)
	return strings.Join(terms, "+")
}

// calculator does arithmetic within the bounds. What goes beyond them, or has no value, such as a division by zero,
// sets failed, and what is returned from then on means nothing.
type calculator struct {
	work   int
	failed bool
}

// spend fails when an expression has become too much work.
func (c *calculator) spend(work int) {
	if c.work += work; c.work > maxWork {
		c.failed = true
	}
}

func (c *calculator) fail() surd {
	c.failed = true
	return surd{}
}

func (c *calculator) checked(s surd) surd {
	for u, x := range s {
		if x.Num().BitLen() > maxBits || x.Denom().BitLen() > maxBits || u.pi > maxPower || u.pi < -maxPower {
			return c.fail()
		}
	}
	if c.failed || len(s) > maxTerms {
		return c.fail()
	}
	return s
}

func (c *calculator) sum(a, b surd, sign int64) surd {
	c.spend(1)
	out := surd{}
	for u, x := range a {
		out.add(u, x)
	}
	for u, x := range b {
		out.add(u, new(big.Rat).Mul(x, new(big.Rat).SetInt64(sign)))
	}
	return c.checked(out)
}

func (c *calculator) product(a, b surd) surd {
	if c.spend(len(a) * len(b)); c.failed {
		return surd{}
	}
	out := surd{}
	for u, x := range a {
		for v, y := range b {
			common := gcd(u.root, v.root) // sqrt(g r) sqrt(g s) = g sqrt(r s)
			over, root := bits.Mul64(u.root/common, v.root/common)
			if over != 0 {
				return c.fail()
			}
			z := new(big.Rat).Mul(x, y)
			z.Mul(z, new(big.Rat).SetFrac(new(big.Int).SetUint64(common), big.NewInt(1)))
			out.add(unit{root, u.pi + v.pi}, z)
		}
	}
	return c.checked(out)
}

func gcd(a, b uint64) uint64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// quotient returns a / b. Roots in the denominator are removed one prime p at a time, by multiplication with the
// conjugate, in which sqrt(p) is -sqrt(p).
func (c *calculator) quotient(a, b surd) surd {
	for !c.failed {
		if len(b) == 0 {
			return c.fail()
		}
		if len(b) == 1 {
			return c.product(a, c.inverse(b))
		}
		c.spend(rootWork)
		p := uint64(0) // the smallest prime factor of the roots
		for u := range b {
			if q := smallestPrime(u.root); q != 0 && (p == 0 || q < p) {
				p = q
			}
		}
		if p == 0 { // there is none that is small enough to be found
			return c.fail()
		}
		conjugate := surd{}
		for u, x := range b {
			if u.root%p == 0 {
				x = new(big.Rat).Neg(x)
			}
			conjugate.add(u, x)
		}
		a, b = c.product(a, conjugate), c.product(b, conjugate)
	}
	return surd{}
}

// inverse returns 1/s of one term: 1/(x sqrt(r) pi^k) = 1/(x r) sqrt(r) pi^-k.
func (c *calculator) inverse(s surd) surd {
	out := surd{}
	for u, x := range s {
		y := new(big.Rat).SetFrac(new(big.Int).SetUint64(u.root), big.NewInt(1))
		out.add(unit{u.root, -u.pi}, y.Inv(y.Mul(y, x)))
	}
	return c.checked(out)
}

// smallestPrime returns the smallest prime factor of n, 0 of 1 and of what is too large.
func smallestPrime(n uint64) uint64 {
	if n < 2 || n > maxRadicand {
		return 0
	}
	for p := uint64(2); p*p <= n; p++ {
		if n%p == 0 {
			return p
		}
	}
	return n
}

func (c *calculator) power(a, b surd) surd {
	x, ok := b.rat()
	if c.failed || !ok || !x.Denom().IsInt64() || !x.Num().IsInt64() {
		return c.fail()
	}
	n, root := x.Num().Int64(), x.Denom().Int64()
	if n < -maxPower || n > maxPower || n == 0 && len(a) == 0 { // 0^0
		return c.fail()
	}
	a = c.root(a, root)
	if n < 0 {
		a, n = c.quotient(whole(1), a), -n
	}
	out := whole(1)
	for ; n > 0 && !c.failed; n >>= 1 {
		if n&1 == 1 {
			out = c.product(out, a)
		}
		if n > 1 {
			a = c.product(a, a)
		}
	}
	return out
}

// root returns the n-th root of a. That of a rational is exact, or n is 2; of other surds there is none.
func (c *calculator) root(a surd, n int64) surd {
	if n == 1 || c.failed {
		return a
	}
	c.spend(rootWork)
	x, ok := a.rat()
	if c.failed || !ok || n < 1 || n > maxBits || x.Sign() < 0 && n%2 == 0 {
		return c.fail()
	}
	num, okNum := exactRoot(x.Num(), n)
	denom, okDenom := exactRoot(x.Denom(), n)
	if okNum && okDenom {
		return c.checked(rational(new(big.Rat).SetFrac(num, denom)))
	}
	if n != 2 {
		return c.fail()
	}
	// sqrt(a/b) = sqrt(a b)/b, with the squares taken out of the root
	radicand := new(big.Int).Mul(x.Num(), x.Denom())
	if !radicand.IsUint64() || radicand.Uint64() > maxRadicand {
		return c.fail()
	}
	square, rest := uint64(1), radicand.Uint64()
	for p := uint64(2); p*p <= rest; p++ {
		for rest%(p*p) == 0 {
			rest /= p * p
			square *= p
		}
	}
	factor := new(big.Rat).SetFrac(new(big.Int).SetUint64(square), x.Denom())
	out := surd{}
	out.add(unit{root: rest}, factor)
	return c.checked(out)
}

// exactRoot returns the n-th root of a, where it is an integer.
func exactRoot(a *big.Int, n int64) (*big.Int, bool) {
	low, high := new(big.Int), new(big.Int).Lsh(big.NewInt(1), uint(int64(a.BitLen())/n+1))
	abs, power := new(big.Int).Abs(a), big.NewInt(n)
	if n == 2 {
		low.Sqrt(abs)
		high.Set(low)
	}
	for low.Cmp(high) < 0 { // the smallest whose power is not less
		mid := new(big.Int).Add(low, high)
		mid.Rsh(mid, 1)
		if new(big.Int).Exp(mid, power, nil).Cmp(abs) < 0 {
			low.Add(mid, big.NewInt(1))
		} else {
			high = mid
		}
	}
	if new(big.Int).Exp(low, power, nil).Cmp(abs) != 0 {
		return nil, false
	}
	if a.Sign() < 0 {
		low.Neg(low)
	}
	return low, true
}
