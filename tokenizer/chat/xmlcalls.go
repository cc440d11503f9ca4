package chat

import (
	"bytes"
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
	// typed says that an attribute of a parameter tells whether its value is a string or JSON. Where it is missing, and in
	// the other formats, the tool's schema does: see [argumentSchema.typed].
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
func (s xmlSyntax) arguments(body string, schema *argumentSchema) (arguments, rest string, err error) {
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
		if key, value, body, err = s.nextParameter(body, schema, &members); err != nil {
			return "", "", err
		}
		if err := members.add(key, value); err != nil {
			return "", "", fmt.Errorf("the parameter %s: %w", key, err)
		}
	}
}

// nextParameter reads the parameter that a text begins with, after those of members: its name, and its value as JSON.
func (s xmlSyntax) nextParameter(
	body string, schema *argumentSchema, members *objectWriter,
) (key, value, rest string, err error) {
	inner, ok := strings.CutPrefix(body, s.parameter)
	key, inner, ended := strings.Cut(inner, s.named)
	if !ok || !ended || key == "" {
		wanted := withoutTokens(s.parameter) + "key" + s.named
		return "", "", "", fmt.Errorf("expected %s, found %.40q", wanted, withoutTokens(body))
	}
	key, isString := withoutTokens(key), ""
	if s.typed {
		key, isString, _ = strings.Cut(key, stringAttribute)
	}
	given := func(name string) bool { return name == key || members.keys[name] }
	value, rest, forgotten, ok := s.valueTags().cut(inner, schema, given)
	if !ok {
		return "", "", "", fmt.Errorf("the parameter %s is not ended by %s", key, withoutTokens(s.parameterEnd))
	}
	if value = withoutTokens(value); s.lines {
		value = strings.TrimPrefix(value, "\n")
	}
	if s.lines || forgotten {
		value = strings.TrimSuffix(value, "\n")
	}
	switch isString {
	case "true":
		return key, quote(value), rest, nil
	case "false":
		return key, valueOrText(value), rest, nil
	}
	return key, schema.typed(key, value), rest, nil
}

func (s xmlSyntax) valueTags() valueTags {
	argument := func(name string) string {
		if s.typed {
			return s.parameter + name + stringAttribute
		}
		return s.parameter + name + s.named
	}
	return valueTags{end: s.parameterEnd, argument: argument, call: s.functionEnd, next: s.function}
}

// xmlStream finds the calls of an xmlSyntax, parameter by parameter.
type xmlStream struct {
	syntax   xmlSyntax
	tools    []art.Tool
	text     []byte // that was not read yet
	searched int    // how much of it has no end of a parameter
	stopped  bool
	inside   bool // a function
	schema   *argumentSchema
	members  objectWriter
}

func (s xmlSyntax) stream(f *replyFormat, tools []art.Tool) callStream {
	if s.marker != "" {
		s = s.withMarker(f.tag(s.marker))
	}
	return &xmlStream{syntax: s, tools: tools}
}

func (s *xmlStream) add(text []byte, found callSink) {
	if s.syntax.marker == "" {
		text = []byte(withoutTokens(string(text)))
	}
	s.text = append(s.text, text...)
	for !s.stopped && s.step(found) {
	}
}

// step reads the beginning of a function, its end or a parameter. It reports false if more of the text must come.
func (s *xmlStream) step(found callSink) bool {
	if s.searched == 0 {
		s.text = bytes.TrimLeft(s.text, " \t\r\n")
	}
	if !s.inside {
		rest, ok, wrong := cutTag(s.text, s.syntax.function)
		head, rest, named := bytes.Cut(rest, []byte(s.syntax.named))
		if wrong || !named && len(head) > maxHead || named && !isPlain(string(head)) {
			s.stopped = true
		}
		if s.stopped || !ok || !named {
			return false
		}
		found.begin(string(head), "")
		found.grow("{")
		s.text, s.inside, s.members = rest, true, objectWriter{}
		s.schema = schemaOf(s.tools, string(head))
		return true
	}
	if rest, ended, _ := cutTag(s.text, s.syntax.functionEnd); ended {
		found.grow("}")
		s.text, s.inside, s.searched = rest, false, 0
		return true
	}
	// A parameter is read once its end has come.
	end := []byte(s.syntax.parameterEnd)
	from := max(0, s.searched-len(end))
	at := bytes.Index(s.text[from:], end)
	if at < 0 {
		s.searched = len(s.text)
		return false
	}
	at += from + len(end)
	key, value, rest, err := s.syntax.nextParameter(string(s.text[:at]), s.schema, &s.members)
	separator := ", "
	if s.members.empty() {
		separator = ""
	}
	if err != nil || rest != "" || s.members.add(key, value) != nil {
		s.stopped = true
		return false
	}
	found.grow(separator + quote(key) + ": " + value)
	s.text, s.searched = s.text[at:], 0
	return true
}
