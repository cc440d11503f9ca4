package tokenizer

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"testing"
)

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
		t.Errorf("only %d numbers are not the nearest float64: the golden file tests nothing", inexact)
	}
}

func TestSerdeNumber_Refuses(t *testing.T) {
	for _, text := range []string{
		"", "-", "+1", "01", "-00", "1.", ".5", "1e", "1e+", "1 ", "--1", "1e309", "1e99999999999", "1.5.5", "NaN",
	} {
		if n, ok := serdeNumber(text); ok {
			t.Errorf("%q is read as %v", text, n)
		}
	}
}

// TestSerdeNumber_Near: the result is at most a few bits from the nearest float64.
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

// FuzzSerdeNumber: every accepted text is a number to strconv, too.
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
