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
	arguments, err := glmArguments(rest, tags, schemaOf(tools, name))
	return single(art.ToolCall{Name: name, Arguments: arguments}, err)
}

// glmName reads what comes before the arguments.
func glmName(head string) (name string, err error) {
	if name = strings.TrimSpace(withoutTokens(head)); name == "" || strings.ContainsAny(name, "<>{}\n") {
		return "", fmt.Errorf("expected a name, found %.40q", name)
	}
	return name, nil
}

// glmArguments reads pairs into a JSON object.
func glmArguments(text string, tags [4]string, schema *argumentSchema) (string, error) {
	var members objectWriter
	for text = strings.TrimSpace(text); text != ""; text = strings.TrimSpace(text) {
		key, value, rest, err := glmPair(text, tags, schema, &members)
		if err != nil {
			return "", err
		}
		if err := members.add(key, value); err != nil {
			return "", fmt.Errorf("the argument %s: %w", key, err)
		}
		text = rest
	}
	return members.String(), nil
}

// glmPair reads the argument that a text begins with, after those of members: its name, and its value as JSON.
func glmPair(
	text string, tags [4]string, schema *argumentSchema, members *objectWriter,
) (key, value, rest string, err error) {
	key, rest, ok := between(text, tags[0], tags[1])
	if !ok {
		return "", "", "", fmt.Errorf("expected <arg_key>key</arg_key>, found %.40q", withoutTokens(text))
	}
	if key = strings.TrimSpace(key); key == "" {
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

// between returns what is between two tags at the beginning of a text, and what follows.
func between(text, open, end string) (inner, rest string, ok bool) {
	if text, ok = strings.CutPrefix(text, open); !ok {
		return "", "", false
	}
	inner, rest, ok = strings.Cut(text, end)
	return withoutTokens(inner), rest, ok
}
