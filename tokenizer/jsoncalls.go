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

// callKeys are the members of a JSON object that is a call.
type callKeys struct {
	name      string
	arguments []string // the first that is there counts
	id        string   // "" when it is not read
}

var (
	hermesKeys  = callKeys{name: "name", arguments: []string{"arguments"}}
	mistralKeys = callKeys{name: "name", arguments: []string{"arguments"}, id: "id"}
	llamaKeys   = callKeys{name: "name", arguments: []string{"parameters", "arguments"}}
	// Cohere's ids count from the beginning of a conversation; they are not read.
	cohereKeys = callKeys{name: "tool_name", arguments: []string{"parameters"}}
)

// parse reads JSON objects, each a call: one after the other, or in lists.
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

// call makes a call of an object. Its arguments stay as they are written.
func (k callKeys) call(members map[string]json.RawMessage) (call art.ToolCall, err error) {
	name, ok := members[k.name]
	if !ok {
		return call, fmt.Errorf("it has no %q", k.name)
	}
	if err := json.Unmarshal(name, &call.Name); err != nil || call.Name == "" {
		return call, fmt.Errorf("its name is %s, not a text", name)
	}
	if raw, ok := members[k.id]; ok && k.id != "" {
		if err := json.Unmarshal(raw, &call.ID); err != nil {
			return call, fmt.Errorf("its id is %s, not a text", raw)
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

// parseLlamaJSON reads objects with name and parameters, or name.call(key=value), as the built-in tools of Llama 3.1 are
// called.
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
		return nil, errNoCall // an object that is the answer
	}
	return llamaKeys.calls(objects)
}

// parseMistral reads JSON objects of calls, or name[ARGS]{...} with an id between name and arguments where there is one.
func parseMistral(section string, tools []art.Tool) ([]art.ToolCall, error) {
	text := strings.TrimSpace(section)
	if strings.HasPrefix(text, "[") || strings.HasPrefix(text, "{") {
		return mistralKeys.parse(section, tools)
	}
	name, rest, ok := strings.Cut(withoutTokens(text), "[ARGS]")
	if !ok {
		return nil, errors.New("there is neither a JSON array nor [ARGS] behind [TOOL_CALLS]")
	}
	var call art.ToolCall
	call.Name, call.ID, _ = strings.Cut(name, "[CALL_ID]")
	call.Name, call.ID = strings.TrimSpace(call.Name), strings.TrimSpace(call.ID)
	if call.Name == "" {
		return nil, errors.New("it has no name")
	}
	var err error
	call.Arguments, err = wholeJSON(rest)
	return single(call, err)
}

// parseFunctionary reads a name and a JSON object, behind <function=.
func parseFunctionary(section string, _ []art.Tool) ([]art.ToolCall, error) {
	name, arguments, ok := strings.Cut(withoutTokens(section), ">")
	if name = strings.TrimSpace(name); !ok || name == "" || strings.ContainsAny(name, "<{\n") {
		return nil, fmt.Errorf("there is %.40q where a name and > are wanted", name)
	}
	written, err := wholeJSON(arguments)
	return single(art.ToolCall{Name: name, Arguments: written}, err)
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
