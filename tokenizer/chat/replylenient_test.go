package chat

import (
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/goart-dev/art"
)

// TestParse_Lenient: deviations from a format that models make, and that have only one possible meaning.
func TestParse_Lenient(t *testing.T) {
	call := func(i int, name, arguments string) art.ToolCall {
		return art.ToolCall{ID: callID(i), Name: name, Arguments: arguments}
	}
	f, g := call(0, "f", "{}"), call(1, "g", "{}")
	const hermesF, hermesG = `{"name": "f", "arguments": {}}`, `{"name": "g", "arguments": {}}`
	const llamaF, llamaG = `{"name": "f", "parameters": {}}`, `{"name": "g", "parameters": {}}`
	const deepSeekF = "<｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n```json\n{}\n```<｜tool▁call▁end｜>"
	for _, c := range []struct {
		name, parser, text, content string
		calls                       []art.ToolCall
	}{
		{"no end tag", hermes, "a\n<tool_call>\n" + hermesF + "\n", "a", []art.ToolCall{f}},
		{"no end tag before the next call", hermes, "<tool_call>" + hermesF + "<tool_call>" + hermesG + "</tool_call>", "", []art.ToolCall{f, g}},
		{"line break in a string", hermes, "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": \"x\n\ty\"}}</tool_call>", "", []art.ToolCall{call(0, "f", `{"a": "x\n\ty"}`)}},
		{"end tag in a string", hermes, `<tool_call>{"name": "f", "arguments": {"a": "\"</tool_call>"}}</tool_call>b`, "b", []art.ToolCall{call(0, "f", `{"a": "\"</tool_call>"}`)}},
		{"tags in a string", hermes, `<tool_call>{"name": "f", "arguments": {"a": "<tool_call></tool_call><tool_call>"}}</tool_call>`, "", []art.ToolCall{call(0, "f", `{"a": "<tool_call></tool_call><tool_call>"}`)}},
		{"several in a block", hermes, "<tool_call>\n" + hermesF + "\n" + hermesG + "\n</tool_call>", "", []art.ToolCall{f, g}},
		{"a list", hermes, "<tool_call>[" + hermesF + ", " + hermesG + "]</tool_call>", "", []art.ToolCall{f, g}},
		{"no semicolon", llama3JSON, llamaF + llamaG, "", []art.ToolCall{f, g}},
		{"a line each", llama3JSON, llamaF + "\n" + llamaG + "\n", "", []art.ToolCall{f, g}},
		{"a list", llama3JSON, "[" + llamaF + ", " + llamaG + "]", "", []art.ToolCall{f, g}},
		{"line break in a string", llama3JSON, "{\"name\": \"f\", \"parameters\": {\"a\": \"x\ny\"}}", "", []art.ToolCall{call(0, "f", `{"a": "x\ny"}`)}},
		{"no opening tag", qwen3Coder, "Now.\n<function=f>\n</function>\n</tool_call>", "Now.", []art.ToolCall{f}},
		{"no tags", qwen3Coder, "<function=f></function>", "", []art.ToolCall{f}},
		{"no end tag", qwen3Coder, "<tool_call><function=f></function>", "", []art.ToolCall{f}},
		{"several in a block", qwen3Coder, "<tool_call><function=f></function>\n<function=g></function></tool_call>", "", []art.ToolCall{f, g}},
		{"end tag in a value", qwen3Coder, "<tool_call><function=f><parameter=a></tool_call></parameter></function></tool_call>", "", []art.ToolCall{call(0, "f", `{"a": "</tool_call>"}`)}},
		{"end tag in a value", glm, "<tool_call>f<arg_key>a</arg_key><arg_value></tool_call></arg_value></tool_call>", "", []art.ToolCall{call(0, "f", `{"a": "</tool_call>"}`)}},
		{"no end of calls", deepSeek, "<｜tool▁calls▁begin｜>" + deepSeekF, "", []art.ToolCall{f}},
		{"end of a call in a string", deepSeek, "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>{\"a\": \"<｜tool▁call▁end｜>\"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>", "",
			[]art.ToolCall{call(0, "f", `{"a": "<｜tool▁call▁end｜>"}`)}},
		{"opening tag in a string", mistral, `[TOOL_CALLS][{"name": "f", "arguments": {"a": "[TOOL_CALLS]"}}]`, "",
			[]art.ToolCall{{ID: callID(0), Name: "f", Arguments: `{"a": "[TOOL_CALLS]"}`}}},
		{"no end of calls", kimiK2, "a<|tool_calls_section_begin|><|tool_call_begin|>f:0<|tool_call_argument_begin|> {} <|tool_call_end|>", "a", []art.ToolCall{{ID: "functions.f:0", Name: "f", Arguments: "{}"}}},
		{"end of a call in a string", kimiK2, "<|tool_calls_section_begin|><|tool_call_begin|>functions.a.b:12<|tool_call_argument_begin|>{\"a\": \"<|tool_call_end|>\"}<|tool_call_end|><|tool_calls_section_end|>", "",
			[]art.ToolCall{{ID: "functions.a.b:12", Name: "a.b", Arguments: `{"a": "<|tool_call_end|>"}`}}},
		{"repeated id", kimiK2, "<|tool_calls_section_begin|><|tool_call_begin|>f<|tool_call_argument_begin|>{}<|tool_call_end|><|tool_call_begin|>f<|tool_call_argument_begin|>{}<|tool_call_end|><|tool_calls_section_end|>", "",
			[]art.ToolCall{{ID: "functions.f:0", Name: "f", Arguments: "{}"}, {ID: "functions.f:1", Name: "f", Arguments: "{}"}}},
		{"no end tag", miniMaxM2, `<minimax:tool_call><invoke name="f"></invoke>`, "", []art.ToolCall{f}},
		{"end tag in a value", miniMaxM2, `<minimax:tool_call><invoke name="f"><parameter name="a"></minimax:tool_call></parameter></invoke></minimax:tool_call>`, "", []art.ToolCall{call(0, "f", `{"a": "</minimax:tool_call>"}`)}},
		{"a list of Python", miniMaxM2, `<minimax:tool_call><invoke name="get_weather"><parameter name="list">['a', None]</parameter></invoke></minimax:tool_call>`, "", []art.ToolCall{call(0, "get_weather", `{"list": ["a", null]}`)}},
		{"end tag in a value", deepSeekV32, `<｜DSML｜function_calls><｜DSML｜invoke name="f"><｜DSML｜parameter name="a" string="true"></｜DSML｜function_calls></｜DSML｜parameter></｜DSML｜invoke></｜DSML｜function_calls>`, "", []art.ToolCall{call(0, "f", `{"a": "</｜DSML｜function_calls>"}`)}},
		{"end tag in a string", functionGemma, `<start_function_call>call:f{a:<escape><end_function_call>"<escape>}<end_function_call>`, "", []art.ToolCall{call(0, "f", `{"a": "<end_function_call>\""}`)}},
		{"white space", functionGemma, "<start_function_call>call:f { a : [ 1 , None ] }<end_function_call>", "", []art.ToolCall{call(0, "f", `{"a": [1, null]}`)}},
		{"words without escapes", functionGemma, "<start_function_call>call:f{a:2026-01-15,b:[x y,\"z\"]}<end_function_call>", "", []art.ToolCall{call(0, "f", `{"a": "2026-01-15", "b": ["x y", "z"]}`)}},
		{"neither string nor JSON", deepSeekV32, `<｜DSML｜function_calls><｜DSML｜invoke name="f"><｜DSML｜parameter name="a" string="false">2026-01-15</｜DSML｜parameter></｜DSML｜invoke></｜DSML｜function_calls>`, "", []art.ToolCall{call(0, "f", `{"a": "2026-01-15"}`)}},
		{"a call without end before another", functionGemma, `<start_function_call>call:f{}<start_function_call>call:g{}<end_function_call>`, "", []art.ToolCall{f, g}},
		{"JSON", lfm2, `<|tool_call_start|>[{"name": "f", "arguments": {}}]<|tool_call_end|>`, "", []art.ToolCall{f}},
		{"no end tag", cohere, `<|START_ACTION|>[{"tool_name": "f", "parameters": {}}]`, "", []art.ToolCall{f}},
		{"recipient behind the channel", gptOSS, "<|channel|>commentary to=functions.f <|constrain|>json<|message|>{}<|call|>", "", []art.ToolCall{f}},
		{"recipient before the channel", gptOSS, " to=functions.f<|channel|>commentary json<|message|>{}", "", []art.ToolCall{f}},
		{"a preamble", gptOSS, "<|channel|>commentary<|message|>I look.<|end|><|start|>assistant<|channel|>commentary to=functions.f<|message|>{}<|call|>", "I look.", []art.ToolCall{f}},
		{"two parts", gptOSS, "<|channel|>final<|message|>a<|end|><|start|>assistant<|channel|>final<|message|>b<|return|>", "a\nb", nil},
		{"no end tag", pythonic, `<|python_start|>[f()]`, "", []art.ToolCall{f}},
	} {
		format := smallFormat(t, c.parser, "")
		text := withTokens(format, c.text)
		want := art.Message{Role: art.RoleAssistant, Content: c.content, ToolCalls: c.calls}
		if got, err := readPieces(t, format, false, text); err != "<nil>" || !reflect.DeepEqual(got, want) {
			t.Errorf("%s, %s: %q\n got %+v, %s\nwant %+v", c.parser, c.name, text, got, err, want)
		}
		checkSplits(t, format, false, text)
	}
}

// TestReply_Linear: eight times the text takes about eight times the work, not sixty-four, for any text in chunks of
// any size. Work is the bytes that are allocated or parsed as calls.
func TestReply_Linear(t *testing.T) {
	pieces := []string{
		" ", "\n", "a", `"`, "{", "[", "<", "\\", "</think>", "<think>", "<tool_call>", "</tool_call>", `<tool_call>"`, `<tool_call>{"</tool_call>`, "<tool_call></tool_call>",
		`<tool_call>["</tool_call>", `, "<function=", "<function=f></tool_call>", "<tool_call><function=f><parameter=a>", "<tool_call><function=f><parameter=a></tool_call>",
		"<parameter=a></parameter>", "<tool_call>f<arg_value>", "<tool_call>f<arg_value></tool_call>", `<tool_call>{"name": "f", "arguments": {}}</tool_call> `,
		`{"name": "f", "parameters": {}}`, "[TOOL_CALLS]", `[TOOL_CALLS]"`, "<｜tool▁calls▁begin｜>", "<｜tool▁call▁begin｜>f<｜tool▁sep｜>{}<｜tool▁call▁end｜>", "<|python_tag|>", "f(a=1), ", "<|message|>", "<|channel|>", "<|start|>assistant<|message|>a", "<|message|>a<|end|>", " to=f<|message|>{}<|call|>",
		"<|tool_call_begin|>f<|tool_call_argument_begin|>{}<|tool_call_end|>", `<invoke name="f">`, `<invoke name="f"></invoke>`, `<parameter name="`, `</parameter>`, "<｜DSML｜", `<｜DSML｜parameter name="`, "<escape>", "<start_function_call><escape><end_function_call>", "<start_function_call>call:f{a:<escape>", "a:[",
	}
	for _, f := range allFormats(t) {
		for _, piece := range pieces {
			for _, before := range []string{"", withoutTokens(f.calls.open)} {
				checkLinear(t, f, func(n int) string { return withTokens(f, before+strings.Repeat(piece, n/len(piece))) })
			}
		}
	}
}

func checkLinear(t *testing.T, f *replyFormat, text func(n int) string) {
	t.Helper()
	const n, times, limit = 500, 8, 20
	short, long := text(n), text(times*n)
	for _, size := range []int{1, times * n} {
		early := size == 1
		if ratio := readWork(f, long, size, early) / readWork(f, short, size, early); ratio >= limit {
			t.Errorf("%s, %.60q in pieces of %d: %d times the text takes %.0f times the work", f.name, short, size, times, ratio)
		}
	}
}

// readWork reads a text in chunks, with calls as they grow or not, and returns the work that it took.
func readWork(f *replyFormat, text string, size int, early bool) float64 {
	counted, work := *f, 0
	if parse := f.calls.parse; parse != nil {
		counted.calls.parse = func(section string, tools []art.Tool) ([]art.ToolCall, error) {
			work += len(section)
			return parse(section, tools)
		}
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	p := counted.start(false, nil)
	p.early = early
	for len(text) > 0 {
		n := min(size, len(text))
		p.add(text[:n])
		text = text[n:]
	}
	_, _ = p.close() // malformed calls do not matter here
	runtime.ReadMemStats(&after)
	return float64(work) + float64(after.TotalAlloc-before.TotalAlloc)
}
