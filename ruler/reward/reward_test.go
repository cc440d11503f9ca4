package reward

import (
	"math"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/goart-dev/art"
)

func nan() float64 { return math.NaN() }
func inf() float64 { return math.Inf(1) }

func TestNormalize(t *testing.T) {
	for text, want := range map[string]string{
		"  The  Eiffel\tTower! ": "eiffel tower", "A": "a", "(A)": "a", "the a": "the a", "+": "+", "well-known": "wellknown", "": "", " \n": "",
		"ＡＢＣ　１２３": "abc 123", "ﬁne": "fine", "cafe\u0301": "café", "CAFE\u0301": "café", "x²": "x2", "“Hi…”": "hi", "a\u200bb c": "ab c", "H₂O": "h2o",
		"\u00a0x\u2009y": "x y", "an apple": "apple", "theory": "theory", "Ångström": "ångström", "A\u030angstro\u0308m": "ångström", "\xff.": "\ufffd",
	} {
		if got := Normalize(text); got != want {
			t.Errorf("Normalize(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestExactMatch(t *testing.T) {
	for _, c := range []struct {
		answer string
		want   []string
		score  float64
	}{
		{"The Beatles.", []string{"beatles"}, 1}, {"Beatles", []string{"Stones", "The Beatles"}, 1}, {"", []string{""}, 0}, {"x", nil, 0}, {"the", []string{"A"}, 0},
		{"A", []string{"a."}, 1}, {"Paris, France", []string{"Paris"}, 0},
	} {
		if got := ExactMatch(c.answer, c.want...); got != c.score {
			t.Errorf("ExactMatch(%q, %q) = %v", c.answer, c.want, got)
		}
	}
}

func TestF1(t *testing.T) {
	for _, c := range []struct {
		answer string
		want   []string
		score  float64
	}{
		{"the Eiffel Tower", []string{"Eiffel tower"}, 1}, {"Eiffel", []string{"Eiffel Tower"}, 2.0 / 3}, {"b b b", []string{"b c"}, 2.0 / 5}, {"", []string{""}, 0},
		{"x", []string{"y", "x z w"}, 0.5}, {"x", nil, 0},
	} {
		if got := F1(c.answer, c.want...); math.Abs(got-c.score) > 1e-15 {
			t.Errorf("F1(%q, %q) = %v, want %v", c.answer, c.want, got, c.score)
		}
	}
}

func TestMatches(t *testing.T) {
	re := regexp.MustCompile(`(?i)\bA\. (\w+)`)
	if got, ok := LastMatch(re, "A. Anna\na. Bert\nB. x"); !ok || got != "Bert" {
		t.Errorf("LastMatch = %q, %v", got, ok)
	}
	if got, ok := LastMatch(regexp.MustCompile(`\d+`), "1 22"); !ok || got != "22" {
		t.Errorf("LastMatch = %q, %v", got, ok)
	}
	if _, ok := LastMatch(re, "none"); ok || Matches(re, "none") != 0 || Matches(re, "A. b") != 1 {
		t.Error("matches of nothing")
	}
	if _, ok := LastMatch(nil, "x"); ok || Matches(nil, "x") != 0 {
		t.Error("a nil pattern matches")
	}
}

func TestSoftOverlong(t *testing.T) {
	for _, c := range []struct {
		length, limit, buffer int
		want                  float64
	}{
		{0, 100, 20, 0}, {80, 100, 20, 0}, {85, 100, 20, -0.25}, {100, 100, 20, -1}, {101, 100, 20, -1}, {math.MaxInt, 100, 20, -1},
		{100, 100, 0, 0}, {101, 100, 0, -1}, {100, 100, -5, 0}, {20480, 20480, 4096, -1}, {18432, 20480, 4096, -0.5},
	} {
		if got := SoftOverlong(c.length, c.limit, c.buffer); got != c.want {
			t.Errorf("SoftOverlong(%d, %d, %d) = %v, want %v", c.length, c.limit, c.buffer, got, c.want)
		}
	}
}

func TestRamp(t *testing.T) {
	for _, c := range [][4]float64{
		{0, 1, 3, 0}, {1, 1, 3, 0}, {2, 1, 3, 0.5}, {3, 1, 3, 1}, {9, 1, 3, 1}, {2, 3, 1, 0.5}, {0, 3, 1, 1}, {5, 3, 1, 0}, {2, 2, 2, 1}, {1, 2, 2, 0},
		{nan(), 0, 1, 0}, {1, nan(), 2, 0}, {inf(), 0, 1, 1}, {-inf(), 0, 1, 0}, {inf(), 0, inf(), 0}, {0, 0, 0, 1},
	} {
		if got := Ramp(c[0], c[1], c[2]); got != c[3] {
			t.Errorf("Ramp(%v) = %v, want %v", c[:3], got, c[3])
		}
	}
}

func TestSections(t *testing.T) {
	got, err := Sections(" <think>a < b</think>\n<answer>5</answer> ", "think", "answer")
	if err != nil || len(got) != 2 || got[0] != "a < b" || got[1] != "5" {
		t.Errorf("Sections = %q, %v", got, err)
	}
	for text, words := range map[string]string{
		"":                                            "<think> occurs 0 times",
		"<think>a</think>":                            "<answer> occurs 0 times",
		"<answer>5</answer><think>a</think>":          "text stands before <think>",
		"x<think>a</think><answer>5</answer>":         "before <think>",
		"<think>a</think>x<answer>5</answer>":         "before <answer>",
		"<think>a</think><answer>5</answer>x":         "behind the last section",
		"<think>a</think><answer> </answer>":          "<answer> is blank",
		"<think></think><answer>5</answer>":           "<think> is blank",
		"<think>a<think></think><answer>5</answer>":   "<think> occurs 2 times",
		"<think>a</think><answer>5</answer></answer>": "</answer> occurs 2 times",
		"<think><answer>5</answer></think>":           "<answer> is not in its order",
		"</think>a<think><answer>5</answer>":          "</think> stands before <think>",
		"<think>a</think><answer>5":                   "</answer> occurs 0 times",
	} {
		if _, err := Sections(text, "think", "answer"); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("Sections(%q): %v, want %q", text, err, words)
		}
		if Tags(text, "think", "answer") != 0 {
			t.Errorf("Tags(%q) is not 0", text)
		}
	}
	if Tags("<a>x</a>", "a") != 1 || Tags("<a>x</a>", "a", "a") != 0 || Tags("") != 1 {
		t.Error("one tag, one tag twice, no tags")
	}
	if got, ok := Tag("so <move> A1 </move>.", "move"); !ok || got != "A1" {
		t.Errorf("Tag = %q, %v", got, ok)
	}
	if _, ok := Tag("<move>A1</move><move>B1</move>", "move"); ok {
		t.Error("two moves are one")
	}
}

func TestCombine(t *testing.T) {
	trajectory := &art.Trajectory{Reward: 9}
	got := Combine(trajectory, Part{"right", 1, 0.5}, Part{"format", 0.5, -1}, Part{"format", 0, 3})
	metrics := trajectory.Metrics
	if got != 0 || trajectory.Reward != 0 || metrics["reward_right"] != 0.5 || metrics["reward_format"] != 2 {
		t.Errorf("reward %v: %+v", got, trajectory)
	}
	if got := Combine(nil, Part{"x", 2, 3}); got != 6 {
		t.Errorf("reward without a trajectory: %v", got)
	}
	if Combine(trajectory, Part{"bad", 0, nan()}); !math.IsNaN(trajectory.Reward) {
		t.Errorf("reward of NaN: %v", trajectory.Reward)
	}
}

func TestSampledTokens(t *testing.T) {
	reply := art.Message{Role: art.RoleAssistant, Sample: &art.Sample{IDs: make([]int32, 3)}}
	trajectory := art.NewTrajectory(art.User("x"), reply)
	if SampledTokens(trajectory) != 3 || SampledTokens(nil) != 0 {
		t.Error("tokens are miscounted")
	}
}

func TestFirstJSON(t *testing.T) {
	for text, want := range map[string]string{
		`{"a":1}`: `{"a":1}`, "Here [1]:\n```json\n{\"a\": {\"b\":\"}\"}}\n```\n{}": `{"a": {"b":"}"}}`, `set {x} then {"b":2} {"c":3}`: `{"b":2}`, `{{"a":1}}`: `{"a":1}`,
	} {
		if got, ok := FirstJSON(text); !ok || string(got) != want {
			t.Errorf("FirstJSON(%q) = %s, %v, want %s", text, got, ok, want)
		}
	}
	for _, text := range []string{
		"", "[1]", `{"a":1`, "{a:1}", strings.Repeat("{", 1000) + "}", strings.Repeat(`{"a":[`, 100000),
	} {
		if got, ok := FirstJSON(text); ok {
			t.Errorf("FirstJSON(%.20q) = %s", text, got)
		}
	}
}

func TestOnlyJSON(t *testing.T) {
	for text, want := range map[string]string{
		` {"a":1} `: `{"a":1}`, "```json\n[1]\n```": "[1]", "```\n{}\n```\n": "{}", "```JSON\r\n{}\r\n```": "{}",
	} {
		if got, ok := OnlyJSON(text); !ok || string(got) != want {
			t.Errorf("OnlyJSON(%q) = %s, %v, want %s", text, got, ok, want)
		}
	}
	for _, text := range []string{
		"", "1", `"x"`, "null", `{} {}`, "Here: {}", "```json\n{}\n```\nDone", "```go\n{}\n```", "```", "```json {}```", "{",
	} {
		if got, ok := OnlyJSON(text); ok {
			t.Errorf("OnlyJSON(%q) = %s", text, got)
		}
	}
}

func TestSameJSON(t *testing.T) {
	for _, c := range []struct {
		a, b  string
		score float64
	}{
		{`{"a":1,"b":[true,null]}`, ` {"b":[true,null],"a":1.0} `, 1}, {"1e2", "100", 1}, {"[1,2]", "[2,1]", 0}, {`"a"`, `"\u0061"`, 1}, {`{"a":1}`, `{"a":"1"}`, 0},
		{`{"a":null}`, `{}`, 0}, {"", "", 0}, {"{}", "{}x", 0}, {"0.1", "1e-1", 1}, {"1e999999999", "1e999999999", 1}, {"1e999999999", "10e999999998", 0},
		{"9007199254740993", "9007199254740992", 0}, {`{"a":1}`, `{"b":1}`, 0}, {"[1]", "{}", 0}, {"{}", "[]", 0}, {"[1]", "[1,2]", 0}, {"1", "true", 0},
	} {
		if got := SameJSON(c.a, c.b); got != c.score || SameJSON(c.b, c.a) != got {
			t.Errorf("SameJSON(%q, %q) = %v", c.a, c.b, got)
		}
	}
}

func TestJSONFields(t *testing.T) {
	for _, c := range []struct {
		a, b  string
		score float64
	}{
		{`{"a":1,"b":2}`, `{"a":1,"b":3}`, 0.5}, {`{"a":1}`, `{"a":1,"b":3}`, 0.5}, {`{"a":1,"x":0,"y":0,"z":0}`, `{"a":1}`, 0.25}, {`{}`, `{}`, 1}, {`[]`, `[]`, 0}, {"", `{}`, 0},
	} {
		if got := JSONFields(c.a, c.b); got != c.score {
			t.Errorf("JSONFields(%q, %q) = %v", c.a, c.b, got)
		}
	}
}

func FuzzJSON(f *testing.F) {
	f.Add("{\"a\":[1,{\"b\":null}]}", "```json\n{\"a\":1e3}\n```")
	f.Add("{{}}", "1E+3")
	f.Fuzz(func(t *testing.T, a, b string) {
		if object, ok := FirstJSON(a); ok && SameJSON(string(object), string(object)) != 1 {
			t.Errorf("%q holds %q, which is not itself", a, object)
		}
		if value, ok := OnlyJSON(a); ok && SameJSON(string(value), string(value)) != 1 {
			t.Errorf("%q is %q, which is not itself", a, value)
		}
		if SameJSON(a, b) != SameJSON(b, a) || JSONFields(a, b) != JSONFields(b, a) {
			t.Errorf("%q and %q depend on their order", a, b)
		}
	})
}

func FuzzText(f *testing.F) {
	f.Add("The <think>cafe\u0301</think> ﬁ", "A.", "think")
	f.Add("<a><b></a></b>", "ＡＢ", "a")
	f.Fuzz(func(t *testing.T, a, b, tag string) {
		normal := Normalize(a)
		if again := Normalize(normal); again != normal || !utf8.ValidString(normal) {
			t.Errorf("Normalize(%q) = %q, and again %q", a, normal, again)
		}
		if ExactMatch(a, b) == 1 && F1(a, b) != 1 {
			t.Errorf("%q matches %q, and F1 is %v", a, b, F1(a, b))
		}
		if x := F1(a, b); x < 0 || x > 1 || x != F1(b, a) {
			t.Errorf("F1(%q, %q) = %v", a, b, x)
		}
		if _, ok := Tag(a, tag); Tags(a, tag) == 1 && !ok {
			t.Errorf("%q has the section %q, and not the tag", a, tag)
		}
	})
}
