package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/goart-dev/art"
)

// schema is what the definitions of tools hold.
type schema struct {
	Type       string
	Properties map[string]struct{ Type string }
	Required   []string
}

// readSchema reads the parameters of a tool and checks them.
func readSchema(t *testing.T, tool art.Tool) schema {
	t.Helper()
	var s schema
	if err := json.Unmarshal(tool.Parameters, &s); err != nil || s.Type != "object" || len(s.Properties) == 0 {
		t.Fatalf("%s: parameters %s: %v", tool.Name, tool.Parameters, err)
	}
	for _, name := range s.Required {
		if s.Properties[name].Type == "" {
			t.Fatalf("%s: %s is required and not there", tool.Name, name)
		}
	}
	return s
}

// TestToolChat_Calls checks each call against the tools that are offered and the request, and the answer against the result.
func TestToolChat_Calls(t *testing.T) {
	calls, places := map[string]int{}, map[int][]int{}
	for _, e := range draws(20_000, toolChat) {
		if len(e.tools) < 1 || len(e.tools) > 3 {
			t.Fatalf("%d tools", len(e.tools))
		}
		checkNames(t, e.tools)
		for i, m := range e.messages {
			for _, c := range m.ToolCalls {
				at := slices.IndexFunc(e.tools, func(tool art.Tool) bool { return tool.Name == c.Name })
				if at < 0 {
					t.Fatalf("%s is called and not offered", c.Name)
				}
				checkArguments(t, readSchema(t, e.tools[at]), c, e.messages[i-1].Content)
				checkResult(t, c, e.messages[i+1], e.messages[i+2])
				calls[kindOf(c.Name)]++
				count(places, len(e.tools), at, len(e.tools))
			}
		}
	}
	checkUniform(t, "place of the tool among two", places[2])
	if len(calls) != len(toolKinds)-1 || slices.Min(slices.Collect(maps.Values(calls))) < 1000 {
		t.Errorf("some kinds are seldom called: %v", calls)
	}
}

func checkNames(t *testing.T, tools []art.Tool) {
	t.Helper()
	names := map[string]bool{}
	for _, tool := range tools {
		readSchema(t, tool)
		names[tool.Name] = true
	}
	if len(names) != len(tools) {
		t.Fatalf("two tools have one name: %v", names)
	}
}

// checkArguments checks that a call has all parameters, of their types, with values that the request holds.
func checkArguments(t *testing.T, s schema, c art.ToolCall, request string) {
	t.Helper()
	var arguments map[string]any
	if err := json.Unmarshal([]byte(c.Arguments), &arguments); err != nil {
		t.Fatalf("%s %s: %v", c.Name, c.Arguments, err)
	}
	if len(arguments) != len(s.Properties) {
		t.Fatalf("%s %s: the parameters are %v", c.Name, c.Arguments, s.Properties)
	}
	for name, value := range arguments {
		want := map[bool]string{true: "integer", false: "string"}[isNumber(value)]
		if s.Properties[name].Type != want || !strings.Contains(request, fmt.Sprint(value)) {
			t.Fatalf("%s %s does not fit %q and %v", c.Name, c.Arguments, request, s.Properties)
		}
	}
}

func isNumber(v any) bool { _, ok := v.(float64); return ok }

// checkResult checks that the result answers the call, and that the assistant passes it on.
func checkResult(t *testing.T, c art.ToolCall, result, answer art.Message) {
	t.Helper()
	if result.ToolCallID != c.ID || c.ID == "" || answer.Role != art.RoleAssistant {
		t.Fatalf("call %+v is followed by %+v and %+v", c, result, answer)
	}
	if kindOf(c.Name) != "write" && !strings.Contains(answer.Content, result.Content) {
		t.Fatalf("%q is passed on as %q", result.Content, answer.Content)
	}
}

// kindOf is the first name of a tool's kind; invented names are one kind.
func kindOf(name string) string {
	for _, k := range toolKinds {
		if slices.Contains(k.names, name) {
			return k.names[0]
		}
	}
	return "invented"
}

// TestToolChat_Sums checks that the calculating tools get their numbers in the order of the request.
func TestToolChat_Sums(t *testing.T) {
	signs := map[string]string{"add": "+", "subtract": "-", "multiply": "*"}
	for _, e := range draws(20_000, toolChat) {
		for i, m := range e.messages {
			for _, c := range m.ToolCalls {
				sign := signs[kindOf(c.Name)]
				if sign == "" {
					continue
				}
				a := digits.FindAllString(strings.ReplaceAll(e.messages[i-1].Content, "-", " "), -1)
				b := digits.FindAllString(c.Arguments, -1)
				want := compute(number(t, a[0]), number(t, a[1]), sign)
				if !slices.Equal(a, b) || number(t, e.messages[i+1].Content) != want {
					t.Fatalf("%q: %s returns %s", e.messages[i-1].Content, c.Arguments, e.messages[i+1].Content)
				}
			}
		}
	}
}

// TestToolChat_WithoutCall checks that some chats need no tool, and that a tool is only refused where it is not offered.
func TestToolChat_WithoutCall(t *testing.T) {
	const n = 10_000
	refused, direct := 0, 0
	for _, e := range draws(n, toolChat) {
		called := slices.ContainsFunc(e.messages, func(m art.Message) bool { return len(m.ToolCalls) > 0 })
		if _, answer := lastPair(e); answer == noTool {
			refused++
		} else if !called {
			direct++
		}
	}
	if refused < n*8/100 || refused > n*12/100 || direct < n*8/100 || direct > n*12/100 {
		t.Errorf("of %d chats %d are refused and %d answered directly, want 10%% each", n, refused, direct)
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
