package chat

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/dev/tokentest"
	"github.com/goart-dev/art/tokenizer"
)

// parse reads a reply, and ignores malformed calls.
func parse(template *Template, ids []int32) art.Message {
	m, _ := template.Parse(nil, ids, nil)
	return m
}

func newTemplate(t testing.TB) *Template {
	t.Helper()
	template, err := New(small(t), "")
	must(t, err)
	return template
}

var weather = art.Tool{Name: "get_weather", Description: `Weather "now" & <later> in °C`,
	Parameters: json.RawMessage(`{"type":"object", ` +
		`"properties":{"city":{"type":"string","description":"a:b, c\\\", d"},"days":{"enum":[1,2]}},"required":["city"]}`)}

func TestPrompt_Text(t *testing.T) {
	template := newTemplate(t)
	call := art.ToolCall{ID: "call_0", Name: "get_weather", Arguments: `{"city": "Paris"}`}
	for _, c := range []struct {
		name     string
		messages []art.Message
		tools    []art.Tool
		want     string
	}{
		{"nothing", nil, nil, "<|im_start|>assistant\n"},
		{"plain", []art.Message{art.System("Be kind."), art.User("Hi\n"), art.Assistant("Hello!"), {Role: art.RoleDeveloper, Content: "x"}}, nil,
			"<|im_start|>system\nBe kind.<|im_end|>\n<|im_start|>user\nHi\n<|im_end|>\n<|im_start|>assistant\nHello!<|im_end|>\n" +
				"<|im_start|>system\nx<|im_end|>\n<|im_start|>assistant\n"},
		{"tools", []art.Message{art.System("Be kind."), art.User("Weather?"), {Role: art.RoleAssistant, Reasoning: "hm", Content: "Let me see.", ToolCalls: []art.ToolCall{call, call}},
			art.ToolResult("call_0", "sun"), art.ToolResult("call_1", "rain")}, []art.Tool{weather},
			"<|im_start|>system\nBe kind.\n\n# Tools\n\nThese functions can be called. Each line describes one of them in JSON:\n<tools>\n" +
				`{"type": "function", "function": {"name": "get_weather", "description": "Weather \"now\" & <later> in °C", "parameters": ` +
				`{"type": "object", "properties": {"city": {"type": "string", "description": "a:b, c\\\", d"}, "days": {"enum": [1, 2]}}, "required": ["city"]}}}` +
				"\n</tools>\n\nTo call a function, write its name and its arguments as one JSON object between tags, once for each call:\n" +
				"<tool_call>\n{\"name\": \"function\", \"arguments\": {\"parameter\": \"value\"}}\n</tool_call><|im_end|>\n" +
				"<|im_start|>user\nWeather?<|im_end|>\n<|im_start|>assistant\n<think>\nhm\n</think>\n\nLet me see.\n" +
				"<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\"}}\n</tool_call>\n" +
				"<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\"}}\n</tool_call><|im_end|>\n" +
				"<|im_start|>user\n<tool_response>\nsun\n</tool_response>\n<tool_response>\nrain\n</tool_response><|im_end|>\n<|im_start|>assistant\n"},
	} {
		ids, err := template.Prompt(c.messages, c.tools)
		must(t, err)
		if got := template.tok.Decode(ids, false); got != c.want {
			t.Errorf("%s:\n got %q\nwant %q", c.name, got, c.want)
		}
		// If no reply starts with white space, the ids are those of the whole text: what models were trained on.
		if whole := template.tok.Encode(c.want, false); !slices.Equal(ids, whole) {
			t.Errorf("%s: ids\n got %v\nwant %v", c.name, ids, whole)
		}
	}
}

func TestPrompt_Errors(t *testing.T) {
	template := newTemplate(t)
	for _, c := range []struct {
		messages []art.Message
		tools    []art.Tool
		want     string
	}{
		{[]art.Message{art.User("a"), {Role: "robot"}}, nil, `message 1: role "robot"`},
		{[]art.Message{{Role: art.RoleUser, Sample: &art.Sample{}}}, nil, "Sample"},
		{[]art.Message{{Role: art.RoleAssistant, ToolCalls: []art.ToolCall{{}}}}, nil, "tool call 0"},
		{nil, []art.Tool{{}}, "tool 0"},
		{[]art.Message{art.System("a"), {Role: "robot"}}, []art.Tool{weather}, `message 1: role "robot"`},
		{nil, []art.Tool{weather, {Name: "f", Parameters: json.RawMessage(`{`)}}, "tool 1"},
	} {
		for name, err := range map[string]error{
			"Prompt": promptError(template, c.messages, c.tools), "Target": targetError(template, c.messages, c.tools),
		} {
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: error %v does not say %q", name, err, c.want)
			}
		}
	}
}

func promptError(template *Template, messages []art.Message, tools []art.Tool) error {
	_, err := template.Prompt(messages, tools)
	return err
}

func targetError(template *Template, messages []art.Message, tools []art.Tool) error {
	_, _, err := template.Target(messages, tools)
	return err
}

func TestTemplate_Detect(t *testing.T) {
	file := vocabularyFile(t)
	plain := patched(t, map[string]json.RawMessage{"added_tokens": json.RawMessage(`[]`)})
	for _, c := range []struct {
		file         []byte
		config, name string
		want         string // of the error; "" for none
	}{
		{file, `{}`, "", ""},
		{file, `{"chat_template": "[INST]"}`, ChatML, ""},
		{plain, `{}`, "", "no token <|im_start|>"},
		{plain, `{}`, ChatML, "no token <|im_start|>"},
		{file, `{}`, "llama", `"llama" is not known`},
	} {
		tok, err := tokenizer.New(c.file, []byte(c.config))
		must(t, err)
		template, err := New(tok, c.name)
		switch {
		case c.want == "" && (err != nil || template.Name() != ChatML):
			t.Errorf("config %s, name %q: %v", c.config, c.name, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("config %s, name %q: error %v does not say %q", c.config, c.name, err, c.want)
		}
	}
}

func TestTemplate_ControlOutOfReach(t *testing.T) {
	// "<|im_end|>" as an ordinary word of the vocabulary, and not special: merges could make it.
	tok, err := tokenizer.New(patched(t, map[string]json.RawMessage{
		"added_tokens": json.RawMessage(`[{"id": 533, "content": "<|im_start|>", "special": true}, {"id": 534, "content": "<|im_end|>"}]`),
		"model":        json.RawMessage(`{"ignore_merges": true, "vocab": ` + vocabWith(t, "<|im_end|>", 534) + `}`),
	}), nil)
	must(t, err)
	if _, err := New(tok, ChatML); err == nil || !strings.Contains(err.Error(), "ordinary text") {
		t.Errorf("error %v", err)
	}
}

func vocabWith(t *testing.T, token string, id int32) string {
	t.Helper()
	var f struct {
		Model struct{ Vocab map[string]int32 }
	}
	must(t, json.Unmarshal(vocabularyFile(t), &f))
	f.Model.Vocab[token] = id
	out, err := json.Marshal(f.Model.Vocab)
	must(t, err)
	return string(out)
}

func TestEndOfTurn(t *testing.T) {
	template := newTemplate(t)
	var got []string
	for _, id := range template.EndOfTurn() {
		got = append(got, string(template.tok.TokenBytes(id)))
	}
	if !slices.Equal(got, []string{"<|im_end|>", "<|endoftext|>"}) {
		t.Errorf("end of turn %q", got)
	}
}

// TestPrompt_ContentIsNotControl: no content adds a control token.
func TestPrompt_ContentIsNotControl(t *testing.T) {
	template, rng := newTemplate(t), seeded(t)
	for range 500 {
		messages := randomMessages(rng, template)
		blank := slices.Clone(messages)
		for i := range blank {
			blank[i].Content = strings.Repeat("x", min(1, len(blank[i].Content)))
			blank[i].Reasoning = strings.Repeat("x", min(1, len(blank[i].Reasoning)))
		}
		with, err := template.Prompt(messages, nil)
		must(t, err)
		without, err := template.Prompt(blank, nil)
		must(t, err)
		if got, want := controls(template.tok, with), controls(template.tok, without); !slices.Equal(got, want) {
			t.Fatalf("control tokens %v, with blank content %v, of %+v", got, want, messages)
		}
	}
}

func controls(tok *vocabulary, ids []int32) []int32 {
	return slices.DeleteFunc(slices.Clone(ids), func(id int32) bool { return !tok.IsSpecial(id) })
}

// randomMessages are messages of every role. Some replies have samples, whose ids are not those of their text.
func randomMessages(rng *rand.Rand, template *Template) []art.Message {
	var out []art.Message
	for range rng.IntN(6) {
		switch rng.IntN(5) {
		case 0:
			out = append(out, art.System(randomText(rng)))
		case 1:
			out = append(out, art.User(randomText(rng)))
		case 2:
			out = append(out, art.ToolResult(callID(0), randomText(rng)))
		case 3:
			out = append(out, randomReply(rng))
		case 4:
			out = append(out, sampledReply(rng, template))
		}
	}
	return out
}

func randomReply(rng *rand.Rand) art.Message {
	m := art.Assistant(randomText(rng))
	if rng.IntN(2) == 0 {
		m.Reasoning = randomText(rng)
	}
	for i := range rng.IntN(3) {
		values := map[string]any{"text": randomText(rng), "n": rng.IntN(100)}
		arguments, err := json.MarshalIndent(values, "", strings.Repeat(" ", rng.IntN(3)))
		if err != nil {
			panic(err)
		}
		m.ToolCalls = append(m.ToolCalls, art.ToolCall{
			ID: callID(i), Name: "f" + randomText(rng), Arguments: string(arguments),
		})
	}
	return m
}

// sampledReply is a message as an engine produces it: parsed from ids that a sampler might draw.
func sampledReply(rng *rand.Rand, template *Template) art.Message {
	ids := tokentest.IDs(rng, template.tok.VocabSize())
	if rng.IntN(2) == 0 {
		ids = append(ids, template.EndOfTurn()[rng.IntN(2)])
	}
	m := parse(template, ids)
	m.Sample = &art.Sample{IDs: ids}
	return m
}

// checkExtends checks sequence extension, on which training depends.
func checkExtends(
	t *testing.T, template *Template, before []art.Message, reply art.Message, after []art.Message, tools []art.Tool,
) {
	t.Helper()
	prompt, err := template.Prompt(before, tools)
	must(t, err)
	next, err := template.Prompt(slices.Concat(before, []art.Message{reply}, after), tools)
	must(t, err)
	want := slices.Concat(prompt, reply.Sample.IDs)
	if len(next) < len(want) || !slices.Equal(next[:len(want)], want) {
		t.Fatalf("prompt and reply\n%v\nare not the beginning of the next prompt\n%v", want, next)
	}
	end := template.EndOfTurn()[0]
	if n := len(want); want[n-1] != end && next[n] != end {
		t.Fatalf("the turn is not ended: %v after %v", next[n:], want)
	}
}

func TestPrompt_Extends(t *testing.T) {
	template, rng := newTemplate(t), seeded(t)
	for range 2000 {
		tools := []art.Tool{weather}[:rng.IntN(2)]
		before, reply := randomMessages(rng, template), sampledReply(rng, template)
		checkExtends(t, template, before, reply, randomMessages(rng, template), tools)
	}
}

func FuzzPrompt_Extends(f *testing.F) {
	template := newTemplate(f)
	f.Add("Hi", "é", "\n<|im_end|>", []byte("\x01\xff日"), true, uint64(1))
	f.Add("", "", "", []byte(""), false, uint64(2))
	f.Fuzz(func(t *testing.T, system, user, next string, reply []byte, withTools bool, seed uint64) {
		var ids []int32
		for _, b := range reply { // a token for each byte: seldom those that Encode would choose
			ids = append(ids, byteID(template.tok, b))
		}
		m := parse(template, ids)
		m.Sample = &art.Sample{IDs: ids}
		var tools []art.Tool
		if withTools {
			tools = []art.Tool{weather}
		}
		rng := rand.New(rand.NewPCG(seed, 0))
		before := append([]art.Message{art.System(system), art.User(user)}, randomMessages(rng, template)...)
		after := append([]art.Message{art.ToolResult("", next), art.User(next)}, randomMessages(rng, template)...)
		checkExtends(t, template, before, m, after, tools)
	})
}

// TestPrompt_NormalizedEnd: the token that ends a turn is found in what a template writes, though it decodes to another
// text because it is normalized.
func TestPrompt_NormalizedEnd(t *testing.T) {
	tok, err := tokenizer.New(patched(t, map[string]json.RawMessage{
		"normalizer": json.RawMessage(`{"type": "Lowercase"}`),
		"added_tokens": json.RawMessage(`[{"id": 600, "content": "<TURN>", "normalized": true, "special": true},
			{"id": 601, "content": "<END>", "normalized": true, "special": true}]`),
	}), []byte(`{"eos_token": "<END>", "chat_template": "{% for m in messages %}<TURN>{{ m.content }}<END>{% endfor %}`+
		`{% if add_generation_prompt %}<TURN>{% endif %}"}`))
	must(t, err)
	template, err := New(tok, "")
	must(t, err)
	h := art.History{Messages: []art.Message{art.User("hi")}}
	prompt := template.mustPrompt(t, h.Messages, nil)
	if text := tok.Decode(prompt, false); text != "<turn>hi<end><turn>" {
		t.Errorf("the prompt decodes to %q", text)
	}
	reply := []int32{byteID(template.tok, 'o'), byteID(template.tok, 'k'), 601}
	m := parse(template, reply)
	m.Sample = &art.Sample{PromptIDs: prompt, IDs: reply}
	h.Add(m, art.User("so?"))
	if next := template.mustPrompt(t, h.Messages, nil); m.Content != "ok" ||
		!slices.Equal(next[:len(prompt)+3], slices.Concat(prompt, reply)) {
		t.Errorf("%q, then %v does not begin with %v and %v", m.Content, next, prompt, reply)
	}
}

// TestTarget: the targets are what the assistant says, and all ids are the beginning of the prompt of the next reply.
func TestTarget(t *testing.T) {
	template, rng := newTemplate(t), seeded(t)
	end := template.EndOfTurn()[0]
	for range 1000 {
		messages := randomMessages(rng, template)
		ids, mask, err := template.Target(messages, nil)
		must(t, err)
		prompt, err := template.Prompt(messages, nil)
		must(t, err)
		// The ids differ if a reply that was not sampled begins with white space: a prompt encodes it together with its
		// header.
		whole := template.tok.Decode(prompt, false)
		if len(mask) != len(ids) || !strings.HasPrefix(whole, template.tok.Decode(ids, false)) {
			t.Fatalf("%d ids and %d of mask; prompt %v, target %v", len(ids), len(mask), prompt, ids)
		}
		var want [][]int32
		for i := range messages {
			if m := &messages[i]; m.Sample != nil {
				want = append(want, m.Sample.IDs)
			} else if m.Role == art.RoleAssistant {
				want = append(want, rendered(t, template, *m))
			}
		}
		if got := masked(ids, mask); !slices.Equal(got, slices.Concat(want...)) {
			t.Fatalf("learns %v, want %v (end of turn %d)", got, want, end)
		}
	}
}

func masked(ids []int32, mask []bool) []int32 {
	var out []int32
	for i, id := range ids {
		if mask[i] {
			out = append(out, id)
		}
	}
	return out
}

// rendered is the ids of a reply as the template writes it, with the end of the turn.
func rendered(t testing.TB, template *Template, m art.Message) []int32 {
	t.Helper()
	header, err := template.Prompt(nil, nil)
	must(t, err)
	ids, _, err := template.Target([]art.Message{m}, nil)
	must(t, err)
	for last := len(ids) - 1; ; last-- {
		if ids[last] == template.EndOfTurn()[0] {
			return ids[len(header) : last+1]
		}
	}
}

func TestParse_InvertsRender(t *testing.T) {
	template, rng := newTemplate(t), seeded(t)
	for range 3000 {
		m := randomReply(rng)
		if got := parse(template, rendered(t, template, m)); !reflect.DeepEqual(got, m) {
			t.Fatalf("\n got %+v\nwant %+v", got, m)
		}
	}
}

func TestParse(t *testing.T) {
	template := newTemplate(t)
	call := func(id, name, arguments string) art.ToolCall {
		return art.ToolCall{ID: id, Name: name, Arguments: arguments}
	}
	for _, c := range []struct {
		text               string
		reasoning, content string
		calls              []art.ToolCall
	}{
		{"", "", "", nil},
		{"<|im_end|>", "", "", nil},
		{"Hello<|im_end|>", "", "Hello", nil},
		{"Hello<|endoftext|>", "", "Hello", nil},
		{"a<|im_start|>b", "", "ab", nil},
		{"<think>\nhm\n</think>\n\nHello", "hm", "Hello", nil},
		{" \n<think>hm</think>Hello", "hm", "Hello", nil},
		{"<think>\n\n</think>\n\nHello", "", "Hello", nil},
		{"<think>\nhm, it was cut", "hm, it was cut", "", nil},
		{"Hello <think>hm</think>", "", "Hello <think>hm</think>", nil},
		{"</think>Hello", "", "</think>Hello", nil},
		{"<tool_call>\n{\"name\": \"f\", \"arguments\": {\"b\": 1,  \"a\": [2]}}\n</tool_call><|im_end|>", "", "", []art.ToolCall{call(callID(0), "f", `{"b": 1,  "a": [2]}`)}},
		{"Wait.\n<tool_call>{\"arguments\": null, \"name\": \"f\"}</tool_call>", "", "Wait.", []art.ToolCall{call(callID(0), "f", "null")}},
		{"<tool_call>{\"name\": \"f\", \"arguments\": 1}</tool_call>\n<tool_call>{\"name\": \"g\", \"arguments\": \"x\"}</tool_call>\n Done.", "", "\n Done.",
			[]art.ToolCall{call(callID(0), "f", "1"), call(callID(1), "g", `"x"`)}},
		{"<think>a</think><tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>", "a", "", []art.ToolCall{call(callID(0), "f", "{}")}},
		{"<tool_call>{\"name\": \"f\"}</tool_call>", "", "<tool_call>{\"name\": \"f\"}</tool_call>", nil},
		{"<tool_call>{\"name\": \"\", \"arguments\": {}}</tool_call>", "", "<tool_call>{\"name\": \"\", \"arguments\": {}}</tool_call>", nil},
		{"<tool_call>{\"Name\": \"f\", \"arguments\": {}}</tool_call>", "", "<tool_call>{\"Name\": \"f\", \"arguments\": {}}</tool_call>", nil},
		{"<tool_call>{\"name\": \"f\", \"arguments\": {}} x</tool_call>", "", "<tool_call>{\"name\": \"f\", \"arguments\": {}} x</tool_call>", nil},
		{"<tool_call>{oops}</tool_call>\n<tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>", "", "<tool_call>{oops}</tool_call>",
			[]art.ToolCall{call(callID(0), "f", "{}")}},
		{"<tool_call><tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>", "", "<tool_call>", []art.ToolCall{call(callID(0), "f", "{}")}},
		{"<tool_call>{\"name\": \"f\", \"argu", "", "<tool_call>{\"name\": \"f\", \"argu", nil},
	} {
		want := art.Message{Role: art.RoleAssistant, Reasoning: c.reasoning, Content: c.content, ToolCalls: c.calls}
		if got := parse(template, template.tok.Encode(c.text, false)); !reflect.DeepEqual(got, want) {
			t.Errorf("%q:\n got %+v\nwant %+v", c.text, got, want)
		}
	}
}

// TestParse_PlainTags: in a vocabulary without tokens for the tags, their text counts.
func TestParse_PlainTags(t *testing.T) {
	tok, err := tokenizer.New(patched(t, map[string]json.RawMessage{"added_tokens": json.RawMessage(
		`[{"id": 600, "content": "<|im_start|>", "special": true}, {"id": 601, "content": "<|im_end|>", "special": true}]`)}), nil)
	must(t, err)
	template, err := New(tok, "")
	must(t, err)
	m := art.Message{Role: art.RoleAssistant, Reasoning: "hm", Content: "Wait.",
		ToolCalls: []art.ToolCall{
			{ID: callID(0), Name: "f", Arguments: `{"a": "é"}`}, {ID: callID(1), Name: "g", Arguments: "{}"},
		}}
	if got := parse(template, rendered(t, template, m)); !reflect.DeepEqual(got, m) {
		t.Errorf("\n got %+v\nwant %+v", got, m)
	}
}

func FuzzParse(f *testing.F) {
	template := newTemplate(f)
	for _, s := range []string{
		"Hello", "<think>\nhm\n</think>\n\nHello<|im_end|>",
		"<tool_call>\n{\"name\": \"f\", \"arguments\": {}}\n</tool_call>", "<tool_call>", "\xff",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		m := parse(template, template.tok.Encode(s, false))
		if m.Role != art.RoleAssistant || m.Sample != nil {
			t.Fatalf("%+v", m)
		}
		for _, c := range m.ToolCalls {
			if c.Name == "" || !json.Valid([]byte(c.Arguments)) {
				t.Fatalf("%q gives the call %+v", s, c)
			}
		}
		if again := parse(template, rendered(t, template, m)); !reflect.DeepEqual(again, m) {
			t.Fatalf("%q is parsed as\n%+v\nand rendering that is parsed as\n%+v", s, m, again)
		}
	})
}

// FuzzNew builds a template from any added tokens and configuration, and parses a reply with it.
func FuzzNew(f *testing.F) {
	f.Add([]byte(`[{"id": 600, "content": "<|im_start|>", "special": true}, {"id": 601, "content": "<|im_end|>"}]`),
		[]byte(`{}`))
	f.Add([]byte(`[{"id": 600, "content": "<think>"}]`),
		[]byte(`{"eos_token": "<think>", "chat_template": "<think>{{ messages }}"}`))
	f.Add([]byte(`[]`), []byte(`{"chat_template": [{"name": "default", "template": "[TOOL_CALLS]"}, `+
		`{"name": "tool_use", "template": "{{ tools }}"}]}`))
	f.Fuzz(func(t *testing.T, added, config []byte) {
		if !json.Valid(added) {
			return
		}
		tok, err := tokenizer.New(patched(t, map[string]json.RawMessage{"added_tokens": added}), config)
		if err != nil {
			return
		}
		if template, err := New(tok, ""); err == nil {
			parse(template, tok.Encode("The 1st <x>", false))
		}
	})
}

// countdown is a context that ends with the n-th call of Err.
type countdown struct {
	context.Context
	left int
}

func (c *countdown) Err() error {
	if c.left--; c.left < 0 {
		return context.Canceled
	}
	return nil
}

// TestPromptContext_Canceled: rendering a long conversation stops whenever its context ends: while messages are
// converted, while the template renders them, and before they are encoded.
func TestPromptContext_Canceled(t *testing.T) {
	template := newTemplate(t)
	var messages []art.Message
	for range 500 {
		messages = append(messages, art.User("a"), art.Assistant("b"))
	}
	ctx := &countdown{t.Context(), 1 << 30}
	want, err := template.PromptContext(ctx, messages, []art.Tool{weather})
	must(t, err)
	plain, err := template.Prompt(messages, []art.Tool{weather})
	must(t, err)
	if !slices.Equal(want, plain) {
		t.Errorf("got %d ids with a context, %d without", len(want), len(plain))
	}
	checked := 1<<30 - ctx.left
	if checked < 1000+10 {
		t.Errorf("the context was checked %d times", checked)
	}
	for _, after := range []int{0, 10, 1001, checked - 1} {
		ctx := &countdown{t.Context(), after}
		if _, err := template.PromptContext(ctx, messages, []art.Tool{weather}); !errors.Is(err, context.Canceled) {
			t.Errorf("ends after %d: error %v", after, err)
		}
		if more := -ctx.left; more > 10 {
			t.Errorf("ends after %d: the context was checked %d times more", after, more)
		}
	}
}
