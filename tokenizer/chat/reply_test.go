package chat

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/tokenizer"
)

// withTemplate is a template of testdata with the small vocabulary, in which tokens are special tokens.
func withTemplate(t testing.TB, name string, tokens ...string) *Template {
	t.Helper()
	return withSource(t, string(read(t, "testdata/templates/"+name+".jinja")), tokens...)
}

func withSource(t testing.TB, source string, tokens ...string) *Template {
	t.Helper()
	var added []map[string]any
	for i, token := range append([]string{"<|endoftext|>", "<|im_start|>", "<|im_end|>"}, tokens...) {
		added = append(added, map[string]any{"id": 900 + i, "content": token, "special": true})
	}
	list, err := json.Marshal(added)
	must(t, err)
	config, err := json.Marshal(map[string]string{
		"bos_token": "<|endoftext|>", "eos_token": "<|im_end|>", "chat_template": source,
	})
	must(t, err)
	tok, err := tokenizer.New(patched(t, map[string]json.RawMessage{"added_tokens": list}), config)
	must(t, err)
	template, err := New(tok, "")
	must(t, err)
	return template
}

// replyCase is a template, and the kinds of replies that it can write.
type replyCase struct {
	template, parser string
	tokens           []string
	reasoning, mixed bool // it writes reasoning; content and calls in one reply
	single           bool // at most one call in a message
	ids              func(i int) string
}

var replyCases = []replyCase{
	{template: "qwen3_coder", parser: qwen3Coder, mixed: true, ids: callID},
	{template: "qwen3_coder", parser: qwen3Coder, tokens: []string{"<tool_call>", "</tool_call>"}, mixed: true, ids: callID},
	{template: "llama3_json", parser: llama3JSON, tokens: []string{"<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>", "<|python_tag|>"}, ids: callID},
	{template: "pythonic", parser: pythonic, tokens: []string{"<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"}, ids: callID},
	{template: "mistral", parser: mistral, tokens: []string{"[INST]", "[/INST]", "[TOOL_CALLS]"}, mixed: true, ids: mistralID},
	{template: "mistral_args", parser: mistral, tokens: []string{"[TOOL_CALLS]", "[ARGS]", "[CALL_ID]", "[THINK]", "[/THINK]"}, mixed: true, reasoning: true, ids: mistralID},
	{template: "deepseek", parser: deepSeek, tokens: []string{"</think>", "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>", deepSeekBegin, deepSeekSeparator, deepSeekEnd}, mixed: true, ids: callID},
	{template: "deepseek_fenced", parser: deepSeek, mixed: true, ids: callID},
	{template: "glm", parser: glm, mixed: true, reasoning: true, ids: callID},
	{template: "glm", parser: glm, tokens: append([]string{"<think>", "</think>", "<tool_call>", "</tool_call>"}, glmTags...), mixed: true, reasoning: true, ids: callID},
	{template: "cohere", parser: cohere, tokens: []string{"<|START_THINKING|>", "<|END_THINKING|>", "<|START_ACTION|>", "<|END_ACTION|>", "<|START_RESPONSE|>", "<|END_RESPONSE|>"}, reasoning: true, ids: callID},
	{template: "apriel", parser: apriel, mixed: true, ids: callID},
	{template: "apriel", parser: apriel, tokens: []string{"<tool_calls>", "</tool_calls>"}, mixed: true, ids: callID},
	{template: "functionary", parser: functionary, tokens: []string{"<|python_tag|>", "<|start_header_id|>", "<|end_header_id|>"}, ids: callID},
	{template: "granite", parser: granite, tokens: []string{"<|tool_call|>"}, mixed: true, ids: callID},
	{template: "lfm2", parser: lfm2, tokens: []string{"<|tool_call_start|>", "<|tool_call_end|>"}, mixed: true, ids: callID},
	{template: "seed_oss", parser: seedOSS, tokens: []string{"<seed:tool_call>", "</seed:tool_call>", "<seed:think>", "</seed:think>"}, mixed: true, reasoning: true, ids: callID},
	{template: "nemotron", parser: nemotron, tokens: []string{"<TOOLCALL>", "</TOOLCALL>"}, mixed: true, ids: callID},
	{template: "kimi", parser: kimiK2, tokens: []string{"<|tool_calls_section_begin|>", "<|tool_calls_section_end|>", kimiBegin, kimiSeparator, kimiEnd, "<think>", "</think>"}, mixed: true, reasoning: true, ids: kimiID},
	{template: "kimi_ids", parser: kimiK2, tokens: []string{"<|tool_calls_section_begin|>", "<|tool_calls_section_end|>", kimiBegin, kimiSeparator, kimiEnd}, mixed: true, ids: kimiID},
	{template: "minimax", parser: miniMaxM2, tokens: []string{"<minimax:tool_call>", "</minimax:tool_call>", "<think>", "</think>"}, mixed: true, reasoning: true, ids: callID},
	{template: "minimax", parser: miniMaxM2, mixed: true, reasoning: true, ids: callID},
	{template: "deepseek_v32", parser: deepSeekV32, tokens: []string{dsmlMarker, "<think>", "</think>"}, mixed: true, reasoning: true, ids: callID},
	{template: "deepseek_v32", parser: deepSeekV32, mixed: true, reasoning: true, ids: callID},
	{template: "functiongemma", parser: functionGemma, tokens: []string{"<start_function_call>", "<end_function_call>", gemmaEscape}, mixed: true, ids: callID},
	{template: "functiongemma", parser: functionGemma, mixed: true, ids: callID},
	{template: "channels", parser: gptOSS, tokens: harmonyTags, single: true, reasoning: true, ids: callID},
	{template: "thinking", parser: noTools, reasoning: true, ids: callID},
}

// kimiID is the id of the i-th call of a conversation.
func kimiID(i int) string { return fmt.Sprintf("functions.get_weather:%d", i) }

// schema has the types of the arguments of a replyCase.
var schema = art.Tool{Name: "get_weather", Parameters: json.RawMessage(`{"type": "object", "properties": {
	"text": {"type": "string"}, "n": {"type": "integer"}, "x": {"type": "number"}, "on": {"type": "boolean"},
	"none": {"type": ["string", "null"]}, "list": {"type": "array"}, "object": {"type": "object"}}}`)}

func (c *replyCase) arguments(rng *rand.Rand) string {
	values := [][2]string{
		{"text", quote(c.text(rng))}, {"n", fmt.Sprint(rng.IntN(2000) - 1000)}, {"x", "2.5"}, {"on", "true"}, {"none", "null"},
		{"list", `[1, "a b", false]`}, {"object", `{"k": {"z": [null, -1.5]}}`},
	}
	var members []string
	for _, v := range values {
		if rng.IntN(2) == 0 {
			members = append(members, quote(v[0])+": "+v[1])
		}
	}
	return "{" + strings.Join(members, ", ") + "}"
}

// plainText is a text that is not empty and has no white space at its ends: some formats drop that.
func plainText(rng *rand.Rand) string { return "a" + strings.TrimSpace(randomText(rng)) + "z" }

// text is a text. If the vocabulary has no tokens for tags, the text spells none: they would be taken for tags.
func (c *replyCase) text(rng *rand.Rand) string {
	if len(c.tokens) == 0 {
		return strings.NewReplacer("<", "", "[", "").Replace(plainText(rng))
	}
	return plainText(rng)
}

func (c *replyCase) message(rng *rand.Rand) art.Message {
	m := art.Message{Role: art.RoleAssistant}
	calls := 0
	if c.parser != noTools {
		calls = rng.IntN(3)
		if c.single {
			calls = min(calls, 1)
		}
	}
	if calls == 0 || c.mixed && rng.IntN(2) == 0 {
		m.Content = c.text(rng)
	}
	if c.reasoning && rng.IntN(2) == 0 {
		m.Reasoning = c.text(rng)
	}
	for i := range calls {
		m.ToolCalls = append(m.ToolCalls, art.ToolCall{ID: c.ids(i), Name: "get_weather", Arguments: c.arguments(rng)})
	}
	return m
}

// TestParse_InvertsTemplates: the ids that a template writes for a reply are parsed as that reply.
func TestParse_InvertsTemplates(t *testing.T) {
	for _, c := range replyCases {
		template, rng := withTemplate(t, c.template, c.tokens...), seeded(t)
		if template.Parser() != c.parser {
			t.Errorf("%s: parser %s, want %s", c.template, template.Parser(), c.parser)
		}
		tools := []art.Tool{schema}
		before := []art.Message{art.User("Hi")}
		prompt, err := template.Prompt(before, tools)
		must(t, err)
		for range 100 {
			m := c.message(rng)
			giveIDs(&m, c.parser, prompt)
			ids, mask, err := template.Target(append(slices.Clone(before), m), tools)
			must(t, err)
			got, err := template.Parse(prompt, masked(ids, mask), tools)
			early, earlyErr := streamed(template.Stream(prompt, tools), masked(ids, mask))
			if err != nil || !reflect.DeepEqual(got, m) || earlyErr != nil || !reflect.DeepEqual(early, m) {
				t.Fatalf("%s: %q\n  got %+v (%v)\nearly %+v (%v)\n want %+v",
					c.template, template.tok.Decode(masked(ids, mask), false), got, err, early, earlyErr, m)
			}
		}
	}
}

// streamed is what the deltas of a reply add up to.
func streamed(r *ReplyReader, ids []int32) (art.Message, error) {
	m := art.Message{Role: art.RoleAssistant}
	for _, id := range ids {
		r.Add(id).addTo(&m)
	}
	last, _, err := r.Close()
	last.addTo(&m)
	return m, err
}

// TestPrompt_ExtendsTemplates: a prompt is the beginning of the next one for every template that writes earlier replies
// the same way.
func TestPrompt_ExtendsTemplates(t *testing.T) {
	for _, c := range replyCases {
		template, rng := withTemplate(t, c.template, c.tokens...), seeded(t)
		tools := []art.Tool{schema}
		for range 15 {
			h := art.History{Messages: []art.Message{art.User("Hi")}}
			for range 4 {
				h.Add(sampled(t, template, &c, rng, h.Messages, tools), art.User(plainText(rng)))
			}
			breaks := h.Breaks()
			if forgets := c.template == "thinking"; forgets != (len(breaks) > 0) {
				t.Fatalf("%s: breaks %v in %+v", c.template, breaks, h.Messages)
			}
		}
	}
}

// sampled is a reply whose ids spell what the template writes, in other tokens.
func sampled(
	t *testing.T, template *Template, c *replyCase, rng *rand.Rand, before []art.Message, tools []art.Tool,
) art.Message {
	t.Helper()
	prompt, err := template.Prompt(before, tools)
	must(t, err)
	ids, mask, err := template.Target([]art.Message{art.User("Hi"), c.message(rng)}, tools)
	must(t, err)
	var single []int32
	for _, id := range masked(ids, mask) {
		if template.tok.IsSpecial(id) {
			single = append(single, id)
			continue
		}
		for _, b := range template.tok.TokenBytes(id) {
			single = append(single, byteID(template.tok, b))
		}
	}
	m, err := template.Parse(prompt, single, tools)
	must(t, err)
	m.Sample = &art.Sample{PromptIDs: prompt, IDs: single}
	return m
}

// replies are texts of all kinds, most of them malformed.
var replies = []string{
	"", "Hello", " \n", "\n\nHello\n\n", "<think>\nhm\n</think>\n\nHello", "<think>hm", " <think>\n\n</think>", "hm\n</think>\n\nHi", "</think>",
	"[THINK]a[/THINK]b", "<thinking>", "a<think>b</think>",
	"<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": 1}}\n</tool_call>",
	"Wait.\n<tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>\n\n<tool_call>{\"name\": \"g\", \"arguments\": 2}</tool_call>\n Done.\n",
	"<tool_call>{oops}</tool_call>x", "<tool_call><tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>", "<tool_call>{\"name\": \"f\"", "<tool_call", "a\n<tool_cal b",
	"<tool_call>\n<function=f>\n<parameter=a>\n1\n</parameter>\n</function>\n</tool_call>", "<tool_call><function=f></function></tool_call>",
	"<tool_call><function=f><parameter=a>1</function></tool_call>", "<tool_call><function=></function></tool_call>", "<tool_call><function=f>x</function></tool_call>",
	`{"name": "f", "parameters": {"a": [1, 2]}}`, `{"name": "f", "parameters": {}}; {"name": "g", "parameters": {}}`, `{"answer": 3}`, `{"name": "f"}`, `{"name": "f", `,
	` {"name": "f", "parameters": {}} x`, `<|python_tag|>{"name": "f", "parameters": {}}`, `<|python_tag|>search.call(query="a")`, `<|python_tag|>print(1)`, "{ not JSON",
	`[f(a=1, b="x\n\u00e9", c=[True, None, {'k': -1.5}]), g()]`, `[f(a=1]`, `[1, 2]`, `[f(a=b)]`, `[f(a=1), ]`, `[f(a=1)] x`, `<|python_start|>[f()]<|python_end|>!`, "[", "[f(",
	`[TOOL_CALLS][{"name": "f", "arguments": {"a": 1}, "id": "123456789"}]`, `[TOOL_CALLS][{"name": "f", "arguments": {}}, {"name": "g"}]`, `Hi[TOOL_CALLS]f[ARGS]{"a": 1}`,
	`[TOOL_CALLS]f[CALL_ID]abcdefghi[ARGS]{}[TOOL_CALLS]g[ARGS]{"b": "x"}`, `[TOOL_CALLS]f`, `[TOOL_CALLS]f[ARGS]{`, `[TOOL_CALLS]`, `[TOOL_CALLS][]`, `[TOOL_CALLS]{}`,
	"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>{\"a\": 1}<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>g\n```json\n{}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>x",
	"a<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁call▁end｜><｜tool▁calls▁end｜>", "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>{", "<｜tool▁calls▁begin｜><｜tool▁calls▁end｜>",
	"<tool_call>f</tool_call>", "b<tool_call>f\n<arg_key>a</arg_key>\n<arg_value>1</arg_value>\n</tool_call><tool_call>g<arg_key>a</arg_key></tool_call>", "<tool_call>f<arg_value>1</arg_value></tool_call>",
	`<|START_ACTION|>[{"tool_name": "f", "parameters": {}}, {"tool_name": "g", "parameters": {"a": "]"}}]<|END_ACTION|>`, `<|START_ACTION|>[]<|END_ACTION|>`, `<|START_ACTION|>[{"tool_name": 1}]<|END_ACTION|>`,
	"<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": \"x\ny\t</tool_call><tool_call>\\\"\"}}</tool_call>z", "<tool_call>{\"name\": \"f</tool_call>\n<tool_call>{\"</tool_call>",
	"<tool_call>[{\"name\": \"f\", \"arguments\": {}}, {\"name\": \"g\", \"arguments\": {}}]\n{\"name\": \"h\", \"arguments\": 1}<tool_call>{\"name\": \"i\", \"arguments\": {}}",
	"a <function=f>\n<parameter=text></tool_call><tool_call>\n</parameter></function>\n</tool_call> b", "<function=f><parameter=a></tool_call><parameter=b></tool_call>x",
	`{"name": "f", "parameters": {}}{"name": "g", "parameters": {}}`, `[{"name": "f", "parameters": {}}, {"name": "g", "parameters": {}}]`, `["name"]`,
	"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>{\"a\": \"<｜tool▁call▁end｜>\"}<｜tool▁call▁end｜>", "<tool_call>f<arg_key>a</arg_key><arg_value></tool_call></arg_value></tool_call>",
	`<tool_calls>[{"name": "f", "arguments": {"a": "</tool_calls>"}, "id": "x"}]</tool_calls>`, `<TOOLCALL>[{"name": "f", "arguments": {}}]</TOOLCALL>a`,
	`a<|tool_call|>[{"name": "f", "arguments": {"a": "<|tool_call|>"}}]`, `<function=f>{"a": "</function>"}</function><function=g>{`, `<|tool_call_start|>[f(a='<|tool_call_end|>')]<|tool_call_end|>`,
	"<seed:tool_call><function=f><parameter=a>1</parameter></function></seed:tool_call>",
	"<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>It is 5<|return|>", "<|channel|>final<|message|>a<|end|><|start|>assistant<|channel|>final<|message|>\nb",
	"<|channel|>commentary to=functions.f <|constrain|>json<|message|>{\"a\": 1}<|call|>", " to=functions.f<|channel|>commentary json<|message|>{<|call|>", "<|channel|>final", "<|message|>a<|start|>user<|message|>b", " to=f<|message|>[1]",
	"a<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{\"a\": \"<|tool_call_end|>\"}<|tool_call_end|>\n<|tool_call_begin|>functions.g:1<|tool_call_argument_begin|>{}<|tool_call_end|><|tool_calls_section_end|>b",
	"<|tool_calls_section_begin|><|tool_call_begin|>f<|tool_call_argument_begin|>{<|tool_call_end|>", "<|tool_calls_section_begin|><|tool_calls_section_end|>",
	"<minimax:tool_call>\n<invoke name=\"f\">\n<parameter name=\"a\">\n</minimax:tool_call></parameter>\n</invoke>\n<invoke name=\"g\">\n</invoke>\n</minimax:tool_call>b", "<minimax:tool_call><invoke name=\"f\"><parameter name=\"a\">1</invoke></minimax:tool_call>",
	"<minimax:tool_call><invoke name=\"\"></invoke></minimax:tool_call>", "a<minimax:tool_cal", "<minimax:tool_call><parameter name=\"\">",
	"\n\n<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"f\">\n<｜DSML｜parameter name=\"a\" string=\"true\"></｜DSML｜function_calls></｜DSML｜parameter><｜DSML｜parameter name=\"b\" string=\"false\">[1]</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>c",
	"<｜DSML｜function_calls><｜DSML｜invoke name=\"f\"><｜DSML｜parameter name=\"a\">1</｜DSML｜parameter></｜DSML｜invoke></｜DSML｜function_calls>", "<｜DSML｜invoke name=\"f\">", "<｜DSML｜function_calls><｜DSML｜parameter name=",
	"<start_function_call>call:f{a:<escape><end_function_call>}<escape>,b:{c:[1,-2.5,true,None],<escape>d e<escape>:{}}}<end_function_call><start_function_call>call:g{}<end_function_call>a", "<start_function_call>call:f{a:<escape>b}<end_function_call>c<start_function_call>call:g{}<end_function_call>",
	"<start_function_call>call:f{a:b}<end_function_call>", "<start_function_call>f{}<end_function_call>", "<start_function_call>call:f{a:1,a:2}<end_function_call>", "<start_function_call>call:f{a:[1,<escape>", "<start_function_call>call:{}<end_function_call>",
	`<|tool_call_start|>[{"name": "f", "arguments": {}}]<|tool_call_end|>`,
	"<tool_call><function=edit><parameter=path>a.py\n<parameter=old>x</functio></parameter>\n<parameter=line>3.0\n</function></tool_call>", "<tool_call><function=edit><parameter=path>a</function><function=edit></function></tool_call>b",
	"<minimax:tool_call><invoke name=\"edit\"><parameter name=\"line\">x<parameter name=\"new\">{</invoke>\n<invoke name=\"f\"></invoke></minimax:tool_call>", "<seed:tool_call><function=edit><parameter=path>a<parameter=line>5",
	"<tool_call>edit<arg_key>line</arg_key><arg_value>null<arg_key>old</arg_key><arg_value>a\n</tool_call>\n<tool_call>edit<arg_key>path</arg_key><arg_value></tool_call>",
	"<think>hm\n<tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>\n", "hm <tool_call> or\n<tool_call>f</tool_call><tool_call>edit<arg_key>path</arg_key><arg_value>a</tool_call>", "<think><tool_call><function=f></function></tool_call> a",
	"日本<tool_call>é", "{\"name\": \"f\", \"parameters\": {\"é\": \"😀\"}}",
}

func allFormats(t testing.TB) []*replyFormat {
	var out []*replyFormat
	for _, parser := range Parsers() {
		out = append(out, smallFormat(t, parser, "</think>"))
	}
	return append(out, smallFormat(t, mistral, "[/THINK]"), smallFormat(t, noTools, ""))
}

// readPieces reads a reply in pieces, and checks that the deltas add up to the message.
func readPieces(t *testing.T, f *replyFormat, thinking bool, pieces ...string) (art.Message, string) {
	t.Helper()
	return readDeltas(t, f.start(thinking, []art.Tool{schema, edit}), pieces...)
}

func readDeltas(t *testing.T, p *replyParser, pieces ...string) (art.Message, string) {
	t.Helper()
	sum := art.Message{Role: art.RoleAssistant}
	take := func(d Delta) { d.addTo(&sum) }
	for _, piece := range pieces {
		take(p.add(piece))
	}
	last, err := p.close()
	take(last)
	if !reflect.DeepEqual(sum, p.message) {
		t.Fatalf("%s, pieces %q:\n    deltas %+v\nmessage %+v", p.format.name, pieces, sum, p.message)
	}
	return p.message, fmt.Sprint(err)
}

// checkSplits reads a reply cut in two at each position, and character by character. Calls that are given while they
// grow are those that are given as a whole, unless some are malformed.
func checkSplits(t *testing.T, f *replyFormat, thinking bool, text string) {
	t.Helper()
	for _, ended := range []bool{false, true}[:1+boolInt(thinking || strings.Contains(text, f.thinkOpen))] {
		checkSplitsOf(t, f, thinking, ended, text)
	}
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// checkSplitsOf is that of a reply after which the model has ended its turn, or has not.
func checkSplitsOf(t *testing.T, f *replyFormat, thinking, ended bool, text string) {
	t.Helper()
	read := func(early bool, pieces ...string) (art.Message, string) {
		p := f.start(thinking, []art.Tool{schema, edit})
		p.early, p.ended = early, ended
		return readDeltas(t, p, pieces...)
	}
	want, wantErr := read(false, text)
	checkKept(t, f, text, &want)
	early, earlyErr := read(true, text)
	other := strings.Contains(earlyErr, errOtherCall.Error())
	if !other && (earlyErr == "<nil>") != (wantErr == "<nil>") || earlyErr == "<nil>" && !reflect.DeepEqual(early, want) {
		t.Fatalf("%s, %q:\nearly %+v, %s\nwhole %+v, %s", f.name, text, early, earlyErr, want, wantErr)
	}
	check := func(pieces ...string) {
		if got, err := read(false, pieces...); !reflect.DeepEqual(got, want) || err != wantErr {
			t.Fatalf("%s, pieces %q:\n got %+v, %s\nwant %+v, %s", f.name, pieces, got, err, want, wantErr)
		}
		if got, err := read(true, pieces...); !reflect.DeepEqual(got, early) || err != earlyErr {
			t.Fatalf("%s, early, pieces %q:\n got %+v, %s\nwant %+v, %s", f.name, pieces, got, err, early, earlyErr)
		}
	}
	for i := range text {
		check(text[:i], text[i:])
	}
	check(strings.Split(text, "")...)
}

// checkKept checks that a reply without calls is its text, apart from white space and the tags around reasoning.
func checkKept(t *testing.T, f *replyFormat, text string, m *art.Message) {
	t.Helper()
	if len(m.ToolCalls) > 0 || f.calls.harmony {
		return
	}
	kept := func(s string) string { return strings.Join(strings.Fields(s), "") }
	all, got := kept(withoutTokens(text)), kept(m.Reasoning+m.Content)
	open, end := withoutTokens(f.thinkOpen), withoutTokens(f.thinkClose)
	for _, all := range []string{all, strings.TrimPrefix(all, open)} {
		for _, all := range []string{all, strings.Replace(all, end, "", 1)} {
			if got == all {
				return
			}
		}
	}
	t.Fatalf("%s, %q: got %q, %q", f.name, text, m.Reasoning, m.Content)
}

func TestReply_EverySplit(t *testing.T) {
	for _, f := range allFormats(t) {
		for _, text := range replies {
			for _, tags := range slices.Compact([]string{text, withTokens(f, text)}) {
				checkSplits(t, f, false, tags)
				checkSplits(t, f, true, tags)
			}
		}
	}
}

// TestReply_Truncated: a reply that is truncated at any byte has no calls that the whole one does not have, provided
// that the whole one is well-formed.
func TestReply_Truncated(t *testing.T) {
	cut := append(slices.Clone(replies),
		`<tool_call>{"name": "f", "arguments": {"a": "}{\"</tool_call", "b": {"c": [{}, "]"]}}}</tool_call> and <tool_call>{"name": "g", "arguments": {}}</tool_call>`,
		`<think>I may call <tool_call>{"name": "f", "arguments": {}}</tool_call></think>No.`,
		`[f(a={"b": "),]"}, c='it\'s'), g(d=[(1)])]`, `[TOOL_CALLS]f[ARGS]{"a": "[TOOL_CALL"}[TOOL_CALLS]g[ARGS]{}`,
		`{"name": "f", "parameters": {"a": "};{"}}; {"name": "g", "parameters": {}}`)
	for _, f := range allFormats(t) {
		for _, text := range cut {
			for _, text := range slices.Compact([]string{text, withTokens(f, text)}) {
				whole, err := readPieces(t, f, false, text)
				for n := range len(text) {
					if close := f.calls.close; f.calls.values.last && strings.HasSuffix(strings.TrimSpace(text[:n]), close) {
						continue // the value of an argument may end here
					}
					part, _ := readPieces(t, f, false, text[:n])
					if err == "<nil>" && (len(part.ToolCalls) > len(whole.ToolCalls) ||
						!slices.EqualFunc(part.ToolCalls, whole.ToolCalls[:len(part.ToolCalls)], sameCall)) {
						t.Errorf("%s: %q has the calls %+v, whole %+v", f.name, text[:n], part.ToolCalls, whole.ToolCalls)
					}
				}
			}
		}
	}
}

func sameCall(a, b art.ToolCall) bool { return reflect.DeepEqual(a, b) }

// withTokens returns a text in which tags are tokens, if the format has tokens for them.
func withTokens(f *replyFormat, text string) string {
	for _, tag := range f.tags {
		text = strings.ReplaceAll(text, withoutTokens(tag), tag)
	}
	return text
}

func FuzzReply(f *testing.F) {
	formats := allFormats(f)
	for i, text := range replies {
		f.Add(text, uint8(i), i%2 == 0)
	}
	f.Fuzz(func(t *testing.T, text string, which uint8, thinking bool) {
		if len(text) > 300 {
			return
		}
		format := formats[int(which)%len(formats)]
		checkSplits(t, format, thinking, withTokens(format, strings.ToValidUTF8(text, "")))
	})
}

// TestParse_Malformed: the error says what is wrong with a call, and its text is content.
func TestParse_Malformed(t *testing.T) {
	for _, c := range []struct{ parser, text, content, want string }{
		{hermes, `Hm. <tool_call>{"name": "f"}</tool_call>`, `Hm. <tool_call>{"name": "f"}</tool_call>`, `it has no "arguments"`},
		{hermes, `<tool_call>{"name": 1, "arguments": {}}</tool_call>`, `<tool_call>{"name": 1, "arguments": {}}</tool_call>`, "its name is 1"},
		{hermes, `<tool_call>{"name": "f", "arguments": {}`, `<tool_call>{"name": "f", "arguments": {}`, "not ended by </tool_call>"},
		{hermes, `<tool_call>{"name": "f", "arguments": {}} so`, `<tool_call>{"name": "f", "arguments": {}} so`, "not ended by </tool_call>"},
		{hermes, `<tool_call>{"name": "f</tool_call> a`, `<tool_call>{"name": "f</tool_call> a`, "unexpected end"},
		{hermes, `<tool_call>[]</tool_call>`, `<tool_call>[]</tool_call>`, "no call"},
		{qwen3Coder, `Write <function=f> first.`, `Write <function=f> first.`, ""},
		{qwen3Coder, `<function=f>a</function>`, `<function=f>a</function>`, "expected <parameter=key>"},
		{glm, "<tool_call>f<arg_key>a</arg_key><arg_value>1</arg_value>", "<tool_call>f<arg_key>a</arg_key><arg_value>1</arg_value>", "not ended by </tool_call>"},
		{hermes, `<tool_call>f()</tool_call>`, `<tool_call>f()</tool_call>`, "invalid character"},
		{hermes, `<tool_call>null</tool_call>`, `<tool_call>null</tool_call>`, "null"},
		{qwen3Coder, `<tool_call><function=f><parameter=a>1</parameter><parameter=a>1</parameter></function></tool_call>`, `<tool_call><function=f><parameter=a>1</parameter><parameter=a>1</parameter></function></tool_call>`, "is repeated"},
		{qwen3Coder, `<tool_call><function=f><parameter=a>1`, `<tool_call><function=f><parameter=a>1`, "not ended by </tool_call>"},
		{qwen3Coder, `<tool_call><function=f><parameter=a>1</function>b</tool_call>`, `<tool_call><function=f><parameter=a>1</function>b</tool_call>`, "not ended by </parameter>"},
		{glm, "<tool_call>f<arg_key>a</arg_key><arg_value></tool_call><tool_call>x</arg_value>", "<tool_call>f<arg_key>a</arg_key><arg_value></tool_call><tool_call>x</arg_value>", "not ended by </tool_call>"},
		{glm, "<tool_call>f<arg_key>a</arg_key><arg_value>1</tool_call>b", "<tool_call>f<arg_key>a</arg_key><arg_value>1</tool_call>b", "not ended by </tool_call>"},
		{llama3JSON, `{"name": "f", "parameters": {}`, `{"name": "f", "parameters": {}`, "unexpected"},
		{llama3JSON, `{"name": "f"}`, `{"name": "f"}`, `it has no "parameters"`},
		{llama3JSON, `{"answer": 3}`, `{"answer": 3}`, ""},
		{llama3JSON, `<|python_tag|>print(1)`, `<|python_tag|>print(1)`, "expected a name"},
		{pythonic, `[f(a=b)]`, `[f(a=b)]`, "is not a literal"},
		{pythonic, `[1, 2]`, `[1, 2]`, ""},
		{mistral, `[TOOL_CALLS]f`, `[TOOL_CALLS]f`, "[ARGS]"},
		{mistral, `[TOOL_CALLS][{"name": "f"}]`, `[TOOL_CALLS][{"name": "f"}]`, `call 0: it has no "arguments"`},
		{deepSeek, "<｜tool▁calls▁begin｜>f<｜tool▁calls▁end｜>", "<｜tool▁calls▁begin｜>f<｜tool▁calls▁end｜>", "expected <｜tool▁call▁begin｜>"},
		{deepSeek, "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>{}<｜tool▁calls▁end｜>", "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>{}<｜tool▁calls▁end｜>", "call 0: it is not ended"},
		{deepSeek, "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>{<｜tool▁call▁end｜><｜tool▁calls▁end｜>", "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>{<｜tool▁call▁end｜><｜tool▁calls▁end｜>", "not JSON"},
		{deepSeek, "<｜tool▁calls▁begin｜><｜tool▁calls▁end｜>", "<｜tool▁calls▁begin｜><｜tool▁calls▁end｜>", "no call"},
		{glm, "<tool_call></tool_call>", "<tool_call></tool_call>", "expected a name"},
		{glm, "<tool_call>{\"name\": \"f\"}</tool_call>", "<tool_call>{\"name\": \"f\"}</tool_call>", "expected a name"},
		{glm, "<tool_call>f<arg_key>a</arg_key></tool_call>", "<tool_call>f<arg_key>a</arg_key></tool_call>", "has no value"},
		{kimiK2, "<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0<|tool_call_end|><|tool_calls_section_end|>", "<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0<|tool_call_end|><|tool_calls_section_end|>", "call 0: it has no <|tool_call_argument_begin|>"},
		{kimiK2, "<|tool_calls_section_begin|><|tool_call_begin|>functions.:0<|tool_call_argument_begin|>{}<|tool_call_end|><|tool_calls_section_end|>", "<|tool_calls_section_begin|><|tool_call_begin|>functions.:0<|tool_call_argument_begin|>{}<|tool_call_end|><|tool_calls_section_end|>", "call 0: it has no name"},
		{kimiK2, "<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{", "<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{", "not ended by <|tool_calls_section_end|>"},
		{miniMaxM2, `<minimax:tool_call><invoke name="f">a</invoke></minimax:tool_call>`, `<minimax:tool_call><invoke name="f">a</invoke></minimax:tool_call>`, `expected <parameter name="key">`},
		{miniMaxM2, `<minimax:tool_call><invoke name="f"></minimax:tool_call>`, `<minimax:tool_call><invoke name="f"></minimax:tool_call>`, "it does not end with </invoke>"},
		{functionGemma, `<start_function_call>call:f{a:b{}<end_function_call>`, `<start_function_call>call:f{a:b{}<end_function_call>`, `"b{" is not a value`},
		{functionGemma, `<start_function_call>call:f{a:<escape>b}<end_function_call>`, `<start_function_call>call:f{a:<escape>b}<end_function_call>`, "not ended by <escape>"},
		{functionGemma, `<start_function_call>call:f{a:1,a:2}<end_function_call>`, `<start_function_call>call:f{a:1,a:2}<end_function_call>`, "the argument a: it is repeated"},
		{functionGemma, `<start_function_call>f{}<end_function_call>`, `<start_function_call>f{}<end_function_call>`, `expected "call:"`},
		{cohere, `<|START_ACTION|>[{"tool_name": "f"}]<|END_ACTION|>`, `<|START_ACTION|>[{"tool_name": "f"}]<|END_ACTION|>`, `call 0: it has no "parameters"`},
		{cohere, `<|START_ACTION|>[]<|END_ACTION|>`, `<|START_ACTION|>[]<|END_ACTION|>`, "no call"},
		{apriel, `<tool_calls>[{"name": "f"}]</tool_calls>`, `<tool_calls>[{"name": "f"}]</tool_calls>`, `call 0: it has no "arguments"`},
		{functionary, `<function=f>{</function>`, `<function=f>{</function>`, "not JSON"},
		{functionary, `<function=>{}</function>`, `<function=>{}</function>`, "expected a name and >"},
		{functionary, `<function=f>{}`, `<function=f>{}`, "not ended by </function>"},
		{granite, `<|tool_call|>none`, `<|tool_call|>none`, "invalid character"},
		{gptOSS, `<|channel|>commentary to=functions.f<|message|>{<|call|>`, `<|channel|>commentary to=functions.f<|message|>{`, "not JSON"},
		{gptOSS, `<|channel|>final`, `<|channel|>final`, "it has no <|message|>"},
		{gptOSS, `Hello`, `Hello`, ""},
		{noTools, `<tool_call>{}</tool_call>`, `<tool_call>{}</tool_call>`, ""},
	} {
		p := smallFormat(t, c.parser, "").start(false, []art.Tool{schema})
		p.add(withTokens(p.format, c.text))
		_, err := p.close()
		if p.message.Content != c.content || len(p.message.ToolCalls) > 0 {
			t.Errorf("%s %q: %+v", c.parser, c.text, p.message)
		}
		var malformed *MalformedCall
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s %q: error %v", c.parser, c.text, err)
		case c.want != "" && (!errors.As(err, &malformed) || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s %q: error %v does not say %q", c.parser, c.text, err, c.want)
		}
	}
}

// addTo adds a delta to a message that the deltas before it made.
func (d Delta) addTo(m *art.Message) {
	m.Reasoning += d.Reasoning
	m.Content += d.Content
	for _, c := range d.ToolCalls {
		if c.Index == len(m.ToolCalls) {
			m.ToolCalls = append(m.ToolCalls, art.ToolCall{ID: c.ID, Name: c.Name})
		}
		m.ToolCalls[c.Index].Arguments += c.Arguments
	}
}
