package chat

import (
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
// with any number of pairs, and white space between tags. A value is a string unless the tool's schema says otherwise.
func parseGLM(section string, tools []art.Tool) ([]art.ToolCall, error) {
	var tags [4]string
	for i, tag := range glmTags {
		tags[i] = tagIn(section, tag)
	}
	name, rest := section, ""
	if at := strings.Index(section, tags[0]); at >= 0 {
		name, rest = section[:at], section[at:]
	}
	if name = strings.TrimSpace(withoutTokens(name)); name == "" || strings.ContainsAny(name, "<>{}\n") {
		return nil, fmt.Errorf("expected a name, found %.40q", name)
	}
	arguments, err := glmArguments(rest, tags, schemaOf(tools, name))
	return single(art.ToolCall{Name: name, Arguments: arguments}, err)
}

// glmArguments reads pairs into a JSON object.
func glmArguments(text string, tags [4]string, types map[string][]string) (string, error) {
	var members objectWriter
	for text = strings.TrimSpace(text); text != ""; text = strings.TrimSpace(text) {
		key, rest, ok := between(text, tags[0], tags[1])
		if !ok {
			return "", fmt.Errorf("expected <arg_key>key</arg_key>, found %.40q", withoutTokens(text))
		}
		value, rest, ok := between(strings.TrimSpace(rest), tags[2], tags[3])
		if !ok {
			return "", fmt.Errorf("the argument %s has no value between <arg_value> and </arg_value>", key)
		}
		if key = strings.TrimSpace(key); key == "" {
			return "", errors.New("an argument has no name")
		}
		written, err := typedValue(value, types[key])
		if err == nil {
			err = members.add(key, written)
		}
		if err != nil {
			return "", fmt.Errorf("the argument %s: %w", key, err)
		}
		text = rest
	}
	return members.String(), nil
}

// between returns what is between two tags at the beginning of a text, and what follows.
func between(text, open, end string) (inner, rest string, ok bool) {
	if text, ok = strings.CutPrefix(text, open); !ok {
		return "", "", false
	}
	inner, rest, ok = strings.Cut(text, end)
	return withoutTokens(inner), rest, ok
}
