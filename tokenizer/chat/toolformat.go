package chat

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/jinja"
)

// ToolFormats returns the names of the formats in which tools can be written if the template does not; see [Options].
// Each is the name of the parser that reads its calls.
func ToolFormats() []string { return slices.Sorted(maps.Keys(toolExamples)) }

// toolExamples show a model how to call a tool in each of the formats.
var toolExamples = func() map[string]toolExample {
	call := []art.ToolCall{{Name: "function", Arguments: `{"parameter": "value"}`}}
	out := map[string]toolExample{}
	for name, how := range map[string]string{
		hermes:     "write its name and its arguments as one JSON object between tags, once for each call",
		qwen3Coder: "write its name and each of its arguments between tags, once for each call",
		llama3JSON: "reply with nothing but its name and its arguments as one JSON object; " +
			"a semicolon stands between several",
		pythonic: "reply with nothing but a Python list of calls with keyword arguments",
	} {
		text, err := callWriters[name](call, false)
		if err != nil {
			panic("chat: " + err.Error()) // the example is ours
		}
		out[name] = toolExample{how, text}
	}
	return out
}()

// toolExample says how a call is written, and shows one.
type toolExample struct{ how, call string }

//go:embed formats/tools.jinja
var toolsSource string

// toolsTemplate writes what a system message says about tools.
var toolsTemplate = mustParse(toolsSource)

// argumentsTemplate writes arguments.
var argumentsTemplate = mustParse("{{ arguments|tojson }}")

func mustParse(source string) *jinja.Template {
	t, err := jinja.Parse(source)
	if err != nil {
		panic("chat: " + err.Error()) // it is ours
	}
	return t
}

// toolText writes what a template omits into the messages: calls into the content of the message that has them, and, if
// there is a format, also tools into the system message and results into messages of the user.
type toolText struct {
	writeCalls callWriter // nil if the template writes calls
	format     string     // "" if the template writes tools and results
	system     bool       // the template takes a system message
}

// write returns a conversation in which texts say what the template would omit.
func (w *toolText) write(c *conversation) (*conversation, error) {
	if w.writeCalls == nil {
		return c, nil
	}
	out, afterResult := &conversation{template: c.template, tools: c.tools}, false
	for i, m := range c.messages {
		role, _ := m.Get("role")
		result := w.format != "" && role == string(art.RoleTool)
		err := error(nil)
		switch {
		case result || afterResult && role == string(art.RoleUser):
			err = out.addUser(m, result)
		default:
			err = w.add(out, m)
		}
		if afterResult = result; err != nil {
			return nil, fmt.Errorf("chat: message %d: %w", i, err)
		}
	}
	if w.format == "" || len(jinja.Items(c.tools)) == 0 {
		return out, nil
	}
	out.tools = nil
	return out, w.addTools(out, c.tools)
}

// add appends a message, with its calls in its content.
func (w *toolText) add(out *conversation, m *jinja.Dict) (err error) {
	if calls, _ := m.Get("tool_calls"); len(jinja.Items(calls)) > 0 {
		m, err = w.withCalls(m, jinja.Items(calls))
	}
	out.messages = append(out.messages, m)
	return err
}

// addUser appends a result, or what the user says after results. They are joined with the user's message before them,
// because some templates require roles to alternate.
func (c *conversation) addUser(m *jinja.Dict, result bool) error {
	text, err := contentOf(m)
	if result {
		text = "<tool_response>\n" + text + "\n</tool_response>"
	}
	last := len(c.messages) - 1
	if err != nil || last < 0 || field(c.messages[last], "role") != string(art.RoleUser) {
		c.messages = append(c.messages, textMessage(art.RoleUser, text))
		return err
	}
	before, err := contentOf(c.messages[last])
	c.messages[last] = textMessage(art.RoleUser, before+"\n"+text)
	return err
}

func textMessage(role art.Role, text string) *jinja.Dict {
	m := jinja.NewDict()
	m.Set("role", string(role))
	m.Set("content", text)
	return m
}

// withCalls returns a message with its calls in its content.
func (w *toolText) withCalls(m *jinja.Dict, items []any) (_ *jinja.Dict, err error) {
	calls := make([]art.ToolCall, len(items))
	for i, item := range items {
		function := field(item, "function")
		calls[i].Name, _ = field(function, "name").(string)
		if calls[i].Arguments, err = textOf(field(function, "arguments")); err != nil {
			return nil, err
		}
	}
	content, err := contentOf(m)
	if err != nil {
		return nil, err
	}
	text, err := w.writeCalls(calls, content != "")
	if err != nil {
		return nil, err
	}
	if content != "" {
		text = content + "\n" + text
	}
	out := textMessage(art.RoleAssistant, text)
	for _, key := range []string{"reasoning_content", "thinking"} {
		if v, ok := m.Get(key); ok {
			out.Set(key, v)
		}
	}
	return out, nil
}

// textOf returns arguments as the text of an object, whichever they are.
func textOf(arguments any) (string, error) {
	if text, ok := arguments.(string); ok {
		return text, nil
	}
	variables := jinja.NewDict()
	variables.Set("arguments", arguments)
	out, err := argumentsTemplate.Render(variables, jinja.Options{})
	if err != nil {
		return "", err
	}
	return out.Text, nil
}

// field returns a member of a dict; nil if there is none.
func field(v any, key string) any {
	d, ok := v.(*jinja.Dict)
	if !ok {
		return nil
	}
	value, _ := d.Get(key)
	return value
}

func contentOf(m *jinja.Dict) (string, error) {
	content, _ := m.Get("content")
	switch v := content.(type) {
	case nil:
		return "", nil
	case string:
		return v, nil
	}
	text := ""
	for _, part := range jinja.Items(content) {
		s, ok := field(part, "text").(string)
		if !ok {
			return "", errors.New("its content has parts other than text, which the tool format cannot write")
		}
		text += s
	}
	return text, nil
}

// addTools writes tools into the system message, or, if the template takes none, before the first text of the user.
func (w *toolText) addTools(c *conversation, tools any) error {
	example := toolExamples[w.format]
	variables := jinja.NewDict()
	variables.Set("tools", tools)
	variables.Set("how", example.how)
	variables.Set("example", example.call)
	rendered, err := toolsTemplate.Render(variables, jinja.Options{})
	if err != nil {
		return fmt.Errorf("chat: tools: %w", err)
	}
	text := strings.TrimSpace(rendered.Text)
	user := slices.IndexFunc(c.messages, func(m *jinja.Dict) bool { return hasRole(m, art.RoleUser) })
	switch {
	case len(c.messages) > 0 && hasRole(c.messages[0], art.RoleSystem, art.RoleDeveloper):
		before, err := contentOf(c.messages[0])
		m := c.messages[0].Clone()
		m.Set("content", strings.TrimLeft(before+"\n\n"+text, "\n"))
		c.messages[0] = m
		return err
	case w.system:
		c.messages = slices.Insert(c.messages, 0, textMessage(art.RoleSystem, text))
		return nil
	case user < 0:
		return errors.New("chat: the chat template takes no system message, " +
			"and there is no message of the user to write tools into")
	}
	before, err := contentOf(c.messages[user])
	c.messages[user] = textMessage(art.RoleUser, text+"\n\n"+before)
	return err
}

func hasRole(m *jinja.Dict, roles ...art.Role) bool {
	role, _ := field(m, "role").(string)
	return slices.Contains(roles, art.Role(role))
}

// takesSystem reports whether a template writes a system message.
func (t *Template) takesSystem() bool {
	text, err := t.render([]art.Message{art.System(probe), art.User("a")}, nil, GenerationPrompt)
	return err == nil && strings.Contains(text, probe)
}

// callWriter writes the calls of a message as the text that the parser of the same name reads. afterText says that
// there is content before them: formats whose calls need no tags need them then.
type callWriter func(calls []art.ToolCall, afterText bool) (string, error)

// callWriters are for templates that omit calls, by the parser of the format that they tell models to use.
var callWriters = map[string]callWriter{
	hermes:     callSyntaxes[hermes].write,
	llama3JSON: callSyntaxes[llama3JSON].write,
	granite:    callSyntaxes[granite].write,
	qwen3Coder: writeQwenXML,
	pythonic:   writePythonic,
	lfm2:       writeLFM2,
}

// write is the callWriter of the syntax.
func (s jsonSyntax) write(calls []art.ToolCall, afterText bool) (string, error) {
	texts := make([]string, len(calls))
	for i, c := range calls {
		texts[i] = s.begin + `{"name": ` + quote(c.Name) + `, "` + s.arguments + `": ` + argumentsOf(c) + "}" + s.end
	}
	text := s.open + strings.Join(texts, s.between) + s.close
	if afterText {
		text = s.afterText + text
	}
	return text, nil
}

// argumentsOf returns the arguments of a call; an empty object if it has none.
func argumentsOf(c art.ToolCall) string {
	if strings.TrimSpace(c.Arguments) == "" {
		return "{}"
	}
	return c.Arguments
}

func writeQwenXML(calls []art.ToolCall, _ bool) (string, error) {
	return eachCall(calls, "\n", func(c art.ToolCall) (string, error) {
		text := "<tool_call>\n<function=" + c.Name + ">\n"
		err := eachArgument(c, func(key, value string) error {
			var plain string
			if json.Unmarshal([]byte(value), &plain) == nil && value != "null" {
				value = plain
			}
			text += "<parameter=" + key + ">\n" + value + "\n</parameter>\n"
			return nil
		})
		return text + "</function>\n</tool_call>", err
	})
}

func writePythonic(calls []art.ToolCall, afterText bool) (string, error) {
	text, err := pythonCalls(calls)
	if afterText {
		text = "<|python_start|>" + text + "<|python_end|>"
	}
	return text, err
}

func writeLFM2(calls []art.ToolCall, _ bool) (string, error) {
	text, err := pythonCalls(calls)
	return "<|tool_call_start|>" + text + "<|tool_call_end|>", err
}

func pythonCalls(calls []art.ToolCall) (string, error) {
	text, err := eachCall(calls, ", ", pythonCall)
	return "[" + text + "]", err
}

func pythonCall(c art.ToolCall) (string, error) {
	var arguments []string
	err := eachArgument(c, func(key, value string) error {
		d := json.NewDecoder(strings.NewReader(value))
		d.UseNumber()
		literal, err := pythonLiteral(d)
		arguments = append(arguments, key+"="+literal)
		return err
	})
	return c.Name + "(" + strings.Join(arguments, ", ") + ")", err
}

// pythonLiteral writes the next JSON value as a Python literal.
func pythonLiteral(d *json.Decoder) (string, error) {
	token, err := d.Token()
	if err != nil {
		return "", err
	}
	switch v := token.(type) {
	case json.Delim:
		var items []string
		for d.More() {
			item, err := pythonLiteral(d)
			if err == nil && v == '{' {
				var value string
				value, err = pythonLiteral(d)
				item += ": " + value
			}
			if err != nil {
				return "", err
			}
			items = append(items, item)
		}
		end, err := d.Token()
		if err != nil {
			return "", err
		}
		return fmt.Sprint(v) + strings.Join(items, ", ") + fmt.Sprint(end), nil
	case string:
		return quote(v), nil
	case bool:
		return map[bool]string{true: "True", false: "False"}[v], nil
	case nil:
		return "None", nil
	}
	return fmt.Sprint(token), nil
}

func eachCall(calls []art.ToolCall, separator string, write func(art.ToolCall) (string, error)) (string, error) {
	texts := make([]string, len(calls))
	for i, c := range calls {
		text, err := write(c)
		if err != nil {
			return "", fmt.Errorf("tool call %d: %w", i, err)
		}
		texts[i] = text
	}
	return strings.Join(texts, separator), nil
}

// eachArgument yields the arguments of a call in order, their values as JSON.
func eachArgument(c art.ToolCall, yield func(key, value string) error) error {
	wrong := errors.New("its arguments are not a JSON object, which the format needs")
	d := json.NewDecoder(strings.NewReader(argumentsOf(c)))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return wrong
	}
	for d.More() {
		key, err := d.Token()
		var value json.RawMessage
		if err == nil {
			err = d.Decode(&value)
		}
		if err != nil {
			return wrong
		}
		if err := yield(fmt.Sprint(key), string(value)); err != nil {
			return err
		}
	}
	if _, err := d.Token(); err != nil {
		return wrong
	}
	if _, err := d.Token(); err != io.EOF {
		return wrong
	}
	return nil
}
