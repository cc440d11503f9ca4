package chat

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
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
	var x, y any
	return json.Unmarshal([]byte(cmp.Or(a, "{}")), &x) == nil && json.Unmarshal([]byte(cmp.Or(b, "{}")), &y) == nil &&
		reflect.DeepEqual(x, y)
}

// cutJSON cuts the JSON object or array at the beginning of a text from the rest; any other value is taken to be the
// whole text. The value is what the model wrote, except that control characters in strings, such as line breaks, are
// escaped, as JSON requires, and tags are spelled out. It may be invalid.
func cutJSON(text string) (value, rest string) {
	if !strings.HasPrefix(text, "{") && !strings.HasPrefix(text, "[") {
		return withoutTokens(text), ""
	}
	c := jsonCopier{copying: true}
	written, n := c.add([]byte(text))
	return string(written), text[n:]
}

// jsonCopier copies an object or an array as cutJSON writes it, from a text that grows.
type jsonCopier struct {
	copying         bool // it has not ended
	depth           int
	quoted, escaped bool
}

// add takes the next text, and returns what to write and how much of the text belongs to the value.
func (c *jsonCopier) add(text []byte) (written []byte, n int) {
	from := 0
	for i, b := range text {
		switch {
		case c.escaped:
			c.escaped = false
		case b == tokenByte[0], c.quoted && b < ' ':
			written = append(append(written, text[from:i]...), escapes[b]...)
			from = i + 1
		default:
			switch { // keep track of strings and of depth
			case c.quoted && b == '\\':
				c.escaped = true
			case b == '"':
				c.quoted = !c.quoted
			case c.quoted:
			case b == '{', b == '[':
				c.depth++
			case b == '}', b == ']':
				c.depth--
			}
		}
		if c.depth == 0 {
			c.copying = false
			return append(written, text[from:i+1]...), i + 1
		}
	}
	return append(written, text[from:]...), len(text)
}

// beginsJSON reports whether a text begins with an object or an array, after white space.
func beginsJSON(text string) bool {
	text = strings.TrimLeft(text, " \t\r\n")
	return strings.HasPrefix(text, "{") || strings.HasPrefix(text, "[")
}

// escapes are the JSON escapes of control characters.
var escapes = func() map[byte]string {
	out := map[byte]string{'\n': `\n`, '\r': `\r`, '\t': `\t`}
	for c := range byte(' ') {
		if out[c] == "" {
			out[c] = fmt.Sprintf(`\u%04x`, c)
		}
	}
	return out
}()

// wholeJSON returns the JSON value of a text that has nothing else.
func wholeJSON(text string) (string, error) {
	value, rest := cutJSON(strings.TrimSpace(text))
	if rest != "" || !json.Valid([]byte(value)) {
		return "", fmt.Errorf("its arguments are not JSON: %.80q", withoutTokens(strings.TrimSpace(text)))
	}
	return value, nil
}

// jsonObjects reads the members of the JSON objects in a text that has nothing else: one or several, alone or in lists,
// with white space, commas or semicolons between them.
func jsonObjects(text string) ([]map[string]json.RawMessage, error) {
	var out []map[string]json.RawMessage
	for rest := strings.TrimSpace(text); rest != "" || len(out) == 0; {
		value, after := cutJSON(rest)
		objects, err := objectsOf(value)
		if err != nil {
			return nil, err
		}
		out = append(out, objects...)
		rest = strings.TrimLeft(after, " \t\r\n")
		if rest != "" && (rest[0] == ',' || rest[0] == ';') {
			rest = strings.TrimLeft(rest[1:], " \t\r\n")
		}
	}
	return out, nil
}

// objectsOf reads an object, or a list of them.
func objectsOf(value string) (out []map[string]json.RawMessage, err error) {
	if strings.HasPrefix(value, "[") {
		if err := json.Unmarshal([]byte(value), &out); err != nil {
			return nil, err
		}
		if len(out) == 0 {
			return nil, errors.New("the array has no call")
		}
		return out, nil
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal([]byte(value), &members); err != nil {
		return nil, err
	}
	if members == nil {
		return nil, errors.New("it is null, not an object")
	}
	return append(out, members), nil
}

// objectWriter writes a JSON object, its members in the order in which they are added.
type objectWriter struct {
	members []string
	keys    map[string]bool
}

// add adds a member, whose value is JSON. It is an error if the key is repeated.
func (w *objectWriter) add(key, value string) error {
	if w.keys[key] {
		return errors.New("it is repeated")
	}
	if w.keys == nil {
		w.keys = map[string]bool{}
	}
	w.keys[key] = true
	w.members = append(w.members, quote(key)+": "+value)
	return nil
}

func (w *objectWriter) empty() bool { return len(w.members) == 0 }

func (w *objectWriter) String() string { return "{" + strings.Join(w.members, ", ") + "}" }
