package chat

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/goart-dev/art"
)

// callWriter writes the calls of a message as the text that the parser of the same name reads. afterText says that
// there is content before them: formats whose calls need no tags need them then.
type callWriter func(calls []art.ToolCall, afterText bool) (string, error)

// callWriters are for templates that omit calls, by the parser of the format that they tell models to use.
var callWriters = map[string]callWriter{
	hermes:     writeHermes,
	qwen3Coder: writeQwenXML,
	llama3JSON: writeLlamaJSON,
	pythonic:   writePythonic,
	granite:    writeGranite,
	lfm2:       writeLFM2,
}

func writeHermes(calls []art.ToolCall, _ bool) (string, error) {
	return eachCall(calls, "\n", func(c art.ToolCall) (string, error) {
		return "<tool_call>\n" + jsonCall(c, "arguments") + "\n</tool_call>", nil
	})
}

func writeLlamaJSON(calls []art.ToolCall, afterText bool) (string, error) {
	text, err := eachCall(calls, "; ", func(c art.ToolCall) (string, error) { return jsonCall(c, "parameters"), nil })
	if afterText {
		text = "<|python_tag|>" + text
	}
	return text, err
}

// jsonCall writes a call as a JSON object. Arguments stay as they are.
func jsonCall(c art.ToolCall, arguments string) string {
	return `{"name": ` + quote(c.Name) + `, "` + arguments + `": ` + argumentsOf(c) + "}"
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

func writeGranite(calls []art.ToolCall, _ bool) (string, error) {
	text, err := eachCall(calls, ", ", func(c art.ToolCall) (string, error) { return jsonCall(c, "arguments"), nil })
	return "<|tool_call|>[" + text + "]", err
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
		return pythonItems(d, v)
	case string:
		return quote(v), nil
	case bool:
		return map[bool]string{true: "True", false: "False"}[v], nil
	case nil:
		return "None", nil
	}
	return fmt.Sprint(token), nil
}

// pythonItems writes the items of a list or a dict that has begun.
func pythonItems(d *json.Decoder, open json.Delim) (string, error) {
	var items []string
	for d.More() {
		item, err := pythonLiteral(d)
		if err == nil && open == '{' {
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
	return fmt.Sprint(open) + strings.Join(items, ", ") + fmt.Sprint(end), nil
}

// eachCall writes calls with a separator between them.
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
