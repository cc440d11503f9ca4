package reward

import (
	"bytes"
	"encoding/json"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"
)

// maxObjects bounds the places of a text that are tried as the beginning of a JSON object.
const maxObjects = 100

// FirstJSON returns the first JSON object of text, whatever stands around it: words, a fence of Markdown. ok is false
// when there is none among the first 100 opening braces.
func FirstJSON(text string) (object json.RawMessage, ok bool) {
	for range maxObjects {
		begin := strings.IndexByte(text, '{')
		if begin < 0 {
			return nil, false
		}
		text = text[begin:]
		if err := json.NewDecoder(strings.NewReader(text)).Decode(&object); err == nil {
			return object, true
		}
		text = text[1:]
	}
	return nil, false
}

// OnlyJSON returns the JSON object or array that is all of text, but for white space and one fence of Markdown around
// it.
func OnlyJSON(text string) (value json.RawMessage, ok bool) {
	text = unfence(strings.TrimSpace(text))
	if text == "" || text[0] != '{' && text[0] != '[' || !json.Valid([]byte(text)) {
		return nil, false
	}
	return json.RawMessage(text), true
}

// unfence returns what a fence of Markdown holds, where text is one.
func unfence(text string) string {
	inner, ok := strings.CutPrefix(text, "```")
	if !ok {
		return text
	}
	language, inner, ok := strings.Cut(inner, "\n")
	inner, closed := strings.CutSuffix(inner, "```")
	language = strings.TrimSpace(language)
	if !ok || !closed || language != "" && !strings.EqualFold(language, "json") {
		return text
	}
	return strings.TrimSpace(inner)
}

// SameJSON returns 1 when answer and want are the same JSON value, else 0: keys in any order, numbers by their value,
// strings as they are. Text that is not JSON is no value, and equals nothing.
func SameJSON(answer, want string) float64 {
	a, okA := parseJSON(answer)
	b, okB := parseJSON(want)
	return score(okA && okB && sameValue(a, b))
}

// JSONFields compares two JSON objects key by key:
//
//	fields that are the same in both / keys that are in either
//
// It is 0 when one of the texts is not an object, and 1 for two empty ones.
func JSONFields(answer, want string) float64 {
	a, okA := parseJSON(answer)
	b, okB := parseJSON(want)
	got, isObject := a.(map[string]any)
	ref, isToo := b.(map[string]any)
	if !okA || !okB || !isObject || !isToo {
		return 0
	}
	if len(got)+len(ref) == 0 {
		return 1
	}
	same, keys := 0, len(got)
	for key, value := range ref {
		mine, ok := got[key]
		if !ok {
			keys++
		} else if sameValue(mine, value) {
			same++
		}
	}
	return float64(same) / float64(keys)
}

// parseJSON decodes text that is one JSON value, and leaves numbers as they are written.
func parseJSON(text string) (value any, ok bool) {
	if !json.Valid([]byte(text)) {
		return nil, false
	}
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	d.UseNumber()
	return value, d.Decode(&value) == nil
}

func sameValue(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && maps.EqualFunc(a, b, sameValue)
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, sameValue)
	case json.Number:
		b, ok := b.(json.Number)
		if !ok || a == b { // numbers that are too large to be read are compared as text
			return ok
		}
		x, okX := parseDecimal(a.String())
		y, okY := parseDecimal(b.String())
		return okX && okY && x.Cmp(y) == 0
	}
	return a == b
}

// parseDecimal reads a number without separators: "-1.5e3".
func parseDecimal(text string) (*big.Rat, bool) {
	mantissa, exponent, scientific := strings.Cut(strings.ToLower(text), "e")
	n, err := strconv.Atoi(exponent)
	if len(mantissa) > maxDigits || scientific && (err != nil || n < -maxDigits || n > maxDigits) {
		return nil, false
	}
	return new(big.Rat).SetString(text)
}
