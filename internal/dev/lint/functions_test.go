package lint

import (
	"strings"
	"testing"
)

// TestFunctions checks the parameters and the lengths of all functions.
func TestFunctions(t *testing.T) {
	for _, file := range mustGoFiles(t) {
		for _, problem := range checkFunctions(file) {
			t.Error(problem)
		}
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
		got := strings.Join(checkFunctions(source{c.path, []byte("package a\n\n" + c.text + "\n")}), "\n")
		if (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}
