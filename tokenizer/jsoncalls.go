package tokenizer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"

	"github.com/goart-dev/art"
)

// parseHermes reads one JSON object with name and arguments.
func parseHermes(section string, _ []art.Tool) ([]art.ToolCall, error) {
	members, err := jsonObject(section)
	if err != nil {
		return nil, err
	}
	return single(callOf(members, "name", "arguments"))
}

// jsonObject reads the members of a JSON object that is all of a text.
func jsonObject(text string) (map[string]json.RawMessage, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal([]byte(withoutTokens(text)), &members); err != nil {
		return nil, err
	}
	if members == nil {
		return nil, errors.New("it is null, not an object")
	}
	return members, nil
}

// callOf makes a call of the member that is its name, and the first member that is there of those for arguments. They
// stay as they are written.
func callOf(members map[string]json.RawMessage, nameKey string, arguments ...string) (call art.ToolCall, err error) {
	name, ok := members[nameKey]
	if !ok {
		return call, fmt.Errorf("it has no %q", nameKey)
	}
	if err := json.Unmarshal(name, &call.Name); err != nil || call.Name == "" {
		return call, fmt.Errorf("its name is %s, not a text", name)
	}
	for _, key := range arguments {
		if raw, ok := members[key]; ok {
			call.Arguments = string(raw)
			return call, nil
		}
	}
	return call, fmt.Errorf("it has no %q", arguments[0])
}

// parseLlamaJSON reads objects with name and parameters, separated by semicolons, or name.call(key=value), as the
// built-in tools of Llama 3.1 are called.
func parseLlamaJSON(section string, tools []art.Tool) ([]art.ToolCall, error) {
	text := strings.TrimSpace(withoutTokens(section))
	if !strings.HasPrefix(text, "{") {
		calls, err := parsePythonic("["+text+"]", tools)
		for i := range calls {
			calls[i].Name = strings.TrimSuffix(calls[i].Name, ".call")
		}
		return calls, err
	}
	var calls []art.ToolCall
	d := json.NewDecoder(strings.NewReader(text))
	for {
		var members map[string]json.RawMessage
		if err := d.Decode(&members); err != nil {
			if len(calls) == 0 && !strings.Contains(text, `"name"`) {
				return nil, errNoCall
			}
			return nil, err
		}
		if _, ok := members["name"]; !ok && len(calls) == 0 {
			return nil, errNoCall // an object that is the answer
		}
		call, err := callOf(members, "name", "parameters", "arguments")
		if err != nil {
			return nil, err
		}
		calls = append(calls, call)
		rest := strings.TrimSpace(text[d.InputOffset():])
		if rest == "" {
			return calls, nil
		}
		if !strings.HasPrefix(rest, ";") {
			return nil, fmt.Errorf("there is %.40q behind it", rest)
		}
		text = strings.TrimSpace(rest[1:])
		d = json.NewDecoder(strings.NewReader(text))
	}
}

// parseMistral reads a JSON array of calls, or name[ARGS]{...} with an id between name and arguments where there is one.
func parseMistral(section string, _ []art.Tool) ([]art.ToolCall, error) {
	text := strings.TrimSpace(section)
	if strings.HasPrefix(text, "[") || strings.HasPrefix(text, "{") {
		return parseMistralArray(text)
	}
	name, rest, ok := strings.Cut(withoutTokens(text), "[ARGS]")
	if !ok {
		return nil, errors.New("there is neither a JSON array nor [ARGS] behind [TOOL_CALLS]")
	}
	var call art.ToolCall
	call.Name, call.ID, _ = strings.Cut(name, "[CALL_ID]")
	call.Name, call.ID = strings.TrimSpace(call.Name), strings.TrimSpace(call.ID)
	call.Arguments = strings.TrimSpace(rest)
	if call.Name == "" {
		return nil, errors.New("it has no name")
	}
	if !json.Valid([]byte(call.Arguments)) {
		return nil, fmt.Errorf("its arguments are not JSON: %.80q", call.Arguments)
	}
	return []art.ToolCall{call}, nil
}

// parseCohere reads a JSON array of calls. Their ids count from the beginning of a conversation; they are not read.
func parseCohere(section string, _ []art.Tool) ([]art.ToolCall, error) {
	var list []map[string]json.RawMessage
	if err := json.Unmarshal([]byte(withoutTokens(section)), &list); err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, errors.New("the array has no call")
	}
	var calls []art.ToolCall
	for i, members := range list {
		call, err := callOf(members, "tool_name", "parameters")
		if err != nil {
			return nil, fmt.Errorf("call %d: %w", i, err)
		}
		calls = append(calls, call)
	}
	return calls, nil
}

func parseMistralArray(text string) ([]art.ToolCall, error) {
	var list []map[string]json.RawMessage
	text = withoutTokens(text)
	if strings.HasPrefix(text, "{") {
		text = "[" + text + "]"
	}
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, errors.New("the array has no call")
	}
	var calls []art.ToolCall
	for i, members := range list {
		call, err := callOf(members, "name", "arguments")
		if err != nil {
			return nil, fmt.Errorf("call %d: %w", i, err)
		}
		if raw, ok := members["id"]; ok {
			if err := json.Unmarshal(raw, &call.ID); err != nil {
				return nil, fmt.Errorf("call %d: its id is %s, not a text", i, raw)
			}
		}
		calls = append(calls, call)
	}
	return calls, nil
}

// mistralID is the id of a call that has none: Mistral's templates want nine letters and digits.
func mistralID(i int) string { return fmt.Sprintf("call%05d", i) }

// sameJSON tells whether two texts are the same JSON value, or the same text. No arguments are an empty object.
func sameJSON(a, b string) bool {
	if a == b {
		return true
	}
	x, okX := decodeJSON(a)
	y, okY := decodeJSON(b)
	return okX && okY && reflect.DeepEqual(x, y)
}

func decodeJSON(s string) (v any, ok bool) {
	if s == "" {
		s = "{}"
	}
	d := json.NewDecoder(bytes.NewReader([]byte(s)))
	if err := d.Decode(&v); err != nil {
		return nil, false
	}
	_, err := d.Token()
	return v, err == io.EOF
}
