package tokenizer

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestStream_EqualsDecode(t *testing.T) {
	tok, rng := small(t), seeded(t)
	for range 3000 {
		ids := randomIDs(rng, tok)
		for _, skip := range []bool{false, true} {
			s, got := tok.Stream(skip), ""
			for _, id := range ids {
				delta, stopped := s.Add(id)
				if stopped || !utf8.ValidString(delta) {
					t.Fatalf("delta %q of %v, stopped %v", delta, ids, stopped)
				}
				got += delta
			}
			got += s.Flush()
			if want := tok.Decode(ids, skip); got != want {
				t.Fatalf("%v streams to %q, decodes to %q", ids, got, want)
			}
		}
	}
}

func TestStream_HoldsBackRunes(t *testing.T) {
	tok := small(t)
	s := tok.Stream(false)
	var deltas []string
	for _, b := range []byte("é😀") {
		delta, _ := s.Add(byteID(tok, b))
		deltas = append(deltas, delta)
	}
	if got := strings.Join(deltas, "|"); got != "|é||||😀" {
		t.Errorf("deltas %q", got)
	}
}

func TestStream_Stop(t *testing.T) {
	tok := small(t)
	for _, c := range []struct {
		text    string
		stops   []string
		want    string
		stopped bool
	}{
		{"one END two", []string{"END"}, "one ", true},
		{"one EN", []string{"END"}, "one EN", false},
		{"one EEND", []string{"END"}, "one E", true},
		{"é日😀日é", []string{"😀日"}, "é日", true},
		{"abab!", []string{"aba", "b!"}, "", true},
		{"text", []string{""}, "text", false},
		{"a\n\nb", []string{"\n\n", "x"}, "a", true},
	} {
		s, got, stopped := tok.Stream(false, c.stops...), "", false
		for _, b := range []byte(c.text) {
			var delta string
			delta, stopped = s.Add(byteID(tok, b))
			got += delta
		}
		got += s.Flush()
		if got != c.want || stopped != c.stopped {
			t.Errorf("%q with stops %q: %q, stopped %v", c.text, c.stops, got, stopped)
		}
	}
}

// TestStream_StopProperty: the text is that of Decode, up to the first stop string.
func TestStream_StopProperty(t *testing.T) {
	tok, rng := small(t), seeded(t)
	for range 3000 {
		text := randomWord(rng, 1+rng.IntN(40))
		stops := []string{randomWord(rng, 1+rng.IntN(3)), randomWord(rng, 1+rng.IntN(3))}
		s, got, stopped := tok.Stream(false, stops...), "", false
		for _, id := range tok.EncodeOrdinary(text) {
			delta, stop := s.Add(id)
			got, stopped = got+delta, stop
		}
		got += s.Flush()
		rest, ok := strings.CutPrefix(text, got)
		atStop := strings.HasPrefix(rest, stops[0]) || strings.HasPrefix(rest, stops[1])
		inGot, _ := firstOf(got, stops, 0)
		inText, _ := firstOf(text, stops, 0)
		named := s.Stopped() != "" && strings.HasPrefix(rest, s.Stopped())
		if !ok || inGot >= 0 || stopped != (inText >= 0) || stopped != atStop || stopped != named {
			t.Fatalf("%q with stops %q: %q, stopped %v", text, stops, got, stopped)
		}
	}
}

// TestStream_StopAfter: of the stop strings that a text has, the first one that ends behind the first n ids counts,
// also if it begins before, or contains one that ended there. An id is a letter.
func TestStream_StopAfter(t *testing.T) {
	tok := small(t)
	for _, c := range []struct {
		text  string
		after int
		want  string
		stop  string
	}{
		{"one END two END", 0, "one ", "END"},
		{"one END two END", 6, "one ", "END"},
		{"one END two END", 7, "one END two ", "END"},
		{"one END two END", 15, "one END two END", ""},
		{"xABy", 3, "", "xABy"},
		{"xABy", 2, "x", "AB"},
		{"AB AB", 99, "AB AB", ""},
	} {
		s, got := tok.Stream(false, "END", "AB", "xABy").StopAfter(c.after), ""
		for _, b := range []byte(c.text) {
			delta, _ := s.Add(byteID(tok, b))
			got += delta
		}
		if got += s.Flush(); got != c.want || s.Stopped() != c.stop {
			t.Errorf("%q after %d: %q, stopped by %q, want %q by %q", c.text, c.after, got, s.Stopped(), c.want, c.stop)
		}
	}
}
