package reward

import (
	"math"
	"math/big"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Parts of the patterns of numbers.
const (
	decimal    = `(?:[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?|[0-9]+(?:\.[0-9]*)?|\.[0-9]+)`
	scientific = decimal + `(?:[eE][-+]?[0-9]+)?`
	fraction   = `frac ?(?:\( ?[-+]?[0-9]+ ?\)|[0-9]) ?(?:\( ?[0-9]+ ?\)|[0-9])`
	timesTen   = `(?: ?\* ?10 ?\^ ?(?:\( ?[-+]?[0-9]+ ?\)|[-+]?[0-9]+))?`
)

var (
	numberStart = regexp.MustCompile(`^` + scientific)
	mixedStart  = regexp.MustCompile(`^(?: +([0-9]+)/([0-9]+)|` +
		` ?frac ?(?:\( ?([0-9]+) ?\)|([0-9])) ?(?:\( ?([0-9]+) ?\)|([0-9])))`)
	// numberInText is a number as people write it, after plainMath.
	numberInText = regexp.MustCompile(`[-+]?[$€£¥]?(?:` + fraction + `|[0-9]+ +[0-9]+/[0-9]+|[0-9]+ ?` + fraction +
		`|` + scientific + timesTen + `(?: ?/ ?[0-9]+)?)(?: ?%)?`)
)

// numberLength returns the bytes of the number that text begins with, 0 for none. Commas count where they separate
// thousands.
func numberLength(text string) int {
	found := numberStart.FindString(text)
	if rest := text[len(found):]; strings.Contains(found, ",") && rest != "" && isDigit(rest[0]) {
		return strings.IndexByte(found, ',') // 12,3456: two numbers
	}
	return len(found)
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// mixedFraction returns the proper fraction of a mixed number, whose whole part stands before text, and its length.
func mixedFraction(text string) (*big.Rat, int) {
	m := mixedStart.FindStringSubmatch(text)
	if m == nil || len(m[0]) > 2*maxDigits {
		return nil, 0
	}
	over, _ := new(big.Int).SetString(m[1]+m[3]+m[4], 10)
	under, _ := new(big.Int).SetString(m[2]+m[5]+m[6], 10)
	if over.Cmp(under) >= 0 { // under is not 0 then
		return nil, 0
	}
	return new(big.Rat).SetFrac(over, under), len(m[0])
}

// LastNumber returns the last number of text. It may have a sign, a currency sign, commas between thousands, a decimal
// point, an exponent (1.5e3, 1.5 × 10^3), a denominator (3/4, \frac{3}{4}, 1 1/2) or a percent sign, which divides by a
// hundred. A comma is never a decimal one. A sign counts where no letter, digit or closing bracket stands before it;
// digits in a word that begins with a letter are no number. ok is false when there is none of at most 1,000 digits.
func LastNumber(text string) (x *big.Rat, ok bool) {
	return rationalOf(lastNumberText(plainMath(text)))
}

// rationalOf computes a number that is written as numberInText says.
func rationalOf(text string) (*big.Rat, bool) {
	text = withoutCurrency(text)
	s, ok := evaluate(text)
	if space := strings.LastIndexByte(text, ' '); !ok && space >= 0 { // 100 3/2: two numbers
		s, ok = evaluate(text[space:])
	}
	if !ok {
		return nil, false
	}
	return s.rat()
}

func withoutCurrency(text string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune("$€£¥", r) {
			return -1
		}
		return r
	}, text)
}

// lastNumberText returns the last number as it is written, "" for none.
func lastNumberText(text string) string {
	last := ""
	for at := 0; at < len(text); {
		span := numberInText.FindStringIndex(text[at:])
		if span == nil {
			break
		}
		begin, end := at+span[0], at+span[1]
		at = end
		if found := text[begin:end]; strings.Contains(found, ",") && end < len(text) && isDigit(text[end]) {
			at = begin + strings.IndexByte(found, ',') + 1 // 12,3456
			end = at - 1
		}
		found := text[begin:end]
		if found = standing(text[:begin], found); found != "" {
			last = found
		}
	}
	return last
}

// standing returns a number that stands behind some text: without its sign where that is a hyphen or an operator, and
// "" where it is a part of a word or of a version.
func standing(before, found string) string {
	r, _ := utf8.DecodeLastRuneInString(before)
	letter := r == '_' || unicode.Is(unicode.Latin, r)
	digit := r >= '0' && r <= '9'
	switch {
	case strings.IndexByte("+-", found[0]) >= 0 && (letter || digit || r == ')'):
		return found[1:]
	case letter, digit && found[0] == '.':
		return ""
	}
	return found
}

// Number returns 1 when the last number of text, as [LastNumber] finds it, is that of want to a relative tolerance,
// else 0:
//
//	|number - want| <= tolerance |want|
//
// A tolerance of 0, and one that is negative or NaN, demands equality, which is exact: numbers are fractions, not
// float64. Where only one of the two has a percent sign, the number without the sign counts as well: 20% is 1/5 and 20.
func Number(text, want string, tolerance float64) float64 {
	got, reference := lastNumberText(plainMath(text)), lastNumberText(plainMath(want))
	bareGot, bareReference := strings.TrimSuffix(got, "%"), strings.TrimSuffix(reference, "%")
	return score(closeTo(got, reference, tolerance) ||
		(bareGot == got) != (bareReference == reference) && closeTo(bareGot, bareReference, tolerance))
}

// closeTo compares two numbers that are written as numberInText says.
func closeTo(got, want string, tolerance float64) bool {
	x, okX := rationalOf(got)
	y, okY := rationalOf(want)
	if !okX || !okY {
		return false
	}
	limit := new(big.Rat)
	if tolerance > 0 && !math.IsInf(tolerance, 1) {
		limit.SetFloat64(tolerance)
	}
	limit.Mul(limit, new(big.Rat).Abs(y))
	gap := x.Sub(x, y)
	return gap.Abs(gap).Cmp(limit) <= 0
}

// plainSigns are the forms of LaTeX and Unicode that have a plain one.
var plainSigns = strings.NewReplacer(
	// Size, style and space.
	`\left`, "", `\right`, "", `\displaystyle`, "", `\limits`, "", `\bigl`, "", `\bigr`, "", `\big`, "", `\Big`, "",
	`\(`, "", `\)`, "", `\[`, "", `\]`, "", `{,}`, ",", `\!`, "", `\,`, " ", `\;`, " ", `\:`, " ", `\ `, " ",
	`\quad`, " ", `~`, " ", "\u00a0", " ", "\t", " ", "\n", " ", "\r", " ",
	"\u202f", ",", "\u2009", ",", // thin spaces separate thousands
	// Fractions, roots, pi.
	`\dfrac`, "frac", `\tfrac`, "frac", `\cfrac`, "frac", `\frac`, "frac",
	`\sqrt`, "sqrt", "√", "sqrt", `\pi`, "pi", "π", "pi",
	"½", " 1/2", "⅓", " 1/3", "⅔", " 2/3", "¼", " 1/4", "¾", " 3/4",
	// Operators.
	`\times`, "*", `\cdot`, "*", `\ast`, "*", "×", "*", "·", "*", "⋅", "*", "∙", "*", "**", "^",
	`\div`, "/", "÷", "/", "⁄", "/", "∕", "/", "−", "-", "–", "-", "﹣", "-", "－", "-", "＋", "+", "²", "^2", "³", "^3",
	// Units and brackets.
	`^{\circ}`, "", `^\circ`, "", "°", "", `\degree`, "", `\%`, "%", "％", "%", `\$`, "$",
	`\{`, `\{`, `\}`, `\}`, "{", "(", "}", ")",
)

// groupedDigits are thousands separated by \,.
var groupedDigits = regexp.MustCompile(`[0-9]{1,3}(?:\\,[0-9]{3})+`)

// plainMath rewrites an expression in LaTeX or Unicode: \frac{1}{2} is frac(1)(2), √2 is sqrt2, × is *. Text around
// it stays.
func plainMath(text string) string {
	text = groupedDigits.ReplaceAllStringFunc(text, func(s string) string { return strings.ReplaceAll(s, `\,`, ",") })
	return plainSigns.Replace(text)
}
