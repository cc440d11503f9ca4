package tokenizer

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/goart-dev/art"
)

// The parsers of tool calls, by the models whose format they read.
const (
	// Hermes reads {"name": ..., "arguments": {...}} between <tool_call> and </tool_call>, one call or several in a block:
	// Hermes, Qwen 2.5 and 3.
	Hermes = "hermes"
	// Qwen3Coder reads <function=name> with <parameter=key> blocks between <tool_call> and </tool_call>.
	Qwen3Coder = "qwen3_coder"
	// Llama3JSON reads {"name": ..., "parameters": {...}} that is all of a reply, or behind <|python_tag|>; several are
	// separated by semicolons or white space, or in a list.
	Llama3JSON = "llama3_json"
	// Pythonic reads [f(a=1), g(b="x")] that is all of a reply, or between <|python_start|> and <|python_end|>: Llama 3.2
	// and 4.
	Pythonic = "pythonic"
	// Mistral reads what follows [TOOL_CALLS]: a JSON array of calls, or a name, [ARGS] and the arguments of one call.
	Mistral = "mistral"
	// DeepSeek reads what is between <｜tool▁calls▁begin｜> and <｜tool▁calls▁end｜>: a name and its arguments for each call,
	// with a fence of JSON around the arguments (V3, R1) or without one (V3.1).
	DeepSeek = "deepseek"
	// GLM reads a name and pairs of <arg_key> and <arg_value> between <tool_call> and </tool_call>: GLM 4.5 and later.
	GLM = "glm"
	// Cohere reads a JSON array of objects with tool_name and parameters between <|START_ACTION|> and <|END_ACTION|>:
	// Command A, Command R7B.
	Cohere = "cohere"
	// Apriel reads a JSON array of objects with name and arguments between <tool_calls> and </tool_calls>: Apriel 1.5.
	Apriel = "apriel"
	// Nemotron reads the same between <TOOLCALL> and </TOOLCALL>: Nemotron Nano 2.
	Nemotron = "nemotron"
	// Granite reads the same behind <|tool_call|>: Granite 3.
	Granite = "granite"
	// Functionary reads <function=name>{...}</function>: Functionary 3.1.
	Functionary = "functionary"
	// SeedOSS reads what Qwen3Coder does between <seed:tool_call> and </seed:tool_call>: Seed-OSS.
	SeedOSS = "seed_oss"
	// LFM2 reads what Pythonic does between <|tool_call_start|> and <|tool_call_end|>: LFM2.
	LFM2 = "lfm2"
	// GPTOSS reads replies in channels: analysis is reasoning, a part with a recipient a call, all else content: gpt-oss.
	GPTOSS = "gpt_oss"
	// NoTools reads no calls: all of a reply is text.
	NoTools = "none"
)

// Parsers returns the names of the parsers of tool calls.
func Parsers() []string { return slices.Sorted(maps.Keys(toolParsers)) }

// Where the values of a section are.
var (
	jsonValues   = valueSyntax{quotes: `"`}
	pythonValues = valueSyntax{quotes: `"'`}
	xmlValues    = valueSyntax{begin: "<parameter=", end: "</parameter>"}
	glmValues    = valueSyntax{begin: "<arg_value>", end: "</arg_value>"}
)

// toolParsers are the formats of calls. Tags are written as their characters here.
var toolParsers = map[string]callFormat{
	Hermes: {open: "<tool_call>", close: "</tool_call>", values: jsonValues, complete: true,
		parse: hermesKeys.parse, id: callID},
	Qwen3Coder: {open: "<tool_call>", close: "</tool_call>", bareOpen: "<function=", closed: "</function>",
		values: xmlValues, complete: true, parse: parseQwenXML, id: callID},
	Llama3JSON: {open: "<|python_tag|>", bare: "{[", values: jsonValues, parse: parseLlamaJSON, id: callID},
	Pythonic: {open: "<|python_start|>", close: "<|python_end|>", bare: "[", values: pythonValues, complete: true,
		parse: parsePythonic, id: callID},
	Mistral: {open: "[TOOL_CALLS]", values: jsonValues, parse: parseMistral, id: mistralID,
		inner: []string{"[ARGS]", "[CALL_ID]"}},
	DeepSeek: {open: "<｜tool▁calls▁begin｜>", close: "<｜tool▁calls▁end｜>", values: jsonValues, complete: true,
		parse: parseDeepSeek, id: callID, inner: []string{deepSeekBegin, deepSeekSeparator, deepSeekEnd}},
	GLM: {open: "<tool_call>", close: "</tool_call>", values: glmValues, parse: parseGLM, id: callID, inner: glmTags},
	Cohere: {open: "<|START_ACTION|>", close: "<|END_ACTION|>", values: jsonValues, complete: true, parse: cohereKeys.parse,
		id: callID},
	Apriel: {open: "<tool_calls>", close: "</tool_calls>", values: jsonValues, complete: true,
		parse: mistralKeys.parse, id: callID},
	Nemotron: {open: "<TOOLCALL>", close: "</TOOLCALL>", values: jsonValues, complete: true,
		parse: hermesKeys.parse, id: callID},
	Granite:     {open: "<|tool_call|>", values: jsonValues, parse: hermesKeys.parse, id: callID},
	Functionary: {open: "<function=", close: "</function>", values: jsonValues, parse: parseFunctionary, id: callID},
	SeedOSS: {open: "<seed:tool_call>", close: "</seed:tool_call>", bareOpen: "<function=", closed: "</function>",
		values: xmlValues, complete: true, parse: parseQwenXML, id: callID},
	LFM2: {open: "<|tool_call_start|>", close: "<|tool_call_end|>", values: pythonValues, complete: true,
		parse: parsePythonic, id: callID},
	GPTOSS:  {channels: true, inner: channelTags, id: callID},
	NoTools: {},
}

// errNoCall says that a text was not meant as a call.
var errNoCall = errors.New("it is no call")

// detectParser names the parser of the calls that a template writes, or tells the model to write.
func detectParser(template string) string {
	has := func(texts ...string) bool {
		return !slices.ContainsFunc(texts, func(s string) bool { return !strings.Contains(template, s) })
	}
	switch {
	case has(channelStart, channelName, channelMessage):
		return GPTOSS
	case has("<seed:tool_call>"):
		return SeedOSS
	case has("<tool_calls>["):
		return Apriel
	case has("<TOOLCALL>"):
		return Nemotron
	case has("<|tool_call_start|>"), has("<|tool_list_start|>"):
		return LFM2
	case has("<|tool_call|>"):
		return Granite
	case has("<tool_call>", "<function=", "<parameter="):
		return Qwen3Coder
	case has("<tool_call>", "<arg_key>", "<arg_value>"):
		return GLM
	case has("<｜tool▁calls▁begin｜>"):
		return DeepSeek
	case has("<|START_ACTION|>"):
		return Cohere
	case has("<tool_call>"):
		return Hermes
	case has("[TOOL_CALLS]"):
		return Mistral
	case has("<function=", "</function>"):
		return Functionary
	case has("<|python_start|>"), has("[func_name1("):
		return Pythonic
	case has("<|start_header_id|>", `"parameters"`), has("<|python_tag|>"):
		return Llama3JSON
	}
	return NoTools
}

// replyFormat returns the format of the replies to a template, in terms of the vocabulary.
func (t *Tokenizer) replyFormat(parser, template string) *replyFormat {
	f := &replyFormat{name: parser, calls: toolParsers[parser], tagOf: map[int32]string{}}
	for _, pair := range [][2]string{{"<think>", "</think>"}, {"[THINK]", "[/THINK]"}, {"<|START_THINKING|>", "<|END_THINKING|>"}, {"<seed:think>", "</seed:think>"}} {
		if f.thinkOpen == "" && strings.Contains(template, pair[1]) {
			f.thinkOpen, f.thinkClose = t.tag(f, pair[0]), t.tag(f, pair[1])
		}
	}
	f.calls.open, f.calls.close = t.tag(f, f.calls.open), t.tag(f, f.calls.close)
	for _, inner := range f.calls.inner {
		t.tag(f, inner)
	}
	return f
}

// tag returns a tag as it stands in the text of a reply, and notes it in the format.
func (t *Tokenizer) tag(f *replyFormat, text string) string {
	id, ok := t.added.byContent[text]
	if !ok {
		return text
	}
	f.tags = append(f.tags, tokenByte+text)
	f.tagOf[id] = tokenByte + text
	return tokenByte + text
}

// tag returns a tag of the format as it stands in the text of a reply.
func (f *replyFormat) tag(text string) string {
	if slices.Contains(f.tags, tokenByte+text) {
		return tokenByte + text
	}
	return text
}

// single is what a parser returns for one call.
func single(call art.ToolCall, err error) ([]art.ToolCall, error) {
	if err != nil {
		return nil, err
	}
	return []art.ToolCall{call}, nil
}
