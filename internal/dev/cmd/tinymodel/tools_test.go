package main

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goart-dev/art"
)

// schema is what the definitions of tools hold.
type schema struct {
	Type       string
	Properties map[string]struct {
		Type string
		Enum []string
	}
	Required []string
}

// readSchema reads the parameters of a tool and checks them.
func readSchema(t *testing.T, tool art.Tool) schema {
	t.Helper()
	var s schema
	if err := json.Unmarshal(tool.Parameters, &s); err != nil || s.Type != "object" {
		t.Fatalf("%s: parameters %s: %v", tool.Name, tool.Parameters, err)
	}
	for _, name := range s.Required {
		if s.Properties[name].Type == "" {
			t.Fatalf("%s: %s is required and not there", tool.Name, name)
		}
	}
	return s
}

// checkCall checks that the called tool is offered, and that the arguments are parameters of it, with their types and
// among their choices, and have all that are required.
func checkCall(t *testing.T, tools []art.Tool, c art.ToolCall) map[string]any {
	t.Helper()
	at := slices.IndexFunc(tools, func(tool art.Tool) bool { return tool.Name == c.Name })
	if at < 0 {
		t.Fatalf("%s is called and not offered", c.Name)
	}
	s := readSchema(t, tools[at])
	var arguments map[string]any
	if err := json.Unmarshal([]byte(c.Arguments), &arguments); err != nil {
		t.Fatalf("%s %s: %v", c.Name, c.Arguments, err)
	}
	for _, name := range s.Required {
		if arguments[name] == nil {
			t.Fatalf("%s %s lacks %s", c.Name, c.Arguments, name)
		}
	}
	for name, v := range arguments {
		p := s.Properties[name]
		text, isText := v.(string)
		if !slices.Contains(typesOf(v), p.Type) || isText && p.Enum != nil && !slices.Contains(p.Enum, text) {
			t.Fatalf("%s: %s is %v, want %+v", c.Name, name, v, p)
		}
	}
	return arguments
}

// typesOf are the types in JSON Schema that a value has.
func typesOf(v any) []string {
	switch x := v.(type) {
	case bool:
		return []string{"boolean"}
	case float64:
		if x == math.Trunc(x) {
			return []string{"integer", "number"}
		}
		return []string{"number"}
	}
	return []string{"string"}
}

// TestToolChats_Calls: every call fits its tool, and whatever it needs stands in the conversation before it.
func TestToolChats_Calls(t *testing.T) {
	for _, generate := range []func(*rand.Rand) example{calls, toolChat} {
		numCalls := 0
		for _, e := range draws(4000, generate) {
			names := map[string]bool{}
			for _, tool := range e.tools {
				names[tool.Name] = true
			}
			if len(names) != len(e.tools) {
				t.Fatalf("two tools have one name: %v", names)
			}
			before := ""
			for _, m := range e.messages {
				for _, c := range m.ToolCalls {
					numCalls++
					for _, v := range checkCall(t, e.tools, c) {
						if text := fmt.Sprint(v); !strings.Contains(before, text) {
							t.Fatalf("%s %s: %s does not stand in %q", c.Name, c.Arguments, text, before)
						}
					}
				}
				before += m.Content + "\n"
			}
		}
		if numCalls < 4000 {
			t.Errorf("only %d calls in 4000 chats", numCalls)
		}
	}
}

// TestCallChat_RequestNamesTheTool: the words of the name stand in the request in their order, so it says what to
// call.
func TestCallChat_RequestNamesTheTool(t *testing.T) {
	for _, e := range draws(4000, callChat) {
		for i, m := range e.messages {
			for _, c := range m.ToolCalls {
				rest := strings.ToLower(e.messages[i-1].Content)
				for _, word := range wordsOf(c.Name) {
					_, after, ok := strings.Cut(rest, word)
					if !ok {
						t.Fatalf("%q does not ask for %s", e.messages[i-1].Content, c.Name)
					}
					rest = after
				}
			}
		}
	}
}

var capitals = regexp.MustCompile(`[A-Z]`)

// wordsOf are those of a name, getWeather or get_weather.
func wordsOf(name string) []string {
	return strings.Split(strings.ToLower(capitals.ReplaceAllString(name, "_$0")), "_")
}

// TestHeldOut_Unseen: the words that the measurement uses are in no chat of the training and in no text of the
// vocabulary.
func TestHeldOut_Unseen(t *testing.T) {
	unseen := map[string]bool{}
	for _, list := range [][]string{heldOut.verbs, heldOut.nouns, heldOut.adjectives, heldOut.people, heldOut.cities} {
		for _, word := range list {
			unseen[strings.ToLower(word)] = true
		}
	}
	letters := func(r rune) bool { return r < 'A' || r > 'z' || r > 'Z' && r < 'a' }
	for i, text := range corpus(3, 5000) {
		for _, word := range strings.FieldsFunc(text, letters) {
			if unseen[strings.ToLower(word)] {
				t.Fatalf("text %d has the held-out word %q: %q", i, word, text)
			}
		}
	}
	for _, c := range heldOutCalls(7, 1000) {
		checkCall(t, c.chat.tools, c.want)
		if last := c.chat.messages[len(c.chat.messages)-1]; last.Role != art.RoleUser {
			t.Fatalf("the last message is of %s", last.Role)
		}
	}
}

// TestChain_IDs: the id of the second call is one of those that the first returned.
func TestChain_IDs(t *testing.T) {
	for _, e := range draws(2000, trainingWords.chain) {
		var found art.Message
		for _, m := range e.messages {
			if m.Role == art.RoleTool && found.Content == "" {
				found = m
			}
			for _, c := range m.ToolCalls {
				if c.ID != "call_2" {
					continue
				}
				for _, v := range checkCall(t, e.tools, c) {
					if !strings.Contains(found.Content, fmt.Sprintf("%q", v)) {
						t.Fatalf("%s is not in %q", c.Arguments, found.Content)
					}
				}
			}
		}
	}
}

// TestTexts checks that the vocabulary is made of what the chat template writes.
func TestTexts(t *testing.T) {
	tok, template := trained(t)
	for _, e := range draws(500, generate) {
		ids, _, err := template.Target(e.messages, e.tools)
		if err != nil {
			t.Fatal(err)
		}
		rendered := tok.Decode(ids, false)
		for _, text := range e.texts() {
			for line := range strings.Lines(text) {
				if !strings.Contains(rendered, line) {
					t.Fatalf("the template does not write %q:\n%s", line, rendered)
				}
			}
		}
	}
}
