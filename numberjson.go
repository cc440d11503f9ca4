package art

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// number is a float64 in stored JSON. What JSON has no number for is a string: "NaN", "Infinity", "-Infinity".
type number float64

// MarshalJSON implements [json.Marshaler].
func (n number) MarshalJSON() ([]byte, error) { return appendNumber(nil, float64(n), 64), nil }

// UnmarshalJSON implements [json.Unmarshaler].
func (n *number) UnmarshalJSON(data []byte) error {
	x, err := parseNumber(string(data), 64)
	*n = number(x)
	return err
}

// numbers32 is a list of float32 in stored JSON, each in the fewest digits that give it back.
type numbers32 []float32

// MarshalJSON implements [json.Marshaler].
func (n numbers32) MarshalJSON() ([]byte, error) {
	b := []byte{'['}
	for i, x := range n {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendNumber(b, float64(x), 32)
	}
	return append(b, ']'), nil
}

// UnmarshalJSON implements [json.Unmarshaler].
func (n *numbers32) UnmarshalJSON(data []byte) error {
	data = bytes.TrimSpace(data)
	if kind := kindOf(data); kind != kindArray {
		return fmt.Errorf("is %s, want an array of numbers", kind)
	}
	*n = nil
	inner := strings.TrimSpace(string(data[1 : len(data)-1]))
	if inner == "" {
		return nil
	}
	for i, text := range strings.Split(inner, ",") {
		x, err := parseNumber(strings.TrimSpace(text), 32)
		if err != nil {
			return within(fmt.Sprintf("[%d]", i), err)
		}
		*n = append(*n, float32(x))
	}
	return nil
}

// appendNumber writes x in the fewest digits of its size that give it back.
func appendNumber(b []byte, x float64, bits int) []byte {
	switch {
	case math.IsNaN(x):
		return append(b, `"NaN"`...)
	case math.IsInf(x, 1):
		return append(b, `"Infinity"`...)
	case math.IsInf(x, -1):
		return append(b, `"-Infinity"`...)
	}
	return strconv.AppendFloat(b, x, 'g', -1, bits)
}

// parseNumber reads one JSON value that [appendNumber] can write.
func parseNumber(text string, bits int) (float64, error) {
	switch text {
	case `"NaN"`:
		return math.NaN(), nil
	case `"Infinity"`:
		return math.Inf(1), nil
	case `"-Infinity"`:
		return math.Inf(-1), nil
	}
	if kindOf([]byte(text)) != kindNumber {
		return 0, fmt.Errorf("is %.40s, want a number", text)
	}
	x, err := strconv.ParseFloat(text, bits)
	if err != nil {
		return 0, fmt.Errorf("is %.40s, which is no float%d", text, bits)
	}
	return x, nil
}

// label is a value of Metadata in stored JSON. An int has no point and no exponent, a float64 has one of them; NaN and
// infinities are {"float":"NaN"} and so on.
type label struct{ value any }

// specialFloat is the form of a float64 label that JSON has no number for.
type specialFloat struct {
	Float number `json:"float"`
}

// MarshalJSON implements [json.Marshaler].
func (l label) MarshalJSON() ([]byte, error) {
	switch v := l.value.(type) {
	case nil, string, bool, int:
		return json.Marshal(v)
	case float64:
		if !finite(v) {
			return json.Marshal(specialFloat{number(v)})
		}
		b := appendNumber(nil, v, 64)
		if !bytes.ContainsAny(b, ".e") {
			b = append(b, ".0"...)
		}
		return b, nil
	}
	return nil, fmt.Errorf("is a %T, want string, bool, int, float64 or nil", l.value)
}

// UnmarshalJSON implements [json.Unmarshaler].
func (l *label) UnmarshalJSON(data []byte) error {
	switch kind := kindOf(data); kind {
	case kindObject:
		var special specialFloat
		if err := json.Unmarshal(data, &special); err != nil {
			return err
		}
		l.value = float64(special.Float)
		return nil
	case kindNumber:
		return l.parse(string(data))
	case kindArray:
		return fmt.Errorf("is %s, want a string, bool, number or null", kind)
	}
	return json.Unmarshal(data, &l.value)
}

// parse reads an int or a float64.
func (l *label) parse(text string) error {
	if strings.ContainsAny(text, ".eE") {
		x, err := parseNumber(text, 64)
		l.value = x
		return err
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return fmt.Errorf("is %.40s, which is no int", text)
	}
	l.value = n
	return nil
}
