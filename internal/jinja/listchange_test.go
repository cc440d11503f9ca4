package jinja

import (
	"strings"
	"testing"
)

// TestRender_ListsChange: a list that the template has made grows and shrinks; what comes from outside never changes.
func TestRender_ListsChange(t *testing.T) {
	given := newList("a", "b")
	for _, c := range []struct{ source, want string }{
		{"{% set q = namespace(ids=[]) %}{% set _ = q.ids.append('a') %}{% set _ = q.ids.append(2) %}{{ q.ids.pop(0) }}{{ q.ids }}", "a[2]"},
		{"{% set l = [1, 2, 3] %}{{ l.pop() }}{{ l.pop(-2) }}{{ l }}{{ l.append(none) }}{{ l }}", "31[2]None[2, None]"},
		{"{% set l = [1] %}{% for x in l %}{% set _ = l.append(x) %}{% endfor %}{{ l }}", "[1, 1]"},
		{"{{ [].pop() }}", "IndexError"},
		{"{{ [1].pop(5) }}", "IndexError"},
		{"{% set l = [1] %}{{ l.append(l) }}", "SecurityError"},
		{"{% set l = [1] %}{{ l.extend(l) }}", "SecurityError"},
		{"{{ given.append(1) }}", "SecurityError"},
		{"{{ (given + ['c']).append(1) }}", "SecurityError"},
		{"{{ [given][0].pop() }}", "SecurityError"},
	} {
		template, err := Parse(c.source)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 { // no rendering sees what another one changed
			variables := NewDict()
			variables.Set("given", given)
			out, err := template.Render(variables, Options{})
			if err != nil && !strings.Contains(err.Error(), c.want) || err == nil && out.Text != c.want {
				t.Errorf("%s: %+v, %v, want %s", c.source, out, err, c.want)
			}
		}
	}
	if len(given.items) != 2 {
		t.Errorf("%v was changed", given.items)
	}
}
