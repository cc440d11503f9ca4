package jinja

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
)

func mustParse(t testing.TB, source string) *Template {
	t.Helper()
	template, err := Parse(source)
	if err != nil {
		t.Fatal(err)
	}
	return template
}

// TestError_Line: an error has the line of the statement or expression that raised it.
func TestError_Line(t *testing.T) {
	for source, want := range map[string]int{
		"a\nb\n{{ x.y }}":                                                                3,
		"{% if a %}\n\n{% endif %}{% foo %}":                                             3,
		"{{ 1 +\n}}":                                                                     2,
		"\n{# c\nc #}\n{{ 'a\nb' }}{{ 1 / 0 }}":                                          5,
		"{% macro f() %}\n{{ 1 / 0 }}\n{% endmacro %}\n{{ f() }}":                        2,
		"{% macro f() %}\n{% endmacro %}\n{{ f() ~\n1 / 0 }}":                            3,
		"{% for x in [1] %}\n{% set y = x.a.b %}{% endfor %}":                            2,
		"{%- if a\n   and b -%}\n{{ x|nofilter }}\n{%- endif %}{{ raise_exception(1) }}": 4,
	} {
		template, err := Parse(source)
		if err == nil {
			_, err = template.Render(nil, Options{})
		}
		var e *Error
		if !errors.As(err, &e) || e.Line != want {
			t.Errorf("%q: error %v, want one on line %d", source, err, want)
		}
	}
}

// TestLimits: templates that loop, nest or grow without bound are stopped, with an error that has the line.
func TestLimits(t *testing.T) {
	grow := "{% set ns = namespace(x='ab') %}{% for i in range(1000) %}\n{% set ns.x = ns.x "
	for _, source := range []string{
		"\n{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
		"\n{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
		"\n{% macro f() %}{{ caller }}{% call f() %}{% endcall %}{% endmacro %}{{ f() }}",
		"\n{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}",
		"\n{% block a %}{{ self.a() }}{% endblock %}",
		grow + "~ ns.x %}{% endfor %}", grow + "+ ns.x %}{% endfor %}", grow + "* 9 %}{% endfor %}",
		grow + "|replace('a', ns.x) %}{% endfor %}",
		grow + "|join(ns.x) %}{% endfor %}", grow + "|tojson %}{% endfor %}",
		"{% set ns = namespace(x=[]) %}{% for i in range(999) %}\n{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x }}",
		"{% set ns = namespace(x=[1]) %}{% for i in range(999) %}\n{% set ns.x = ns.x + ns.x %}{% endfor %}",
		"{% set ns = namespace(x=2) %}{% for i in range(999) %}\n{% set ns.x = ns.x * ns.x %}{% endfor %}",
		"{% set ns = namespace(x=[]) %}{% for i in range(99999) %}\n{% set ns.x = [ns.x] %}{% endfor %}{{ ns.x }}",
		"{% set ns = namespace(x=[]) %}{% for i in range(99999) %}\n{% set ns.x = ns.x|map('string') %}{% endfor %}{{ ns.x|list }}",
		"{% set ns = namespace(x=(1,)) %}{% for i in range(99) %}\n{% set ns.x = (ns.x, ns.x) %}{% endfor %}{{ {ns.x: 1} }}",
		"\n{% set x = 'a' * 10 ** 6 %}{% for i in range(99999) %}{{ x[5] }}{% endfor %}", "\n{% set x = 'a' * 10 ** 6 %}{% set y = 'a' * 10 ** 6 %}{% for i in range(99999) %}{% if x != y %}{% endif %}{% endfor %}",
		"\n{% set d = {} %}{% set x = 'a' * 10 ** 6 %}{% for i in range(99999) %}{{ d[x] }}{% endfor %}", "\n{% set x = 'a' * 10 ** 6 %}{% for i in range(99999) %}{{ x|length }}{% endfor %}",
		"\n{{ 'a' * 10 ** 12 }}", "\n{{ [1] * 10 ** 12 }}", "\n{{ 10 ** (10 ** 10) }}", "\n{{ '%1000000000d' % 1 }}", "\n{{ '{:1000000000}'.format(1) }}",
		"\n{{ '%.1000000000f' % 1 }}", "\n{{ 'a'.center(10 ** 12) }}", "\n{{ 'a'|center(10 ** 12) }}", "\n{{ 'a'.zfill(10 ** 12) }}", "\n{{ 'a\nb'|indent(10 ** 12) }}",
		"\n{{ '\t'.expandtabs(10 ** 12) }}", "\n{{ [1]|batch(10 ** 12, 1)|list }}", "\n{{ [1]|slice(10 ** 12)|list }}", "\n{{ {'a': 1}|tojson(indent=10 ** 12) }}",
		"\n{% for a in range(99999) %}{% for b in range(99999) %}{{ 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa' }}{% endfor %}{% endfor %}",
	} {
		_, err := mustParse(t, source).Render(nil, Options{Limits: Limits{Work: 1 << 26, Output: 1 << 22}})
		var e *Error
		if !errors.As(err, &e) || e.Line < 1 || e.Kind != limitError && e.Kind != overflowError {
			t.Errorf("%.80q: %v, want an error of a limit", source, err)
		}
	}
	for _, source := range []string{
		strings.Repeat("(", 9999), strings.Repeat("{% if a %}", 9999), "{{ " + strings.Repeat("(", 9999),
		"{{ " + strings.Repeat("[", 9999), "{{ " + strings.Repeat("not ", 9999),
		"{{ " + strings.Repeat("-", 9999) + "1 }}", "{{ 1" + strings.Repeat("+1", 9999) + " }}", "{{ a" + strings.Repeat(".a", 9999) + " }}", "{{ a" + strings.Repeat("|e", 9999) + " }}",
		"{{ " + strings.Repeat("a if b else ", 9999) + "c }}", "{{ " + strings.Repeat("{1: ", 9999), "{{ " + strings.Repeat("9", 99999) + " }}",
	} {
		if template, err := Parse(source); err == nil {
			if _, err := template.Render(nil, Options{}); err == nil && strings.Contains(source, "{") {
				t.Errorf("%.40q: no error", source)
			}
		}
	}
}

func TestRender_Limits(t *testing.T) {
	template := mustParse(t, "{% for x in range(100) %}{{ x }}{% endfor %}")
	for _, limits := range []Limits{{Work: 1000}, {Output: 50}} {
		if _, err := template.Render(nil, Options{Limits: limits}); err == nil {
			t.Errorf("%+v: no error", limits)
		}
	}
	if _, err := template.Render(nil, Options{Limits: Limits{Work: 100_000, Output: 190}}); err != nil {
		t.Error(err)
	}
}

func TestRender_Generations(t *testing.T) {
	out, err := mustParse(t, "é{% generation %}a{{ 1 }}{% endgeneration %}b"+
		"{% for x in [1, 2] %}{% generation %}{{ x }}{% endgeneration %}{% endfor %}").Render(nil, Options{})
	if err != nil {
		t.Fatal(err)
	}
	var parts []string
	for _, g := range out.Generations {
		parts = append(parts, out.Text[g[0]:g[1]])
	}
	if got := fmt.Sprintf("%q %q", out.Text, parts); got != `"éa1b12" ["a1" "1" "2"]` {
		t.Error(got)
	}
}

// TestRender_Concurrent: rendering does not change a template.
func TestRender_Concurrent(t *testing.T) {
	template := mustParse(t, "{% set ns = namespace(x=0) %}"+
		"{% for v in range(n) %}{% set ns.x = ns.x + v %}{% endfor %}{{ ns.x }}")
	var wait sync.WaitGroup
	for n := range 50 {
		wait.Go(func() {
			d := NewDict()
			d.Set("n", n)
			if out, err := template.Render(d, Options{}); err != nil || out.Text != fmt.Sprint(n*(n-1)/2) {
				t.Errorf("%d: %v, %v", n, out, err)
			}
		})
	}
	wait.Wait()
}

func TestFromJSON(t *testing.T) {
	for text, want := range map[string]string{
		`{"b": 1, "a": 2, "b": 3}`:                     `{'b': 3, 'a': 2}`,
		`[1, 1.0, 1e2, -0, 12345678901234567890, "é"]`: `[1, 1.0, 100.0, 0, 12345678901234567890, 'é']`,
		` null `: `None`, `true`: `True`, `"\u00e9\ud83d\ude00"`: `'é😀'`,
	} {
		v, err := FromJSON([]byte(text))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		d := NewDict()
		d.Set("v", List(v))
		out, err := mustParse(t, "{{ v }}").Render(d, Options{})
		if err != nil || out.Text != "["+want+"]" {
			t.Errorf("%s: %v, %v; want [%s]", text, out, err, want)
		}
	}
	for _, text := range []string{
		``, `{`, `[1,]`, `1 2`, `{"a" 1}`, `nul`, strings.Repeat("[", 1000), strings.Repeat("9", 9999),
	} {
		if v, err := FromJSON([]byte(text)); err == nil {
			t.Errorf("%.20q is %v", text, v)
		}
	}
}

func FuzzTemplate(f *testing.F) {
	for _, source := range strings.Split(string(goldenTemplates), "\n=====\n") {
		f.Add(source)
	}
	variables, err := FromJSON(goldenVariables)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, source string) {
		if len(source) > 2000 {
			return
		}
		template, err := Parse(source)
		if err != nil {
			return
		}
		out, err := template.Render(variables.(*Dict), Options{Now: clock, Limits: Limits{Work: 1 << 22, Output: 1 << 18}})
		if err == nil && len(out.Text) > 1<<18 {
			t.Fatalf("%d bytes", len(out.Text))
		}
	})
}

// BenchmarkRender renders a conversation of 20 messages with tools.
func BenchmarkRender(b *testing.B) {
	source := "{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' }}" +
		"{% if m.tool_calls %}{% for c in m.tool_calls %}{{ c.function | tojson }}{% endfor %}" +
		"{% else %}{{ m.content | trim }}{% endif %}{{ '<|im_end|>\n' }}{% endfor %}"
	template := mustParse(b, source)
	var messages []any
	for range 10 {
		for _, text := range []string{
			`{"role": "user", "content": "What is the weather like in Paris today?"}`,
			`{"role": "assistant", "tool_calls": [{"function": {"name": "get_weather", ` +
				`"arguments": {"city": "Paris", "days": 2}}}]}`,
		} {
			m, err := FromJSON([]byte(text))
			if err != nil {
				b.Fatal(err)
			}
			messages = append(messages, m)
		}
	}
	d := NewDict()
	d.Set("messages", List(messages...))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := template.Render(d, Options{}); err != nil {
			b.Fatal(err)
		}
	}
}

// TestStrftime_EmptyField: a flag for padding leaves a field without text empty.
func TestStrftime_EmptyField(t *testing.T) {
	if got := strftime(clock(), "[%_Z%_z]"); got != "[]" {
		t.Errorf("%q", got)
	}
}
