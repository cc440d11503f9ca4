package chat

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/goart-dev/art"
)

// glmTags enclose the names and the values of arguments.
var glmTags = []string{"<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>"}

// parseGLM reads
//
//	name<arg_key>key</arg_key><arg_value>value</arg_value>
//
// with any number of pairs, and white space between tags. The tool's schema tells which values are strings: see
// [argumentSchema.typed]. </arg_value> may be missing.
func parseGLM(section string, tools []art.Tool) ([]art.ToolCall, error) {
	var tags [4]string
	for i, tag := range glmTags {
		tags[i] = tagIn(section, tag)
	}
	head, rest := section, ""
	if at := strings.Index(section, tags[0]); at >= 0 {
		head, rest = section[:at], section[at:]
	}
	name, err := glmName(head)
	if err != nil {
		return nil, err
	}
	schema := schemaOf(tools, name)
	var members objectWriter
	for text := strings.TrimSpace(rest); text != ""; text = strings.TrimSpace(text) {
		var key, value string
		if key, value, text, err = glmPair(text, tags, schema, &members); err != nil {
			return nil, err
		}
		if err := members.add(key, value); err != nil {
			return nil, fmt.Errorf("the argument %s: %w", key, err)
		}
	}
	return []art.ToolCall{{Name: name, Arguments: members.String()}}, nil
}

// glmName reads what comes before the arguments.
func glmName(head string) (name string, err error) {
	if name = strings.TrimSpace(withoutTokens(head)); name == "" || strings.ContainsAny(name, "<>{}\n") {
		return "", fmt.Errorf("expected a name, found %.40q", name)
	}
	return name, nil
}

// glmPair reads the argument that a text begins with, after those of members: its name, and its value as JSON.
func glmPair(
	text string, tags [4]string, schema *argumentSchema, members *objectWriter,
) (key, value, rest string, err error) {
	inner, opened := strings.CutPrefix(text, tags[0])
	key, rest, closed := strings.Cut(inner, tags[1])
	if !opened || !closed {
		return "", "", "", fmt.Errorf("expected <arg_key>key</arg_key>, found %.40q", withoutTokens(text))
	}
	if key = strings.TrimSpace(withoutTokens(key)); key == "" {
		return "", "", "", errors.New("an argument has no name")
	}
	inner, ok := strings.CutPrefix(strings.TrimSpace(rest), tags[2])
	if !ok {
		return "", "", "", fmt.Errorf("the argument %s has no value between <arg_value> and </arg_value>", key)
	}
	given := func(name string) bool { return name == key || members.keys[name] }
	argument := func(name string) string { return tags[0] + name + tags[1] }
	plain, rest, forgotten, _ := valueTags{end: tags[3], argument: argument}.cut(inner, schema, given)
	if plain = withoutTokens(plain); forgotten {
		plain = strings.TrimSuffix(plain, "\n")
	}
	return key, schema.typed(key, plain), rest, nil
}

// glmStream finds the call of a section, argument by argument. One without arguments is found when the section ends.
type glmStream struct {
	tags     [4]string
	tools    []art.Tool
	text     []byte // that was not read yet
	searched int    // how much of it was searched for the tag that is needed next
	begun    bool
	stopped  bool
	schema   *argumentSchema
	members  objectWriter
}

func streamGLM(f *replyFormat, tools []art.Tool) callStream {
	s := &glmStream{tools: tools}
	for i, tag := range glmTags {
		s.tags[i] = f.tag(tag)
	}
	return s
}

func (s *glmStream) add(text []byte, found callSink) {
	s.text = append(s.text, text...)
	for !s.stopped && s.step(found) {
	}
}

// step reads the name or an argument. It reports false if more of the text must come.
func (s *glmStream) step(found callSink) bool {
	tag := s.tags[0]
	if s.begun {
		tag = s.tags[3]
	}
	from := max(0, s.searched-len(tag))
	at := bytes.Index(s.text[from:], []byte(tag))
	if at < 0 {
		s.searched = len(s.text)
		return false
	}
	at += from
	if s.begun {
		at += len(tag)
		key, value, rest, err := glmPair(string(bytes.TrimSpace(s.text[:at])), s.tags, s.schema, &s.members)
		separator := ", "
		if s.members.empty() {
			separator = ""
		}
		if s.stopped = err != nil || rest != "" || s.members.add(key, value) != nil; !s.stopped {
			found.grow(separator + quote(key) + ": " + value)
		}
	} else {
		name, err := glmName(string(s.text[:at]))
		if s.stopped = err != nil || !isPlain(name); !s.stopped {
			found.begin(name, "")
			found.grow("{")
			s.begun, s.schema = true, schemaOf(s.tools, name)
		}
	}
	s.text, s.searched = s.text[at:], 0
	return true
}

// valueTags tell where the value of an argument ends: at its end tag or, because models forget that one, at a tag that
// cannot be part of the value.
type valueTags struct {
	end string
	// argument returns the tag of an argument. A value ends before the tag of one that the tool has and that the call has
	// nowhere else: then it is no text that mentions the tag.
	argument func(name string) string
	// call ends a call: a value ends before it if the section does, or if next, the tag of another call, follows. Where
	// call is "", the section has one call, and a value ends with it.
	call, next string
}

// cut returns the value that a text begins with, and what follows it. given tells which arguments the call has so far,
// with that of the value. forgotten says that the end tag is missing; ok is false if nothing tells where the value
// ends.
func (t valueTags) cut(
	text string, schema *argumentSchema, given func(name string) bool,
) (value, rest string, forgotten, ok bool) {
	value, rest, ok = strings.Cut(text, t.end)
	if at := min(t.callEnd(text, len(value)), t.argumentStart(text, len(value), schema, given)); at < len(value) {
		return text[:at], text[at:], true, true
	}
	return value, rest, !ok, ok || t.call == ""
}

// callEnd returns where a call ends within the first n bytes of a text; n if it does not.
func (t valueTags) callEnd(text string, n int) int {
	for from := 0; t.call != ""; {
		at := strings.Index(text[from:n], t.call)
		if at < 0 {
			break
		}
		at, from = from+at, from+at+len(t.call)
		after := strings.TrimLeft(text[from:], " \t\r\n")
		if after == "" || strings.HasPrefix(after, t.next) {
			return at
		}
	}
	return n
}

// argumentStart returns where the first of the other arguments begins within the first n bytes of a text; n if none
// does.
func (t valueTags) argumentStart(text string, n int, schema *argumentSchema, given func(name string) bool) int {
	first := n
	for _, name := range schema.names {
		if given(name) {
			continue
		}
		tag := t.argument(name)
		at := strings.Index(text[:n], tag)
		if at < 0 || at >= first {
			continue
		}
		call := text
		if t.call != "" {
			call, _, _ = strings.Cut(text, t.call)
		}
		if strings.Count(call, tag) == 1 {
			first = at
		}
	}
	return first
}
