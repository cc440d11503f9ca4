package mailbox

import (
	"reflect"
	"slices"
	"strings"
	"testing"
)

var levels = []int{Named, Discussed, Dated}

const size = 6000

func TestNew_Deterministic(t *testing.T) {
	if a, b := New(size, Discussed, 7), New(size, Discussed, 7); !reflect.DeepEqual(a, b) {
		t.Error("the same seed gives another box")
	}
	if a, b := New(size, Discussed, 7), New(size, Discussed, 8); reflect.DeepEqual(a.Messages, b.Messages) {
		t.Error("another seed gives the same box")
	}
}

func TestNew_Size(t *testing.T) {
	for _, n := range []int{0, size, 20_000} {
		b := New(n, Named, 1)
		ids := map[string]bool{}
		for _, m := range b.Messages {
			ids[m.ID] = true
		}
		if len(b.Messages) < max(n, 5000) || len(ids) != len(b.Messages) {
			t.Errorf("n = %d: %d messages with %d ids", n, len(b.Messages), len(ids))
		}
	}
}

// A word that were both would make a thread whose words other threads have too.
func TestWords_Distinct(t *testing.T) {
	seen := map[string]bool{}
	for _, w := range slices.Concat(people, projects, items, months) {
		if seen[w] {
			t.Errorf("%q is there twice", w)
		}
		seen[w] = true
	}
}

// The level says which questions there are and changes nothing else.
func TestNew_LevelsShareMail(t *testing.T) {
	for _, level := range levels {
		if got := New(size, level, 3); !reflect.DeepEqual(got.Messages, New(size, Named, 3).Messages) {
			t.Errorf("level %d has other mail", level)
		}
	}
}

func TestNew_HeldOut(t *testing.T) {
	for _, level := range levels {
		b := New(size, level, 1)
		subject := map[string]string{}
		for _, m := range b.Messages {
			subject[m.ID] = m.Subject
		}
		trained := map[string]bool{}
		for _, q := range b.Train {
			trained[subject[q.Source]] = true
		}
		for _, q := range b.Held {
			if trained[subject[q.Source]] {
				t.Errorf("level %d: %q is about a thread that is trained on", level, q.Text)
			}
		}
		if len(b.Train) < 500 || len(b.Held) < 200 {
			t.Errorf("level %d: %d questions to train on and %d held out", level, len(b.Train), len(b.Held))
		}
	}
}

// states reports whether a message says what a question asks for, by the words of the question alone.
func states(m *Message, q *Question) bool {
	return !strings.Contains(m.Subject, ":") && containsAll(m.Subject+" "+m.Body, strings.Fields(q.Keywords)) &&
		(q.From == "" || m.From == q.From) &&
		(q.After == "" || m.Date >= q.After) && (q.Before == "" || m.Date <= q.Before)
}

func containsAll(text string, words []string) bool {
	have := map[string]bool{}
	for _, w := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" .:!", r) }) {
		have[w] = true
	}
	for _, w := range words {
		if !have[w] {
			return false
		}
	}
	return true
}

// Each question has exactly one message that answers it, and no reply gives the answer away.
func TestQuestions_OneSource(t *testing.T) {
	for _, level := range levels {
		b := New(size, level, 1)
		threads := map[string][]*Message{}
		for i := range b.Messages {
			words := strings.Split(b.Messages[i].Subject, ": ")
			subject := words[len(words)-1]
			threads[subject] = append(threads[subject], &b.Messages[i])
		}
		for _, q := range append(b.Train, b.Held...) {
			var answers []*Message
			distractors := 0
			subject := strings.Join(strings.Fields(q.Keywords)[:2], " ")
			for _, m := range threads[subject] {
				if states(m, &q) {
					answers = append(answers, m)
				} else if distractors++; strings.Contains(m.Body, " "+q.Answer+".") {
					t.Errorf("level %d: %q: message %s has the answer too", level, q.Text, m.ID)
				}
			}
			if len(answers) != 1 || distractors < 4 {
				t.Fatalf("level %d: %q: %d messages answer it, %d others do not", level, q.Text, len(answers), distractors)
			}
			if m := answers[0]; m.ID != q.Source || !strings.Contains(m.Body, " is "+q.Answer+".") {
				t.Errorf("level %d: %q: the answer is %q in %s, not in %+v", level, q.Text, q.Answer, q.Source, m)
			}
		}
	}
}

// The search for the words of a question finds what the level says.
func TestSearch_Levels(t *testing.T) {
	for _, level := range levels {
		b := New(size, level, 1)
		s := open(t, b.Messages)
		for _, q := range b.Held[:100] {
			all := search(t, s, Query{Keywords: q.Keywords})
			exact := search(t, s, Query{q.Keywords, q.From, q.After, q.Before})
			bounds := map[int][2]int{Named: {1, 1}, Discussed: {2, 3}, Dated: {5, 10}}[level]
			if len(all) < bounds[0] || len(all) > bounds[1] {
				t.Errorf("%q finds %v", q.Text, all)
			}
			if level == Dated && len(exact) != 1 {
				t.Errorf("%q with its filters finds %v", q.Text, exact)
			}
			if !slices.ContainsFunc(exact, func(m Message) bool { return m.ID == q.Source }) {
				t.Errorf("%q does not find its source", q.Text)
			}
		}
	}
}

func TestSearch(t *testing.T) {
	s := open(t, []Message{
		{"1", "Ann", "Bob", "2024-01-05", "river budget", "The river budget is 100."},
		{"2", "Bob", "Ann", "2024-02-05", "Re: river budget", "Thanks!"},
		{"3", "Ann", "Bob", "2024-02-06", "lunch", "An OR-gate, and \"quotes\" by the river."},
	})
	for _, c := range []struct {
		q    Query
		want string
	}{
		{Query{Keywords: "river"}, "321"},
		{Query{Keywords: "River Budget"}, "21"},
		{Query{Keywords: "river", From: "ann"}, "31"},
		{Query{Keywords: "river", After: "2024-02-05"}, "32"},
		{Query{Keywords: "river", Before: "2024-02-05"}, "21"},
		{Query{Keywords: "river OR lunch"}, "3"}, // the three words of message 3
		{Query{Keywords: `"river" NEAR(*`}, ""},
		{Query{Keywords: `' " ) --`}, ""},
		{Query{Keywords: " "}, ""},
	} {
		ids := ""
		for _, m := range search(t, s, c.q) {
			ids += m.ID
		}
		if ids != c.want {
			t.Errorf("%+v finds %q, want %q", c.q, ids, c.want)
		}
	}
	if got, err := s.Search(t.Context(), Query{Keywords: "river"}, 2); err != nil || len(got) != 2 {
		t.Errorf("limit 2: %v, %v", got, err)
	}
	if m, ok, err := s.Read(t.Context(), "2"); err != nil || !ok || m.Body != "Thanks!" {
		t.Errorf("read: %v %v %v", m, ok, err)
	}
	if _, ok, err := s.Read(t.Context(), "9"); err != nil || ok {
		t.Errorf("read of an unknown id: %v %v", ok, err)
	}
}

func open(t *testing.T, messages []Message) *Store {
	t.Helper()
	s, err := Open(t.Context(), messages)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func search(t *testing.T, s *Store, q Query) []Message {
	t.Helper()
	found, err := s.Search(t.Context(), q, 10)
	if err != nil {
		t.Fatal(err)
	}
	return found
}
