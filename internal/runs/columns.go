package runs

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The columns of a trajectory file: one row per trajectory, in order. A group without trajectories is one row whose
// trajectory_index and reward are null. Pointers are columns that may be null.
//
// Integers are 64 bits unless the domain has fewer. What these columns cannot hold (invalid UTF-8, the difference
// between no list and an empty list) is in the column exact; see [exactRow].
type trajectoryRow struct {
	GroupIndex      int64  `parquet:"group_index"`
	TrajectoryIndex *int64 `parquet:"trajectory_index,optional"`

	Reward          *float64 `parquet:"reward,optional"`
	Metrics         *string  `parquet:"metrics,optional"`                      // JSON; see encodeMetrics
	Metadata        *string  `parquet:"metadata,optional"`                     // JSON; see encodeLabels
	Logs            []string `parquet:"logs,list"`                             //
	Start           int64    `parquet:"start,timestamp(microsecond),optional"` // null for the zero time
	StartExact      []byte   `parquet:"start_exact"`                           // time.Time.MarshalBinary
	Duration        int64    `parquet:"duration_ns"`                           // nanoseconds
	FirstPolicyStep *int64   `parquet:"first_policy_step,optional"`            // null without samples
	LastPolicyStep  *int64   `parquet:"last_policy_step,optional"`             //

	Messages            []messageRow `parquet:"messages,list"`
	Tools               []toolRow    `parquet:"tools,list"`
	AdditionalHistories []historyCol `parquet:"additional_histories,list"`

	Group *groupRow `parquet:"group,optional"` // in the first row of a group only
	Exact *exactRow `parquet:"exact,optional"`
}

// groupRow holds the fields of a group other than its trajectories.
type groupRow struct {
	Trajectories *int64       `parquet:"trajectories,optional"` // their number; null for nil
	Failures     []failureRow `parquet:"failures,list"`
	Metrics      *string      `parquet:"metrics,optional"`
	Metadata     *string      `parquet:"metadata,optional"`
	Logs         []string     `parquet:"logs,list"`
}

type failureRow struct {
	Scenario int64  `parquet:"scenario"`
	Attempt  int64  `parquet:"attempt"`
	Tries    int64  `parquet:"tries"`
	Type     string `parquet:"type"`
	Message  string `parquet:"message"`
	Stack    string `parquet:"stack"`
}

type historyCol struct {
	Messages []messageRow `parquet:"messages,list"`
	Tools    []toolRow    `parquet:"tools,list"`
}

type messageRow struct {
	Role       string        `parquet:"role"`
	Content    string        `parquet:"content"`
	Reasoning  string        `parquet:"reasoning"`
	ToolCalls  []toolCallRow `parquet:"tool_calls,list"`
	ToolCallID string        `parquet:"tool_call_id"`
	Name       string        `parquet:"name"`
	Trainable  bool          `parquet:"trainable"` // it has a sample
	Sample     *sampleRow    `parquet:"sample,optional"`
	Wire       *string       `parquet:"wire,optional"` // OpenAI's JSON, if it holds more than the columns
}

type toolCallRow struct {
	ID        string `parquet:"id"`
	Name      string `parquet:"name"`
	Arguments string `parquet:"arguments"`
}

type toolRow struct {
	Name        string  `parquet:"name"`
	Description string  `parquet:"description"`
	Parameters  *string `parquet:"parameters,optional"` // JSON Schema
	Wire        *string `parquet:"wire,optional"`       // as for messages
}

type sampleRow struct {
	PromptIDs []int32     `parquet:"prompt_ids,list"`
	IDs       []int32     `parquet:"ids,list"`
	Logprobs  []float32   `parquet:"logprobs,list"`
	Sampled   []float32   `parquet:"sampled,list"`
	Forced    []bool      `parquet:"forced,list"`
	Settings  settingsRow `parquet:"settings"`
	Step      int64       `parquet:"step"`
	Finish    string      `parquet:"finish"`
}

type settingsRow struct {
	Temperature float64  `parquet:"temperature"`
	TopP        float64  `parquet:"top_p"`
	TopK        int64    `parquet:"top_k"`
	MaxTokens   int64    `parquet:"max_tokens"`
	Stop        []string `parquet:"stop,list"`
	Seed        uint64   `parquet:"seed"`
	// Shape is null where all of it is off. It is a group of its own because the first files do not have it: its lists
	// must not count among theirs; see [exactRow].
	Shape *shapeRow `parquet:"shape,optional"`
	// Limits is null where all of it is off. It is newer than Shape.
	Limits *limitsRow `parquet:"limits,optional"`
}

type limitsRow struct {
	AllowedTokenIDs []int32  `parquet:"allowed_token_ids,list"`
	BadWords        []string `parquet:"bad_words,list"`
	IgnoreEOS       bool     `parquet:"ignore_eos"`
}

type shapeRow struct {
	MinP              float64   `parquet:"min_p"`
	RepetitionPenalty float64   `parquet:"repetition_penalty"`
	PresencePenalty   float64   `parquet:"presence_penalty"`
	FrequencyPenalty  float64   `parquet:"frequency_penalty"`
	LogitBias         []biasRow `parquet:"logit_bias,list"` // by ascending ids
	MinTokens         int64     `parquet:"min_tokens"`
	StopTokenIDs      []int32   `parquet:"stop_token_ids,list"`
	ResponseFormat    *string   `parquet:"response_format,optional"` // JSON
	ToolChoice        *string   `parquet:"tool_choice,optional"`     // JSON
}

type biasRow struct {
	ID   int32   `parquet:"id"`
	Bias float64 `parquet:"bias"`
}

// exactRow keeps what columns of strings and lists cannot: strings that are not UTF-8, which readers of Parquet refuse,
// and lists that are empty but not nil. Both are named by their ordinal among the strings and lists of the row, counted
// depth first in the order of the columns.
type exactRow struct {
	EmptyLists []int32    `parquet:"empty_lists,list"`
	Texts      []exactTxt `parquet:"texts,list"`
}

type exactTxt struct {
	Ordinal int32  `parquet:"ordinal"`
	Bytes   []byte `parquet:"bytes"`
}

// makeExact fills row.Exact and replaces the invalid bytes of strings by U+FFFD.
func makeExact(row *trajectoryRow) {
	var e exactRow
	visitCells(reflect.ValueOf(row), func(ordinal int32, cell reflect.Value) {
		switch {
		case cell.Kind() == reflect.Slice && cell.Len() == 0 && !cell.IsNil():
			e.EmptyLists = append(e.EmptyLists, ordinal)
		case cell.Kind() == reflect.String && !utf8.ValidString(cell.String()):
			e.Texts = append(e.Texts, exactTxt{ordinal, []byte(cell.String())})
			cell.SetString(strings.ToValidUTF8(cell.String(), "\uFFFD"))
		}
	})
	if len(e.EmptyLists)+len(e.Texts) > 0 {
		row.Exact = &e
	}
}

// applyExact is the inverse of makeExact.
func applyExact(row *trajectoryRow) error {
	e := exactRow{}
	if row.Exact != nil {
		e, row.Exact = *row.Exact, nil
	}
	visitCells(reflect.ValueOf(row), func(ordinal int32, cell reflect.Value) {
		switch {
		case cell.Kind() == reflect.String && len(e.Texts) > 0 && e.Texts[0].Ordinal == ordinal:
			cell.SetString(string(e.Texts[0].Bytes))
			e.Texts = e.Texts[1:]
		case cell.Kind() != reflect.Slice || cell.Len() > 0:
		case len(e.EmptyLists) > 0 && e.EmptyLists[0] == ordinal:
			cell.Set(reflect.MakeSlice(cell.Type(), 0, 0))
			e.EmptyLists = e.EmptyLists[1:]
		default:
			cell.SetZero()
		}
	})
	if len(e.EmptyLists)+len(e.Texts) > 0 {
		return fmt.Errorf("column exact describes %d cells that do not exist", len(e.EmptyLists)+len(e.Texts))
	}
	return nil
}

// visitCells calls visit for each string and each slice that v points to, counting them.
func visitCells(v reflect.Value, visit func(ordinal int32, cell reflect.Value)) {
	var ordinal int32
	var walk func(v reflect.Value)
	walk = func(v reflect.Value) {
		if v.Kind() == reflect.String || v.Kind() == reflect.Slice {
			visit(ordinal, v)
			ordinal++
		}
		switch v.Kind() {
		case reflect.Pointer:
			if !v.IsNil() {
				walk(v.Elem())
			}
		case reflect.Struct:
			for i := range v.NumField() {
				walk(v.Field(i))
			}
		case reflect.Slice:
			if kind := v.Type().Elem().Kind(); kind != reflect.Struct && kind != reflect.String {
				return // numbers have no cells
			}
			for i := range v.Len() {
				walk(v.Index(i))
			}
		}
	}
	walk(v)
}

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
