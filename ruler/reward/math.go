package reward

import (
	"regexp"
	"slices"
	"strings"
)

// Math returns 1 when answer says the same as one of the references, else 0. Both are expressions, not sentences:
// take them out of a reply with [FinalAnswer] or [Boxed].
//
// Numbers and expressions of numbers, pi, + - * / ^ %, brackets, fractions and roots, in plain text or LaTeX, are
// compared by their exact value: 1/2, 0.5, 50% and \frac{2}{4} are the same, and so are \sqrt{12} and 2\sqrt{3};
// 0.333 is not 1/3. Numbers are read as by [LastNumber]. Lists, tuples, intervals and sets are compared element by
// element, sets in any order. Anything else, such as expressions with variables, is compared as text, without spaces
// and in lower case.
//
// What is on one side only counts for nothing: a percent sign (20% is also 20), the name of a variable before an
// equals sign, in the answer a unit behind the number.
//
// Expressions of more than 2,048 bytes, and values of more than 4,096 bits, are compared as text.
func Math(answer string, want ...string) float64 {
	got := simplify(answer)
	for _, w := range want {
		if sameMath(got, simplify(w)) {
			return 1
		}
	}
	return 0
}

func score(ok bool) float64 {
	if ok {
		return 1
	}
	return 0
}

// simplify brings an expression into the form that [evaluate] reads, and removes what stands around it.
func simplify(text string) string {
	text = strings.TrimSpace(strings.Trim(strings.TrimSpace(text), "$"))
	if inner, ok := Boxed(text); ok && strings.HasSuffix(text, inner+"}") && strings.HasPrefix(text, `\`) {
		text = strings.TrimSpace(inner)
	}
	if strings.HasPrefix(text, "{") && strings.HasSuffix(text, "}") && strings.Contains(text, ",") {
		text = `\{` + text[1:len(text)-1] + `\}`
	}
	text = withoutCurrency(plainMath(text))
	if m := font.FindStringSubmatch(text); m != nil {
		if opening, inner, closing := brackets(m[1]); opening == "(" && closing == ")" {
			text = inner
		}
	}
	return strings.TrimSpace(strings.TrimRight(text, " .;,"))
}

var (
	// named is the name before an equals sign: x, f(x).
	named = regexp.MustCompile(`^[A-Za-z](?: ?\( ?[A-Za-z] ?\))? ?= ?`)
	// withUnit is a number and a unit of up to three words behind it: cm, m/s^2, square \text{feet}.
	withUnit = regexp.MustCompile(`^(.*(?:[0-9)%]|pi))(?:` +
		` *\\(?:text|textbf|mathrm|mbox|rm) ?\( *` + unitWords + `[ .]*\)(?:\^[0-9])?` +
		`| +` + unitWords + `)$`)
	// font is a font for all of an expression.
	font = regexp.MustCompile(`^\\(?:text|textbf|mathbf|mathrm|mbox) *(\(.*\))$`)
	// singlePower is a power in braces that needs none.
	singlePower = regexp.MustCompile(`\^\(([A-Za-z0-9])\)`)
	// choice are the words that make two answers of one.
	choice = regexp.MustCompile(`(?i)\b(?:or|and|not|but|maybe|perhaps)\b`)
)

// unitWords is the pattern of the words of a unit.
const unitWords = `[A-Za-z]+(?:\^-?[0-9])?(?:[ ./*][A-Za-z]+(?:\^-?[0-9])?){0,2}`

// sameMath compares two expressions that were simplified.
func sameMath(got, want string) bool {
	if sameExpression(got, want) {
		return true
	}
	valueGot, valueWant := named.ReplaceAllString(got, ""), named.ReplaceAllString(want, "")
	return (valueGot == got) != (valueWant == want) && sameExpression(valueGot, valueWant)
}

// sameExpression is sameMath of expressions whose names count.
func sameExpression(got, want string) bool {
	if got == "" || want == "" {
		return false
	}
	if canonical(got, 0) == canonical(want, 0) {
		return true
	}
	bareGot, bareWant := strings.TrimSuffix(got, "%"), strings.TrimSuffix(want, "%")
	if (bareGot == got) != (bareWant == want) && canonical(bareGot, 0) == canonical(bareWant, 0) {
		return true
	}
	if _, isValue := evaluate(got); isValue {
		return false
	}
	m := withUnit.FindStringSubmatch(got)
	return m != nil && !choice.MatchString(got) && canonical(m[1], 0) == canonical(want, 0)
}

// canonical returns a text that is the same for expressions that say the same. It begins with what kind it is of, so
// that a value is never a word.
func canonical(text string, depth int) string {
	text = strings.TrimSpace(text)
	opening, inner, closing := brackets(text)
	if depth < 5 && len(text) <= maxExpression {
		if elements := elements(inner); opening != "" && (len(elements) > 1 || opening != "(") {
			return "list " + opening + canonicalList(elements, depth, opening == `\{`) + closing
		}
		if s, ok := evaluate(text); ok {
			return "value " + s.key()
		}
		if elements := elements(text); len(elements) > 1 {
			return "list " + canonicalList(elements, depth, false)
		}
	}
	text = singlePower.ReplaceAllString(words.Replace(strings.ToLower(text)), "^$1")
	for range 5 { // brackets around it
		opening, inner, closing := brackets(text)
		if opening != "(" || closing != ")" {
			break
		}
		text = inner
	}
	return "text " + text
}

// words removes what makes no difference between texts.
var words = strings.NewReplacer(
	" ", "", `\textbf`, "", `\text`, "", `\mathrm`, "", `\mathbf`, "", `\mbox`, "", `\rm`, "",
)

// canonicalList is canonical of each element. Those of a set are sorted, and each is there once.
func canonicalList(elements []string, depth int, set bool) string {
	out := make([]string, len(elements))
	for i, element := range elements {
		out[i] = canonical(element, depth+1)
	}
	if set {
		slices.Sort(out)
		out = slices.Compact(out)
	}
	return strings.Join(out, ", ")
}

// brackets returns the brackets that are around all of text, and what is in them. ( and [ may close each other: an
// interval.
func brackets(text string) (opening, inner, closing string) {
	for _, bracket := range []string{"(", "[", `\{`} {
		if strings.HasPrefix(text, bracket) {
			opening = bracket
		}
	}
	for _, bracket := range []string{")", "]", `\}`} {
		if strings.HasSuffix(text, bracket) {
			closing = bracket
		}
	}
	if opening == "" || closing == "" || len(text) < len(opening)+len(closing) || (opening == `\{`) != (closing == `\}`) {
		return "", text, ""
	}
	inner = text[len(opening) : len(text)-len(closing)]
	depth := 0
	for i := range len(inner) {
		if depth += nesting(inner[i]); depth < 0 { // (1)+(2)
			return "", text, ""
		}
	}
	return opening, inner, closing
}

func nesting(c byte) int {
	switch c {
	case '(', '[', '{':
		return 1
	case ')', ']', '}':
		return -1
	}
	return 0
}

// elements splits a list at the commas that are in no brackets. Bare numbers with commas between thousands are one
// element only where all of text is a number.
func elements(text string) []string {
	var out []string
	depth, begin := 0, 0
	for i := range len(text) {
		depth += nesting(text[i])
		if text[i] == ',' && depth == 0 {
			out = append(out, text[begin:i])
			begin = i + 1
		}
	}
	return append(out, text[begin:])
}
