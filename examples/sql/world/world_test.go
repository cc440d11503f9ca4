package world

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// levels are all, or in short mode one: under the race detector a world takes a minute.
func levels() []int {
	if testing.Short() {
		return []int{Whole}
	}
	return []int{Whole, Single, Joined, Grouped}
}

// fresh makes the world of a level.
func fresh(t *testing.T, level int, seed uint64) *World {
	t.Helper()
	w, err := New(t.Context(), level, seed)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

// worlds are made once for all tests that only read.
var worlds = map[int]*World{}

// of returns the world of a level.
func of(t *testing.T, level int) *World {
	t.Helper()
	if worlds[level] == nil {
		w, err := New(context.Background(), level, 1)
		if err != nil {
			t.Fatal(err)
		}
		worlds[level] = w
	}
	return worlds[level]
}

// all are the questions of a world.
func (w *World) all() []Question { return slices.Concat(w.Train, w.Held) }

// text is all that a question says, without its database.
func text(q *Question) string {
	return fmt.Sprint(q.ID, q.Kind, q.Schema, q.Text, q.Query, q.Answer, q.Misses, q.Names)
}

func TestNew_Deterministic(t *testing.T) {
	level := levels()[len(levels())/2]
	a, b, c := fresh(t, level, 7), fresh(t, level, 7), fresh(t, level, 8)
	same := 0
	for i, q := range a.all() {
		if text(&q) != text(&b.all()[i]) {
			t.Fatalf("the same seed gives %s, then %s", text(&q), text(&b.all()[i]))
		}
		if i < len(c.all()) && q.Answer == c.all()[i].Answer {
			same++
		}
	}
	if 10*same > len(a.all()) {
		t.Errorf("another seed gives %d of %d answers again", same, len(a.all()))
	}
}

func TestNew_Level(t *testing.T) {
	if _, err := New(t.Context(), 4, 1); err == nil {
		t.Error("level 4 is no error")
	}
}

// Each question's query gives its answer by the tool, and each query that misses conventions another one. None stands
// in the question, and the ids differ.
func TestQuestions_Answers(t *testing.T) {
	for _, level := range levels() {
		w, ids := of(t, level), map[string]bool{}
		for _, q := range w.all() {
			ids[q.ID] = true
			answers := []string{q.Answer}
			check(t, &q, q.Query, q.Answer, 0)
			for _, m := range q.Misses {
				check(t, &q, m.Query, m.Answer, m.Missed.Len())
				answers = append(answers, m.Answer)
			}
			if n := len(slices.Compact(slices.Sorted(slices.Values(answers)))); n != len(answers) || n < 2 || n > 8 {
				t.Errorf("%s: answers %q", q.Text, answers)
			}
			if q.Names != nil && !slices.Contains(q.Names, q.Answer) {
				t.Errorf("%s: %s is no name", q.Text, q.Answer)
			}
			if q.Names != nil {
				continue
			}
			if n := numbers(q.Answer)[0]; n < smallest || contains(numbers(q.Text), n) {
				t.Errorf("%s: %s is easily guessed", q.Text, q.Answer)
			}
		}
		if len(ids) != len(w.all()) {
			t.Errorf("level %d: %d ids for %d questions", level, len(ids), len(w.all()))
		}
	}
}

// check runs a query and has what it gives judged.
func check(t *testing.T, q *Question, query, answer string, missed int) {
	t.Helper()
	r, err := q.Store.Query(t.Context(), query)
	if err != nil || !r.Ran || r.Text != answer || r.Cell != answer {
		t.Errorf("%s gives %+v, %v, want %s", query, r, err, answer)
	}
	if got, ok := q.Judge(r.Text); !ok || got != missed {
		t.Errorf("%s: %s misses %d, %v, want %d", q.Text, r.Text, got, ok, missed)
	}
}

// A level has enough questions of every kind, and those held out are of four lines of business.
func TestQuestions_Kinds(t *testing.T) {
	for _, level := range levels() {
		w := of(t, level)
		for _, list := range [][]Question{w.Train, w.Held} {
			byKind := map[string]int{}
			for _, q := range list {
				byKind[q.Kind]++
			}
			for _, k := range kinds[level] {
				if n := byKind[k.name]; n < len(list)/16 {
					t.Errorf("level %d: %d of %d questions are of kind %q", level, n, len(list), k.name)
				}
			}
		}
		want := []int{400, 200}
		if level == Whole {
			want = []int{120, 60}
		}
		if len(w.Train) < want[0] || len(w.Held) < want[1] {
			t.Errorf("level %d: %d questions to train on and %d held out", level, len(w.Train), len(w.Held))
		}
	}
}

// No answer is so frequent that guessing it pays, nor is any number that all conventions missed together give.
func TestQuestions_NotGuessable(t *testing.T) {
	for _, level := range levels() {
		w := of(t, level)
		answers := map[string]int{}
		for _, q := range w.Held {
			answers[q.Answer]++
		}
		for answer, n := range answers {
			if 20*n > len(w.Held) {
				t.Errorf("level %d: %d of %d answers are %s", level, n, len(w.Held), answer)
			}
		}
	}
}

// Every rule matters in some questions of a level, and some questions need several.
func TestQuestions_Conventions(t *testing.T) {
	for _, level := range levels() {
		var rules [3]int
		several := 0
		for _, q := range of(t, level).Held {
			for i, rule := range []Convention{Cents, Cancelled, Deleted} {
				if slices.ContainsFunc(q.Misses, func(m Miss) bool { return m.Missed == rule }) {
					rules[i]++
				}
			}
			if len(q.Misses) > 1 {
				several++
			}
		}
		if slices.Min(rules[:]) < 10 || several < 10 {
			t.Errorf("level %d: rules matter in %v questions, several of them in %d", level, rules, several)
		}
	}
}

// shownNames returns those of the tables and columns that questions show, and of the lines of business.
func shownNames(list []Question) (shown, domains map[string]bool) {
	shown, domains = map[string]bool{}, map[string]bool{}
	for _, q := range list {
		domains[strings.Fields(q.ID)[0]] = true
		for line := range strings.Lines(q.Schema) {
			table, columns, _ := strings.Cut(line, "(")
			shown[table] = true
			for column := range strings.SplitSeq(strings.TrimRight(columns, ")\n"), ", ") {
				name, _, _ := strings.Cut(column, " ")
				shown[name] = true
			}
		}
	}
	return shown, domains
}

// Databases held out share no name of a table or column with the others, but the most general two.
func TestNew_HeldOutNames(t *testing.T) {
	if testing.Short() {
		t.Skip("level 0 holds out no names, and others take minutes under the race detector")
	}
	for _, level := range levels()[1:] {
		w := of(t, level)
		trained, trainedDomains := shownNames(w.Train)
		held, heldDomains := shownNames(w.Held)
		for name := range held {
			if trained[name] && name != "id" && name != "name" {
				t.Errorf("level %d: %s is a name that is trained on", level, name)
			}
		}
		for name := range heldDomains {
			if trainedDomains[name] {
				t.Errorf("level %d: %s are trained on and held out", level, name)
			}
		}
		if len(trainedDomains) < 10 || len(heldDomains) < 4 || len(trained) < 100 || len(held) < 45 {
			t.Errorf("level %d: %d names of %d domains to train on, %d of %d held out", level, len(trained),
				len(trainedDomains), len(held), len(heldDomains))
		}
	}
}

// Names are complete, and no name of a person is part of another one.
func TestDomains_Complete(t *testing.T) {
	for _, d := range domains {
		if len(d.thing.names) != 16 || len(d.thing.groups) != 4 || len(d.event.modes) != 3 {
			t.Errorf("%s: %d things, %d groups, %d modes", d.event.table, len(d.thing.names), len(d.thing.groups),
				len(d.event.modes))
		}
		for _, phrase := range []string{d.thing.of, d.event.by, d.event.paid} {
			if strings.Count(phrase, "%s") != 1 {
				t.Errorf("%q takes no word", phrase)
			}
		}
	}
	for _, list := range [][]string{firstNames, lastNames, cities} {
		for i, name := range list {
			if slices.ContainsFunc(list[i+1:], func(other string) bool {
				return strings.Contains(name, other) || strings.Contains(other, name)
			}) {
				t.Errorf("%s is part of another name", name)
			}
		}
	}
}

func TestJudge(t *testing.T) {
	number := Question{Text: "How much was paid in 2024 for 5 orders?", Answer: "1234.5",
		Misses: []Miss{{Cents, "", "123450"}, {Cents | Cancelled, "", "987600"}}}
	name := Question{Names: []string{"Ann Adams", "Bob Baker", "Ann Clark"}, Answer: "Ann Adams",
		Misses: []Miss{{Deleted, "", "Bob Baker"}}}
	for _, c := range []struct {
		q      *Question
		reply  string
		missed int
		ok     bool
	}{
		{&number, "1234.5", 0, true},
		{&number, "1,234.50", 0, true},
		{&number, "€1234.50.", 0, true},
		{&number, "The total is **1,234.50** euros.", 0, true},
		{&number, "123450 cents are 1234.50 euros, in 2024.", 0, true},
		{&number, "1234.504", 0, true},
		{&number, "1234.51", 0, false},
		{&number, "1234", 0, false},
		{&number, "-1234.5", 0, false},
		{&number, "123450", 1, true},
		{&number, "123,450.0 euros", 1, true},
		{&number, "987600", 2, true},
		{&number, "1234.5 or 99", 0, false},
		{&number, "2024", 0, false},
		{&number, "", 0, false},
		{&number, "I don't know.", 0, false},
		{&name, "Ann Adams", 0, true},
		{&name, "It is ann adams.", 0, true},
		{&name, "Bob Baker", 1, true},
		{&name, "Ann", 0, false},
		{&name, "Ann Clark", 0, false},
		{&name, "Ann Adams, Bob Baker", 0, false},
		{&name, strings.Join([]string{"Ann Adams", "Ann Clark"}, "\n"), 0, false},
		{&name, "", 0, false},
	} {
		if missed, ok := c.q.Judge(c.reply); missed != c.missed || ok != c.ok {
			t.Errorf("%q: %d, %v, want %d, %v", c.reply, missed, ok, c.missed, c.ok)
		}
	}
}

func TestConvention_Subsets(t *testing.T) {
	for set, want := range map[Convention]int{0: 1, Deleted: 2, Cents | Deleted: 4, Cents | Cancelled | Deleted: 8} {
		subsets := set.subsets()
		for _, s := range subsets {
			if !set.has(s) {
				t.Errorf("%d is not within %d", s, set)
			}
		}
		if len(subsets) != want || subsets[0] != 0 {
			t.Errorf("%s: subsets %v", strconv.Itoa(int(set)), subsets)
		}
	}
}
