package reward

import (
	"regexp"
	"strings"
)

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
