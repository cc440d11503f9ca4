package chat

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/goart-dev/art"
)

// edit has string parameters and a number.
var edit = art.Tool{Name: "edit", Parameters: json.RawMessage(`{"type": "object", "properties": {
	"path": {"type": "string"}, "old": {"type": "string"}, "new": {"$ref": "#/$defs/Text"}, "line": {"anyOf": [{"type": "integer"}, {"type": "null"}]}},
	"$defs": {"Text": {"type": "string"}}}`)}

var valueEnds = map[string]string{
	qwen3Coder: "</parameter>\n", seedOSS: "</parameter>\n", miniMaxM2: "</parameter>", deepSeekV32: "</｜DSML｜parameter>", glm: "</arg_value>",
}

// TestParse_ForgottenValueEnds: whichever end tags of values are missing, the call is the same, in any cuts.
func TestParse_ForgottenValueEnds(t *testing.T) {
	arguments := [][2]string{{"path", "a.py"}, {"old", "x = 1\n  y\n"}, {"line", "5"}, {"new", ""}}
	const want = `{"path": "a.py", "old": "x = 1\n  y\n", "line": 5, "new": ""}`
	for parser, write := range textFormats {
		format, end := smallFormat(t, parser, ""), valueEnds[parser]
		text := write("edit", arguments...)
		if parser == deepSeekV32 {
			text = strings.NewReplacer(`="line">`, `="line" string="false">`, `">`, `" string="true">`).Replace(text)
			text = strings.Replace(text, `invoke name="edit" string="true">`, `invoke name="edit">`, 1)
		}
		parts := strings.Split(text, end)
		for missing := range 1 << len(arguments) {
			reply := parts[0]
			for i, part := range parts[1:] {
				if missing>>i&1 == 0 {
					reply += end
				}
				reply += part
			}
			for _, after := range []string{"", "\n"} {
				for calls := range 3 {
					reply := withTokens(format, strings.Repeat(reply+after, calls+1))
					p := format.start(false, []art.Tool{edit})
					p.add(reply)
					_, err := p.close()
					if err != nil || len(p.message.ToolCalls) != calls+1 {
						t.Fatalf("%s: %q\n got %+v, %v", parser, reply, p.message, err)
					}
					for _, call := range p.message.ToolCalls {
						if call.Name != "edit" || call.Arguments != want {
							t.Fatalf("%s: %q\n got %s\nwant %s", parser, reply, call.Arguments, want)
						}
					}
				}
			}
			checkSplitsWith(t, format, []art.Tool{edit}, withTokens(format, reply))
		}
	}
}

// checkSplitsWith checks that the cuts of a reply do not matter.
func checkSplitsWith(t *testing.T, f *replyFormat, tools []art.Tool, text string) {
	t.Helper()
	read := func(early bool, pieces ...string) string {
		p := f.start(false, tools)
		p.early = early
		m, err := readDeltas(t, p, pieces...)
		return fmt.Sprintf("%+v, %s", m, err)
	}
	want := read(false, text)
	for _, early := range []bool{false, true} {
		for i := range text {
			if got := read(early, text[:i], text[i:]); got != want {
				t.Fatalf("%s, early %v, cut at %d of %q\n got %s\nwant %s", f.name, early, i, text, got, want)
			}
		}
		if got := read(early, strings.Split(text, "")...); got != want {
			t.Fatalf("%s, early %v, %q\n got %s\nwant %s", f.name, early, text, got, want)
		}
	}
}

// TestParse_ValuesMentionTags: a value that mentions tags stays whole where its end tag is there.
func TestParse_ValuesMentionTags(t *testing.T) {
	const open, end = "<tool_call><function=edit>", "</function></tool_call>"
	for _, c := range []struct{ name, text, want string }{
		{"the end of a call", "<parameter=path>a </function> b</parameter>", `{"path": "a </function> b"}`},
		{"the end of a section", "<parameter=path></function></tool_call></parameter>", `{"path": "</function></tool_call>"}`},
		{"the parameter itself", "<parameter=path>a<parameter=path>b</parameter>", `{"path": "a<parameter=path>b"}`},
		{"one that follows", "<parameter=path>a<parameter=old>b</parameter><parameter=old>c</parameter>", `{"path": "a<parameter=old>b", "old": "c"}`},
		{"one that was there", "<parameter=old>c</parameter><parameter=path>a<parameter=old>b</parameter>", `{"old": "c", "path": "a<parameter=old>b"}`},
		{"one that is not declared", "<parameter=path>a<parameter=x>b</parameter>", `{"path": "a<parameter=x>b"}`},
		{"the beginning of a tag", "<parameter=path>a<parameter=ol</parameter>", `{"path": "a<parameter=ol"}`},
	} {
		format := smallFormat(t, qwen3Coder, "")
		text := withTokens(format, open+c.text+end)
		m, err := readDeltas(t, format.start(false, []art.Tool{edit}), text)
		if err != "<nil>" || len(m.ToolCalls) != 1 || m.ToolCalls[0].Arguments != c.want {
			t.Errorf("%s: %q\n got %+v, %s\nwant %s", c.name, text, m, err, c.want)
		}
		checkSplitsWith(t, format, []art.Tool{edit}, text)
	}
}

// TestParse_ForgottenEndBeforeText: what ends a value without its tag is clear although more follows.
func TestParse_ForgottenEndBeforeText(t *testing.T) {
	for _, c := range []struct{ parser, text, content string }{
		{qwen3Coder, "a<tool_call>\n<function=edit>\n<parameter=path>\nb\n</function>\n</tool_call>\nDone.", "a\nDone."},
		{qwen3Coder, "<function=edit>\n<parameter=path>\nb\n</function>\n</tool_call>", ""},
		{seedOSS, "<seed:tool_call>\n<function=edit>\n<parameter=path>\nb</function>", ""},
		{miniMaxM2, "<minimax:tool_call><invoke name=\"edit\"><parameter name=\"path\">b</invoke></minimax:tool_call>Done.", "Done."},
		{glm, "a<tool_call>edit<arg_key>path</arg_key><arg_value>b</tool_call>\n", "a"},
	} {
		format := smallFormat(t, c.parser, "")
		text := withTokens(format, c.text)
		m, err := readDeltas(t, format.start(false, []art.Tool{edit}), text)
		if err != "<nil>" || len(m.ToolCalls) != 1 || m.ToolCalls[0].Arguments != `{"path": "b"}` || m.Content != c.content {
			t.Errorf("%s: %q: %+v, %s", c.parser, text, m, err)
		}
		checkSplitsWith(t, format, []art.Tool{edit}, text)
	}
}
