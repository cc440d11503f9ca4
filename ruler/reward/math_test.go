package reward

import (
	"fmt"
	"strings"
	"testing"
)

// The answer is taken out of a reply, and compared by its value.
func ExampleMath() {
	answer, _ := FinalAnswer(`So the diagonal is \boxed{\sqrt{12}\text{ cm}}.`)
	fmt.Println(Math(answer, `2\sqrt{3}`), Math(answer, "3.46"))
	// Output: 1 0
}

func TestMath_Same(t *testing.T) {
	for _, pair := range [][2]string{
		{"1/2", "0.5"}, {`\frac{1}{2}`, "1/2"}, {`\dfrac12`, "0.5"}, {`\frac1{2}`, ".5"}, {`\frac{1}2`, "1/2"}, {`-\frac{3}{6}`, "-1/2"},
		{"50%", "1/2"}, {"50 %", "0.50"}, {`50\%`, "50"}, {"20", `20\%`}, {"0.2", "20%"},
		{"1,234,567", "1234567"}, {`1{,}234`, "1234"}, {`10\,000`, "10000"}, {"10\u202f000", "10000"}, {"1 234", "1 234"},
		{"1.5e3", "1500"}, {`1.5 \times 10^{3}`, "1500"}, {"1.5 × 10^3", "1500"}, {"2e-2", "1/50"}, {"10³", "1000"},
		{`\sqrt{12}`, `2\sqrt{3}`}, {"√2/2", `\frac{1}{\sqrt{2}}`}, {"sqrt(16)", "4"}, {`\sqrt[3]{27}`, "3"}, {"8^(1/3)", "2"}, {`(-8)^{1/3}`, "-2"},
		{`\frac{1}{1+\sqrt{2}}`, `\sqrt{2}-1`}, {`(1+\sqrt2)(1-\sqrt2)`, "-1"}, {`(\sqrt2+\sqrt3)^2`, `5+2\sqrt6`},
		{`\frac{1}{\sqrt2+\sqrt3+\sqrt5}`, `\frac{2\sqrt3+3\sqrt2-\sqrt{30}}{12}`},
		{`2\pi`, "pi*2"}, {`\frac{\pi}{2}`, "0.5π"}, {"π^2/π", "pi"}, {"pi r", "pi r"},
		{"-2^2", "-4"}, {"(-2)^2", "4"}, {"2^3^2", "512"}, {"2^-1", "0.5"}, {"2**10", "1024"}, {"2(3+4)", "14"}, {"--3", "3"}, {"7-3-2", "2"}, {"8/4/2", "1"},
		{"1 1/2", "3/2"}, {`1\frac{1}{2}`, "1.5"}, {"2½", "5/2"}, {`3\frac12`, "7/2"},
		{"$5$", "5"}, {`\(5\)`, "5"}, {`\$5.00`, "5"}, {"$1,000", "1000"}, {"€3", "3"}, {"5.", "5"}, {`\boxed{5}`, "5"}, {`{5}`, "5"},
		{"90^\\circ", "90"}, {"90°", "90"}, {`5\text{ cm}`, "5"}, {"5 cm", "5"}, {"3.2 m/s^2", "3.2"}, {"5 square feet.", "5"}, {`5\mathrm{~cm}^2`, "5"}, {"x = 5", "5"}, {"5", "x=5"}, {"f(x) = 2", "2"}, {"x = 5 cm", "5"},
		{`\left(1,2\right)`, "(1, 2)"}, {"(1/2, 3)", "(0.5,3.0)"}, {"[0, 1)", "[0,1.0)"}, {`\{1,2,2\}`, `\{2, 1\}`}, {"{1,2}", `\{2,1\}`}, {"1, 2", "1,2"}, {"(1,234)", "(1, 234)"},
		{"((1,2),(3,4))", "((1.0,2),(3,4/1))"},
		{`\text{Yes}`, "yes"}, {"(A)", "A"}, {`x^2+1`, "x^2 + 1"}, {`\infty`, `\infty`}, {"y=2x+1", "y = 2x+1"}, {"2x+1", "y=2x+1"},
		{`\frac{\sqrt{3}}{2}`, `\sqrt{3}/2`}, {`\frac{-1}{2}`, "-0.5"}, {`-\frac12`, "-.5"},
		{`\left[0, \infty\right)`, `[0,\infty)`}, {`\text{(A)}`, "A"}, {`\mathbf{5}`, "5"}, {"18 dollars", "18"},
		{"$18.00", "18"}, {`\sqrt{50}`, `5\sqrt{2}`}, {`\sqrt{\frac{1}{2}}`, `\frac{\sqrt2}{2}`},
		{`\frac{3\pi}{4}`, `3\pi/4`}, {`-1\frac{1}{2}`, "-3/2"}, {`3 \frac{1}{2}`, "3.5"}, {`10^{-3}`, "0.001"},
		{`\$1{,}000`, "1000"}, {`5:30`, "5:30"}, {`e^{2}`, `e^2`}, {`\pm 2`, `\pm2`}, {`2\cdot3^{2}`, "18"},
		{"1,000,000", "10^6"}, {`50\text{ percent}`, "50"}, {`\dfrac{7}{4}.`, "1.75"}, {`\boxed{\frac{1}{2}}`, "1/2"},
		{"1e3", "1000"}, {`\sqrt[3]{\frac{8}{27}}`, "2/3"}, {`(1+\sqrt{5})/2`, `\frac{1+\sqrt{5}}{2}`},
		{`2^{10}-1`, "1023"}, {`3^{1/2}`, `\sqrt3`}, {`x=1,y=2`, `x=1, y=2`}, {`\left\{1,2\right\}`, `\{2,1\}`},
		{"36\\pi\\text{ cm}^2", "36\\pi"}, {"10\\%", "0.1"}, {"0.10", "10\\%"}, {`5\,\text{m}`, "5"}, {`\$ 5`, "5"},
		{`n = 4`, "4"}, {`\mathrm{e}`, "e"}, {"2 1/2 hours", "2.5"},
		{"0", "-0"}, {"0.0", "0/7"}, {`\sqrt{0}`, "0"}, {"１２", "１２"},
	} {
		if Math(pair[0], pair[1]) != 1 {
			got, want := canonical(simplify(pair[0]), 0), canonical(simplify(pair[1]), 0)
			t.Errorf("%q is not %q: %q and %q", pair[0], pair[1], got, want)
		}
	}
}

func TestMath_Different(t *testing.T) {
	for _, pair := range [][2]string{
		{"", ""}, {"", "5"}, {"5", ""}, {" ", " "}, {"$", "$"},
		{"0.333", "1/3"}, {"3.14", `\pi`}, {"5", "-5"}, {"1", "2"}, {"50%", "0.05"}, {"0.5%", "50%"}, {"1/0", "1/0+1"}, {"12", "1 2"}, {"1,2", "1.2"},
		{"2 pi", "2"}, {"2x", "2"}, {"5 cm", "5 m"}, {"5", "5 cm"}, {"10 or 20", "10"}, {"10 or twenty", "10"}, {`10\text{ or }20`, "10"}, {`10\text{ or }`, "10"}, {"10 but more like eleven", "10"}, {"on", "no"}, {"x=5", "y=5"},
		{"(1,2)", "(2,1)"}, {"[0,1)", "[0,1]"}, {"(1,2)", "(1,2,3)"}, {`\{1,2\}`, `\{1,3\}`}, {"(1,2)", `\{1,2\}`}, {"1,234", "1, 234"},
		{`(2, 3)`, `2,3`}, {`\frac{1}{2}x`, `x/2`}, {`7\text{ and }8`, "7"}, {`x\in[0,1]`, `[0,1]`},
		{`{1\over 2}`, "1/2"}, {"-5", "--5"}, {"12 hours 30 minutes", "12"},
		{`\sqrt{2}`, `\sqrt{3}`}, {`2\sqrt{3}`, `3\sqrt{2}`}, {`\sqrt{-1}`, "1"}, {"0^0", "1"}, {"5 3", "15"}, {"value 5", "5"}, {"list 1", "1"},
	} {
		if Math(pair[0], pair[1]) != 0 {
			t.Errorf("%q is %q", pair[0], pair[1])
		}
	}
	if Math("3", "1", "2", "3") != 1 || Math("3") != 0 {
		t.Error("several references, or none")
	}
}

// What is too large is text: the same to itself and nothing else, in bounded time.
func TestMath_Bounds(t *testing.T) {
	for _, text := range []string{
		"9^9^9^9", "9^99999999999999999999", "2^1001", "1e999999999", "1e-1001", strings.Repeat("9", 2000), strings.Repeat("(", 5000) + "1",
		strings.Repeat("(", 60) + "1" + strings.Repeat(")", 60), strings.Repeat("-", 3000) + "1", strings.Repeat("sqrt", 400) + "2", strings.Repeat("2^", 900) + "2",
		"sqrt(99999999999999999999)", "sqrt(9999999967)" + strings.Repeat("*sqrt(9999999943)", 100), "(1+sqrt2+sqrt3+sqrt5+sqrt7)^999",
		"((((9^999)^999)^999)^999)", strings.Repeat("(9^999)*", 250) + "1", "1/(sqrt2+pi)", "sqrt(1+sqrt2)", "2^(1/2/0)", "2^sqrt2", "8^(1/9999999999999999999999)",
		"sqrt[0](5)", "sqrt[-1](5)", "sqrt[1/2](5)", "sqrt[99999999999](5)", "pi^999*pi^999", "2^(1/5)", "(0-4)^(1/2)", strings.Repeat("1+", 1500) + "1",
	} {
		if s, ok := evaluate(text); ok {
			t.Errorf("%.30s is %.40s", text, s.key())
		}
		if Math(text, text) != 1 || Math(text, text+"1") != 0 {
			t.Errorf("%.30s as text", text)
		}
	}
}

// Expressions that are as much work as the bounds allow, and long texts, end: that is all that is tested.
func TestMath_Work(t *testing.T) {
	repeat := strings.Repeat
	for _, text := range []string{
		repeat("sqrt(9^999)*", 170) + "1", "1/(" + repeat("sqrt(9999999967)+", 100) + "1)", repeat("9^999/7^999+", 150) + "1",
		"1/(sqrt2+sqrt3+sqrt5+sqrt7+sqrt11+sqrt13)", "(" + repeat("9^999,", 300) + "1)", repeat("(9^999)^(1/3)+", 140) + "1",
		repeat("x=", 50_000), repeat("1 ", 50_000), repeat("frac(", 20_000), repeat(`\boxed{`, 10_000), repeat("5 cm ", 20_000),
		repeat("<answer>", 10_000), repeat("1,111", 20_000), repeat("(", 100_000), repeat("1 frac(1)(", 10_000),
	} {
		Math(text, "5")
		Math("5", text)
		Number(text, text, 0)
		FinalAnswer(text)
	}
}

func TestLastNumber(t *testing.T) {
	for text, want := range map[string]string{
		"The answer is 42.": "42", "3 + 4 = 7": "7", "x=-5": "-5", "from 5-3": "3", "GPT-4": "4", "a - 3": "3", "(2)-3": "3", "is: +7!": "7",
		"1,234.5 dollars": "2469/2", "$1,000": "1000", "-$2.50": "-5/2", "12,3456": "3456", "1,2,3": "3", "50%": "1/2", "20 % off": "1/5",
		"3/4": "3/4", `\frac{3}{4}`: "3/4", `so \frac34 it is`: "3/4", "1 1/2 cups": "3/2", `2\frac{1}{2}`: "5/2", "10 3/2": "3/2",
		"1.5e3": "1500", `1.5 \times 10^{-3}`: "3/2000", "2 × 10^2 m": "200", "5km": "5", ".5": "1/2", "7.": "7", "v1.2.3 of 4": "4", "5 H2O": "5",
		"答案是5。": "5", "costs €3": "3", "a → 6": "6", "1 234": "234", "1\u202f234": "1234", "**12**": "12", "$\\boxed{8}$": "8", "1.2.3": "6/5",
	} {
		if x, ok := LastNumber(text); !ok || x.RatString() != want {
			t.Errorf("LastNumber(%q) = %v, %v, want %v", text, x, ok, want)
		}
	}
	for _, text := range []string{"", "none", "H2", "-", "1/0", strings.Repeat("1", 1500), "1e5000"} {
		if x, ok := LastNumber(text); ok {
			t.Errorf("LastNumber(%.20q) = %v", text, x)
		}
	}
}

func TestNumber(t *testing.T) {
	for _, c := range []struct {
		text, want string
		tolerance  float64
		score      float64
	}{
		{"So it is 18.", "18", 0, 1}, {"So it is 18 apples and 3 pears", "18", 0, 0}, {"0.1", "1/10", 0, 1}, {"3.14", "3.14159", 0.001, 1},
		{"3.1", "3.14159", 0.001, 0}, {"-3.1", "-3.14159", 0.1, 1}, {"20%", "20", 0, 1}, {"20%", "0.2", 0, 1}, {"20", "20%", 0, 1}, {"2", "0", 0.5, 0},
		{"5", "", 0, 0}, {"", "5", 0, 0}, {"", "", 0, 0}, {"5", "5", -1, 1}, {"5", "6", nan(), 0}, {"5", "6", inf(), 0}, {"5", "4", 0.25, 1}, {"5", "#### 5", 0, 1},
	} {
		if got := Number(c.text, c.want, c.tolerance); got != c.score {
			t.Errorf("Number(%q, %q, %v) = %v", c.text, c.want, c.tolerance, got)
		}
	}
}

func TestFinalAnswer(t *testing.T) {
	for text, want := range map[string]string{
		`first \boxed{1}, then \boxed{\frac{1}{2}}.`: `\frac{1}{2}`, `\fbox{ 3 }`: "3", `\boxed{\{1,2\}} \boxed{4`: `\{1,2\}`, `\boxed{a\}b}`: `a\}b`,
		"<answer>\n 5 </answer>": "5", "<answer>4</answer><ANSWER>5</ANSWER>": "5", "work\n#### 1,000\n": "1,000", "The answer is 5.": "5",
		"The answer is: **B**.": "B", "Final Answer: 3.5 apples. I am sure": "3.5 apples", "answer is 1\nanswer: 2": "2", `\boxed{} answer: 3`: "",
	} {
		if got, ok := FinalAnswer(text); !ok || got != want {
			t.Errorf("FinalAnswer(%q) = %q, %v, want %q", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "5", `\boxed{`, `\boxed`, "<answer>5", strings.Repeat(`\boxed{`, 10000)} {
		if got, ok := FinalAnswer(text); ok {
			t.Errorf("FinalAnswer(%.30q) = %q", text, got)
		}
	}
}

// Whatever a model writes: no panic, an end, and the same in both directions where no side is stripped.
func FuzzMath(f *testing.F) {
	for _, s := range []string{
		`\frac{1}{2}`, `2\sqrt{3}-\pi^2`, "1,234.5e-3%", "x = 5 cm", `\{1,(2,3]\}`, "((1+2)^(1/2))", "9^99", `\boxed{\text{a}}`, "1 1/2", "sqrt[3]8/0",
	} {
		f.Add(s, "1/2")
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		score := Math(a, b)
		if Math(a, a, b) < score || Math(a, b) != score {
			t.Errorf("Math(%q, %q) = %v, and otherwise later", a, b, score)
		}
		if s := simplify(a); s != "" && Math(a, a) != 1 {
			t.Errorf("%q is not itself: %q", a, canonical(s, 0))
		}
		Number(a, b, 0.1)
		FinalAnswer(a)
		if x, ok := evaluate(a); ok {
			if y, again := evaluate("(" + a + ")+0"); again && x.key() != y.key() {
				t.Errorf("%q is %s, and %s in brackets", a, x.key(), y.key())
			}
		}
	})
}

// The exact parser agrees with float64 where that is exact enough.
func FuzzLastNumber(f *testing.F) {
	for _, s := range []string{"-1,234.50", "x=-5", `\frac34`, "1.5 × 10^3", "v1.2.3", "12,3456 $", "1 1/2", "答5"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		x, ok := LastNumber(text)
		if ok != (x != nil) {
			t.Errorf("%q: %v, %v", text, x, ok)
		}
		if ok && Number(text, x.RatString(), 0) != 1 {
			t.Errorf("%q: %s is not itself", text, x.RatString())
		}
	})
}
