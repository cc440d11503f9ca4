package tokenizer

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// unigramGolden is unigram.json. testdata/make_unigram.py says how it was made.
type unigramGolden struct {
	File    json.RawMessage
	Cases   []spCase
	Numbers [][2]string // as it is written, and the bits that the reference reads
}

func readUnigram(t testing.TB) unigramGolden {
	t.Helper()
	var g unigramGolden
	must(t, json.Unmarshal(testdata(t, "unigram.json"), &g))
	return g
}

// TestNew_UntypedUnigram: a file without a "type", as T5's is, was refused; and its ties are divided as the reference
// divides them, which reads many scores a bit off.
func TestNew_UntypedUnigram(t *testing.T) {
	golden := readUnigram(t)
	tok, err := New(golden.File, nil)
	must(t, err)
	for _, c := range golden.Cases {
		if got := tok.Encode(c.Text, false); !slices.Equal(got, c.IDs) {
			t.Errorf("%+q:\n got %v\nwant %v", c.Text, got, c.IDs)
		}
	}
}

// TestNew_Untyped: the members tell which model it is, in the order in which the reference tries them.
func TestNew_Untyped(t *testing.T) {
	for model, want := range map[string]string{
		`{"vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]}`:              "",
		`{"vocab": [["<unk>", 0], ["a", -1]], "unk_id": 0}`:                    "",
		`{"vocab": [["<unk>", 0], ["a", -1]], "unk_id": 0, "merges": ["a b"]}`: "", // of no use to Unigram
		`{"vocab": {"a": 0}, "unk_token": "a"}`:                                "WordLevel",
		`{"vocab": [["<unk>", 0]], "unk_id": 1}`:                               "unk_id",
		`{"unk_id": 0}`:                                                        "type",
	} {
		_, err := New([]byte(`{"version": "1.0", "model": `+model+`}`), nil)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: error %v, want %q", model, err, want)
		}
	}
}

func TestSerdeNumber_Golden(t *testing.T) {
	inexact := 0
	for _, n := range readUnigram(t).Numbers {
		got, ok := serdeNumber(n[0])
		if bits := fmt.Sprintf("%016x", math.Float64bits(got)); !ok || bits != n[1] {
			t.Errorf("%s: %s (%v), want %s", n[0], bits, ok, n[1])
		}
		if nearest, err := strconv.ParseFloat(n[0], 64); err == nil && nearest != got {
			inexact++
		}
	}
	if inexact < 20 {
		t.Errorf("only %d numbers are not the nearest: the golden file tests nothing", inexact)
	}
}

func TestSerdeNumber_Refuses(t *testing.T) {
	for _, text := range []string{"", "-", "+1", "01", "-00", "1.", ".5", "1e", "1e+", "1 ", "--1", "1e309", "1e99999999999", "1.5.5", "NaN"} {
		if n, ok := serdeNumber(text); ok {
			t.Errorf("%q is read as %v", text, n)
		}
	}
}

// TestSerdeNumber_Near: what is read is the nearest number, or almost.
func TestSerdeNumber_Near(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 10_000 {
		want := math.Float64frombits(rng.Uint64())
		if math.IsNaN(want) || math.Abs(want) > 1e300 || math.Abs(want) < 1e-280 {
			continue
		}
		text := strconv.FormatFloat(want, "eg"[rng.IntN(2)], rng.IntN(25), 64)
		want, err := strconv.ParseFloat(text, 64)
		must(t, err)
		if got, ok := serdeNumber(text); !ok || math.Abs(got-want) > 4e-16*math.Abs(want) {
			t.Errorf("%s is read as %v (%v)", text, got, ok)
		}
	}
}

// FuzzSerdeNumber: whatever is read is a number that strconv reads too.
func FuzzSerdeNumber(f *testing.F) {
	for _, n := range readUnigram(f).Numbers {
		f.Add(n[0])
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, ok := serdeNumber(text)
		if !ok {
			return
		}
		if want, err := strconv.ParseFloat(text, 64); err != nil || math.Abs(got-want) > 1e-14*math.Abs(want)+1e-300 {
			t.Fatalf("%q: %v, strconv reads %v (%v)", text, got, want, err)
		}
	})
}
