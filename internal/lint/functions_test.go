package lint

import (
	"slices"
	"strings"
	"testing"
)

// TestFunctions checks the parameters and the lengths of all functions.
func TestFunctions(t *testing.T) {
	for _, file := range mustGoFiles(t) {
		problems, _ := checkFunctions(file)
		for _, problem := range problems {
			t.Error(problem)
		}
	}
}

// TestFunctions_P90: nine of ten functions of the module are short.
func TestFunctions_P90(t *testing.T) {
	var all []int
	for _, file := range mustGoFiles(t) {
		_, lengths := checkFunctions(file)
		all = append(all, lengths...)
	}
	slices.Sort(all)
	if p90 := all[len(all)*9/10]; p90 > maxFunctionP90 {
		t.Errorf("one of ten functions has %d lines or more, want at most %d: split the longest of a package", p90,
			maxFunctionP90)
	}
}

// TestCheckFunctions shows the checker what it must find and what it must not. want is a part of the problem; "" is
// none.
func TestCheckFunctions(t *testing.T) {
	body := "{\n" + strings.Repeat("\tf()\n", maxFunctionLines-1) + "}"
	for _, c := range []struct{ name, path, text, want string }{
		{"six parameters", "a.go", "func f(a, b, c int, d, e, g string) {}", ""},
		{"seven parameters", "a.go", "func f(a, b, c, h int, d, e, g string) {}", "a.go:3: f has 7 parameters, at most 6"},
		{"seven parameters of a test", "a_test.go", "func f(a, b, c, h int, d, e, g string) {}", "7 parameters"},
		{"assembly", "a.go", "func f(a, b, c, h int, d, e, g string)", ""},
		{"interface of GoMLX", "a.go", "func (t T) ScatterSum(a, b, c, h int, d, e, g string) {}", ""},
		{"same name, no method", "a.go", "func ScatterSum(a, b, c, h int, d, e, g string) {}", "7 parameters"},
		{"longest", "a.go", "func f() " + strings.Replace(body, "\tf()\n", "", 1), ""},
		{"too long", "a.go", "func f() " + body, "f has 61 lines, at most 60"},
		{"long test", "a_test.go", "func f() " + body, ""},
	} {
		problems, _ := checkFunctions(source{c.path, []byte("package a\n\n" + c.text + "\n")})
		got := strings.Join(problems, "\n")
		if (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}
