package chat

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

// callKeys name the members of a JSON object that is a call.
type callKeys struct {
	name      string
	arguments []string // the first that is present counts
	id        string   // "" if ids are ignored
}

var (
	hermesKeys  = callKeys{name: "name", arguments: []string{"arguments"}}
	mistralKeys = callKeys{name: "name", arguments: []string{"arguments"}, id: "id"}
	llamaKeys   = callKeys{name: "name", arguments: []string{"parameters", "arguments"}}
	// Cohere's ids are numbers that count from the beginning of a conversation; they are ignored.
	cohereKeys = callKeys{name: "tool_name", arguments: []string{"parameters"}}
)

// parse reads JSON objects, each a call, in sequence or in lists.
func (k callKeys) parse(section string, _ []art.Tool) ([]art.ToolCall, error) {
	objects, err := jsonObjects(section)
	if err != nil {
		return nil, err
	}
	return k.calls(objects)
}

func (k callKeys) calls(objects []map[string]json.RawMessage) ([]art.ToolCall, error) {
	calls := make([]art.ToolCall, 0, len(objects))
	for i, members := range objects {
		call, err := k.call(members)
		if err != nil {
			return nil, fmt.Errorf("call %d: %w", i, err)
		}
		calls = append(calls, call)
	}
	return calls, nil
}

// call converts an object to a call. Its arguments stay as they are written.
func (k callKeys) call(members map[string]json.RawMessage) (call art.ToolCall, err error) {
	name, ok := members[k.name]
	if !ok {
		return call, fmt.Errorf("it has no %q", k.name)
	}
	if err := json.Unmarshal(name, &call.Name); err != nil || call.Name == "" {
		return call, fmt.Errorf("its name is %s, not a string", name)
	}
	if raw, ok := members[k.id]; ok && k.id != "" {
		if err := json.Unmarshal(raw, &call.ID); err != nil {
			return call, fmt.Errorf("its id is %s, not a string", raw)
		}
	}
	for _, key := range k.arguments {
		if raw, ok := members[key]; ok {
			call.Arguments = string(raw)
			return call, nil
		}
	}
	return call, fmt.Errorf("it has no %q", k.arguments[0])
}

// parseLlamaJSON reads objects with name and parameters, or name.call(key=value), the syntax for the built-in tools of
// Llama 3.1.
func parseLlamaJSON(section string, tools []art.Tool) ([]art.ToolCall, error) {
	text := strings.TrimSpace(withoutTokens(section))
	if !strings.HasPrefix(text, "{") && !strings.HasPrefix(text, "[") {
		calls, err := parsePythonic("["+text+"]", tools)
		for i := range calls {
			calls[i].Name = strings.TrimSuffix(calls[i].Name, ".call")
		}
		return calls, err
	}
	objects, err := jsonObjects(text)
	switch {
	case err != nil && !strings.Contains(text, `"name"`):
		return nil, errNoCall
	case err != nil:
		return nil, err
	}
	if _, ok := objects[0]["name"]; !ok {
		return nil, errNoCall // an object can be an answer
	}
	return llamaKeys.calls(objects)
}

// parseMistral reads calls as JSON objects, or one as name[ARGS]{...}, which may have [CALL_ID] and an id after the
// name.
func parseMistral(section string, tools []art.Tool) ([]art.ToolCall, error) {
	text := strings.TrimSpace(section)
	if strings.HasPrefix(text, "[") || strings.HasPrefix(text, "{") {
		return mistralKeys.parse(section, tools)
	}
	name, rest, ok := strings.Cut(withoutTokens(text), "[ARGS]")
	if !ok {
		return nil, errors.New("there is neither a JSON array nor [ARGS] after [TOOL_CALLS]")
	}
	var call art.ToolCall
	if call.Name, call.ID = mistralHead(name); call.Name == "" {
		return nil, errors.New("it has no name")
	}
	var err error
	call.Arguments, err = wholeJSON(rest)
	return single(call, err)
}

// mistralHead returns the name and the id of a call.
func mistralHead(head string) (name, id string) {
	name, id, _ = strings.Cut(withoutTokens(head), "[CALL_ID]")
	return strings.TrimSpace(name), strings.TrimSpace(id)
}

// parseFunctionary reads a name, ">" and a JSON object, after <function=.
func parseFunctionary(section string, _ []art.Tool) ([]art.ToolCall, error) {
	name, arguments, ok := strings.Cut(withoutTokens(section), ">")
	if name = strings.TrimSpace(name); !ok || name == "" || strings.ContainsAny(name, "<{\n") {
		return nil, fmt.Errorf("expected a name and >, found %.40q", name)
	}
	written, err := wholeJSON(arguments)
	return single(art.ToolCall{Name: name, Arguments: written}, err)
}

// sameJSON reports whether two texts are the same JSON value, or the same text. The empty text is an empty object.
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
