package chat

import (
	"strings"
	"testing"

	"github.com/goart-dev/art"
)

// twoCalls is a message with two calls, and their results in the other order. Neither result has a name.
func twoCalls() []art.Message {
	call := func(id, name string) art.ToolCall { return art.ToolCall{ID: id, Name: name, Arguments: "{}"} }
	return []art.Message{
		art.User("a"),
		{Role: art.RoleAssistant, ToolCalls: []art.ToolCall{call("x", "f"), call("functions.g:7", "g")}},
		art.ToolResult("functions.g:7", "1"), art.ToolResult("x", "2"),
	}
}

// TestText_ResultNames: a template that fails on results without a name gets that of the called function, and no other
// template does.
func TestText_ResultNames(t *testing.T) {
	got := withTemplate(t, "functiongemma").mustText(t, twoCalls(), nil, Whole)
	want := "<start_function_response>response:g{value:<escape>1<escape>}<end_function_response>" +
		"<start_function_response>response:f{value:<escape>2<escape>}<end_function_response>"
	if !strings.HasSuffix(got, want) {
		t.Errorf("%q does not end with %q", got, want)
	}
	names := withSource(t, "{% for m in messages %}{{ m.role ~ (m.name or '') ~ m.content }}{% endfor %}")
	if got := names.mustText(t, twoCalls()[2:], nil, Whole); got != "tool1tool2" {
		t.Errorf("%q", got)
	}
}

// TestText_NamedIDs: Kimi K2's template writes ids in place of names, so ids name the function; those that do stay, and
// results have the id of their call.
func TestText_NamedIDs(t *testing.T) {
	got := withTemplate(t, "kimi_ids").mustText(t, append(twoCalls(), twoCalls()...), nil, Whole)
	const begin, end = "<|tool_call_begin|>", "<|tool_call_argument_begin|>{}<|tool_call_end|>"
	for i, first := range []string{"functions.f:0", "functions.f:2"} {
		calls := begin + first + end + begin + "functions.g:7" + end
		results := "## Return of functions.g:7\n1<|im_end|><|im_start|>tool\n## Return of " + first + "\n2"
		if !strings.Contains(got, calls) || !strings.Contains(got, results) {
			t.Errorf("conversation %d: neither %q nor %q may be missing in %q", i, calls, results, got)
		}
	}
}
