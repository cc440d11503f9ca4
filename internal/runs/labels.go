package runs

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// encodeMetrics writes metrics as a JSON object with sorted keys; nil for a nil map. Numbers that are not finite are
// strings, as in the history.
func encodeMetrics(metrics map[string]float64) (*string, error) {
	if metrics == nil {
		return nil, nil
	}
	fields := make(map[string]any, len(metrics))
	for key, value := range metrics {
		fields[key] = jsonFloat(value)
	}
	return encodeFields("metric", fields)
}

// decodeMetrics is the inverse of encodeMetrics, except that a nil map becomes an empty one, which can be written to.
func decodeMetrics(text *string) (map[string]float64, error) {
	if text == nil {
		return map[string]float64{}, nil
	}
	var fields map[string]any
	if err := json.Unmarshal([]byte(*text), &fields); err != nil {
		return nil, err
	}
	metrics := make(map[string]float64, len(fields))
	for key, value := range fields {
		f, ok := parseFloat(value)
		if !ok {
			return nil, fmt.Errorf("metric %q is %v", key, value)
		}
		metrics[key] = f
	}
	return metrics, nil
}

// encodeLabels writes metadata as a JSON object with sorted keys; nil for a nil map. An int is a number without a point
// and a float64 one with a point or an exponent. Other values are objects: {"float": "NaN"} for a float64
// that is not finite, {"bytes": base64} for a string that is not UTF-8.
func encodeLabels(labels map[string]any) (*string, error) {
	if labels == nil {
		return nil, nil
	}
	fields := make(map[string]any, len(labels))
	for key, value := range labels {
		field, err := encodeLabel(value)
		if err != nil {
			return nil, fmt.Errorf("metadata %q: %w", key, err)
		}
		fields[key] = field
	}
	return encodeFields("metadata", fields)
}

func encodeLabel(value any) (any, error) {
	switch v := value.(type) {
	case nil, bool, int:
		return v, nil
	case string:
		if utf8.ValidString(v) {
			return v, nil
		}
		return map[string]string{"bytes": base64.StdEncoding.EncodeToString([]byte(v))}, nil
	case float64:
		if name, ok := jsonFloat(v).(string); ok {
			return map[string]string{"float": name}, nil
		}
		text := strconv.FormatFloat(v, 'g', -1, 64)
		if !strings.ContainsAny(text, ".e") {
			text += ".0"
		}
		return json.Number(text), nil
	}
	return nil, fmt.Errorf("%T cannot be stored: use a string, bool, int, float64 or nil", value)
}

// decodeLabels is the inverse of encodeLabels, except for a nil map, as in decodeMetrics.
func decodeLabels(text *string) (map[string]any, error) {
	if text == nil {
		return map[string]any{}, nil
	}
	v, err := decodeNumbers([]byte(*text))
	if err != nil {
		return nil, err
	}
	labels, ok := v.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("metadata is not a JSON object")
	}
	for key, value := range labels {
		if labels[key], err = decodeLabel(value); err != nil {
			return nil, fmt.Errorf("metadata %q: %w", key, err)
		}
	}
	return labels, nil
}

func decodeLabel(value any) (any, error) {
	switch v := value.(type) {
	case json.Number:
		if strings.ContainsAny(v.String(), ".eE") {
			return v.Float64()
		}
		return strconv.Atoi(v.String())
	case map[string]any:
		if f, ok := parseFloat(v["float"]); ok {
			return f, nil
		}
		if text, ok := v["bytes"].(string); ok {
			content, err := base64.StdEncoding.DecodeString(text)
			return string(content), err
		}
		return nil, fmt.Errorf("unknown form %v", v)
	case []any:
		return nil, fmt.Errorf("unknown form %v", v)
	}
	return value, nil
}

// encodeFields writes an object with sorted keys.
func encodeFields(what string, fields map[string]any) (*string, error) {
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		if !utf8.ValidString(key) {
			return nil, fmt.Errorf("%s name %q is not UTF-8", what, key)
		}
	}
	content, err := json.Marshal(fields)
	return new(string(content)), err
}
