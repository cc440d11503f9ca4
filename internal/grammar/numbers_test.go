package grammar

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"
)

// randomDecimal returns a number near others of its kind, in JSON or nearly so.
func randomDecimal(rng *rand.Rand) string {
	text := fmt.Sprint(rng.IntN([]int{10, 130, 100_000}[rng.IntN(3)]))
	if rng.IntN(2) == 0 {
		text += fmt.Sprintf(".%0*d", 1+rng.IntN(3), rng.IntN(10))
	}
	if rng.IntN(2) == 0 {
		text = "-" + text
	}
	return text
}

func TestNumbers_BoundsHoldExactly(t *testing.T) {
	v := byteVocabulary()
	for seed := range uint64(60) {
		rng := newRand(t, seed)
		low, high := randomDecimal(rng), randomDecimal(rng)
		names := [2]string{"minimum", "maximum"}
		if rng.IntN(2) == 0 {
			names = [2]string{"exclusiveMinimum", "exclusiveMaximum"}
		}
		kind := []string{"integer", "number"}[rng.IntN(2)]
		schema := fmt.Sprintf(`{"type":%q,%q:%s,%q:%s}`, kind, names[0], low, names[1], high)
		c, err := Compile(JSONSchema([]byte(schema), nil), v, nil)
		for range 300 {
			text := randomDecimal(rng)
			if rng.IntN(6) == 0 {
				text = []string{low, high, low + "0", "0", "-0", high + "1"}[rng.IntN(6)]
			}
			want := inBounds(text, low, high, kind, names[0] != "minimum")
			if err == nil && matches(t, c, text, rng) != want || err != nil && want {
				t.Fatalf("%s in %s: want %v; compile error %v", text, schema, want, err)
			}
		}
	}
}

// inBounds compares rationals. A minus sign before zero is allowed where a negative number may come.
func inBounds(text, low, high, kind string, exclusive bool) bool {
	x, _ := new(big.Rat).SetString(text)
	l, _ := new(big.Rat).SetString(low)
	h, _ := new(big.Rat).SetString(high)
	whole, _, point := strings.Cut(strings.TrimPrefix(text, "-"), ".")
	switch {
	case len(whole) > 1 && whole[0] == '0', kind == "integer" && point, strings.HasPrefix(text, "-") && l.Sign() >= 0:
		return false
	case exclusive:
		return x.Cmp(l) > 0 && x.Cmp(h) < 0
	}
	return x.Cmp(l) >= 0 && x.Cmp(h) <= 0
}

func TestNumbers_LargeBounds(t *testing.T) {
	v := byteVocabulary()
	rng := newRand(t, 1)
	schema := `{"type":"integer","minimum":-9223372036854775808,"maximum":18446744073709551615}`
	c := mustCompile(t, JSONSchema([]byte(schema), nil), v)
	for text, want := range map[string]bool{
		"18446744073709551615": true, "18446744073709551616": false, "-9223372036854775808": true,
		"-9223372036854775809": false, "0": true, "99999999999999999999": false, "1e3": false,
	} {
		if got := matches(t, c, text, rng); got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
}
