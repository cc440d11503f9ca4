package chat

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/goart-dev/art"
)

// xmlSyntax is a way to write calls in tags that look like XML, without escapes:
//
//	<function=name>
//	<parameter=key>
//	value
//	</parameter>
//	</function>
//
// once for each call.
type xmlSyntax struct {
	function, parameter       string // what comes before a name
	named                     string // what follows a name
	functionEnd, parameterEnd string
	lines                     bool // a line break at each end of a value is not part of it
	// typed says that an attribute of a parameter tells whether its value is a string or JSON. Otherwise the tool's schema
	// does; a value is a string if that says nothing.
	typed  bool
	marker string // the part of each tag that may be a token; "" if there is none
}

var (
	qwenXML = xmlSyntax{function: "<function=", parameter: "<parameter=", named: ">",
		functionEnd: "</function>", parameterEnd: "</parameter>", lines: true}
	miniMaxXML = xmlSyntax{function: `<invoke name="`, parameter: `<parameter name="`, named: `">`,
		functionEnd: "</invoke>", parameterEnd: "</parameter>"}
	dsml = xmlSyntax{function: "<" + dsmlMarker + `invoke name="`, parameter: "<" + dsmlMarker + `parameter name="`,
		named: `">`, functionEnd: "</" + dsmlMarker + "invoke>", parameterEnd: "</" + dsmlMarker + "parameter>",
		typed: true, marker: dsmlMarker}
)

// dsmlMarker is in each tag of DeepSeek's markup language, and is a token.
const dsmlMarker = "｜DSML｜"

// stringAttribute follows the name of a typed parameter; its value is true or false.
const stringAttribute = `" string="`

// parse reads calls and white space between them.
func (s xmlSyntax) parse(section string, tools []art.Tool) ([]art.ToolCall, error) {
	if s.marker == "" {
		section = withoutTokens(section)
	} else {
		s = s.withMarker(tagIn(section, s.marker))
	}
	var calls []art.ToolCall
	rest := strings.TrimSpace(section)
	for ; rest != "" || len(calls) == 0; rest = strings.TrimLeft(rest, " \t\r\n") {
		head, body, ok := strings.Cut(rest, s.named)
		name, isFunction := strings.CutPrefix(head, s.function)
		if !ok || !isFunction || strings.TrimSpace(name) == "" {
			return nil, fmt.Errorf("expected %sname%s, found %.40q", withoutTokens(s.function), s.named, withoutTokens(rest))
		}
		name = withoutTokens(name)
		arguments, after, err := s.arguments(body, schemaOf(tools, name))
		if err != nil {
			return nil, err
		}
		calls, rest = append(calls, art.ToolCall{Name: name, Arguments: arguments}), after
	}
	return calls, nil
}

// withMarker returns the syntax with the marker as it is in a text.
func (s xmlSyntax) withMarker(marker string) xmlSyntax {
	for _, tag := range []*string{&s.function, &s.parameter, &s.functionEnd, &s.parameterEnd} {
		*tag = strings.Replace(*tag, s.marker, marker, 1)
	}
	return s
}

// arguments reads the parameters of a function into a JSON object, up to its end.
func (s xmlSyntax) arguments(body string, types map[string][]string) (arguments, rest string, err error) {
	var members objectWriter
	for {
		body = strings.TrimLeft(body, " \t\r\n")
		if rest, ok := strings.CutPrefix(body, s.functionEnd); ok {
			return members.String(), rest, nil
		}
		if body == "" {
			return "", "", fmt.Errorf("it does not end with %s", withoutTokens(s.functionEnd))
		}
		var key, value string
		if key, value, body, err = s.nextParameter(body, types); err != nil {
			return "", "", err
		}
		if err := members.add(key, value); err != nil {
			return "", "", fmt.Errorf("the parameter %s: %w", key, err)
		}
	}
}

// nextParameter reads the parameter that a text begins with: its name, and its value as JSON.
func (s xmlSyntax) nextParameter(body string, types map[string][]string) (key, value, rest string, err error) {
	inner, ok := strings.CutPrefix(body, s.parameter)
	key, inner, ended := strings.Cut(inner, s.named)
	if !ok || !ended || key == "" {
		wanted := withoutTokens(s.parameter) + "key" + s.named
		return "", "", "", fmt.Errorf("expected %s, found %.40q", wanted, withoutTokens(body))
	}
	key = withoutTokens(key)
	value, rest, ok = strings.Cut(inner, s.parameterEnd)
	if !ok {
		return "", "", "", fmt.Errorf("the parameter %s is not ended by %s", key, withoutTokens(s.parameterEnd))
	}
	if key, value, err = s.argument(key, withoutTokens(value), types); err != nil {
		return "", "", "", fmt.Errorf("the parameter %s: %w", key, err)
	}
	return key, value, rest, nil
}

// argument returns a parameter's name, and its value as JSON.
func (s xmlSyntax) argument(key, value string, types map[string][]string) (name, written string, err error) {
	if !s.typed {
		if s.lines {
			value = strings.TrimSuffix(strings.TrimPrefix(value, "\n"), "\n")
		}
		written, err = typedValue(value, types[key])
		return key, written, err
	}
	key, isString, _ := strings.Cut(key, stringAttribute)
	switch {
	case isString == "true":
		return key, quote(value), nil
	case isString != "false":
		return key, "", errors.New(`it has neither string="true" nor string="false"`)
	case !json.Valid([]byte(value)):
		return key, "", fmt.Errorf("%.40q is not JSON", value)
	}
	return key, strings.TrimSpace(value), nil
}
