package chat

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
	// Llama3JSON reads {"name": ..., "parameters": {...}} that is the whole reply or follows <|python_tag|>; several are
	// separated by semicolons or white space, or in a list.
	Llama3JSON = "llama3_json"
	// Pythonic reads [f(a=1), g(b="x")] that is the whole reply or between <|python_start|> and <|python_end|>: Llama 3.2
	// and 4.
	Pythonic = "pythonic"
	// Mistral reads what follows [TOOL_CALLS]: a JSON array of calls, or one call as its name, [ARGS] and its arguments.
	Mistral = "mistral"
	// DeepSeek reads, between <｜tool▁calls▁begin｜> and <｜tool▁calls▁end｜>, a name and arguments for each call, the
	// arguments in a fenced JSON block (V3, R1) or without one (V3.1).
	DeepSeek = "deepseek"
	// DeepSeekV32 reads <｜DSML｜invoke name="..."> with <｜DSML｜parameter name="..." string="true"> blocks between
	// <｜DSML｜function_calls> and </｜DSML｜function_calls>: DeepSeek V3.2. Source: encoding/encoding_dsv32.py of
	// deepseek-ai/DeepSeek-V3.2.
	DeepSeekV32 = "deepseek_v32"
	// KimiK2 reads, between <|tool_calls_section_begin|> and <|tool_calls_section_end|>, an id that names the function,
	// and JSON arguments for each call: Kimi K2.
	KimiK2 = "kimi_k2"
	// MiniMaxM2 reads <invoke name="..."> with <parameter name="..."> blocks between <minimax:tool_call> and
	// </minimax:tool_call>: MiniMax M2.
	MiniMaxM2 = "minimax_m2"
	// FunctionGemma reads call:name{key:<escape>value<escape>} between <start_function_call> and <end_function_call>.
	FunctionGemma = "functiongemma"
	// GLM reads a name and pairs of <arg_key> and <arg_value> between <tool_call> and </tool_call>: GLM 4.5 and later.
	GLM = "glm"
	// Cohere reads a JSON array of objects with tool_name and parameters between <|START_ACTION|> and <|END_ACTION|>:
	// Command A, Command R7B.
	Cohere = "cohere"
	// Apriel reads a JSON array of objects with name and arguments between <tool_calls> and </tool_calls>: Apriel 1.5.
	Apriel = "apriel"
	// Nemotron reads the same between <TOOLCALL> and </TOOLCALL>: Nemotron Nano 2.
	Nemotron = "nemotron"
	// Granite reads the same after <|tool_call|>: Granite 3.
	Granite = "granite"
	// Functionary reads <function=name>{...}</function>: Functionary 3.1.
	Functionary = "functionary"
	// SeedOSS reads the same as Qwen3Coder between <seed:tool_call> and </seed:tool_call>: Seed-OSS.
	SeedOSS = "seed_oss"
	// LFM2 reads the same as Pythonic, or as Hermes, between <|tool_call_start|> and <|tool_call_end|>: LFM2.
	LFM2 = "lfm2"
	// GPTOSS reads the Harmony format: the channel analysis is reasoning, a message with a recipient is a call, everything
	// else is content: gpt-oss.
	GPTOSS = "gpt_oss"
	// NoTools reads no calls: a whole reply is text.
	NoTools = "none"
)

// Parsers returns the names of the parsers of tool calls.
func Parsers() []string { return slices.Sorted(maps.Keys(callFormats)) }

// The syntaxes of values.
var (
	jsonValues   = valueSyntax{quotes: `"`}
	pythonValues = valueSyntax{quotes: `"'`}
	xmlValues    = valueSyntax{begin: qwenXML.parameter, end: qwenXML.parameterEnd}
	invokeValues = valueSyntax{begin: miniMaxXML.parameter, end: miniMaxXML.parameterEnd}
	dsmlValues   = valueSyntax{begin: dsml.parameter, end: dsml.parameterEnd}
	gemmaValues  = valueSyntax{begin: gemmaEscape, end: gemmaEscape}
	glmValues    = valueSyntax{begin: "<arg_value>", end: "</arg_value>", last: true}
)

// callFormats are the formats of calls, by parser. Tags are spelled out here.
var callFormats = map[string]callFormat{
	Hermes: {open: "<tool_call>", close: "</tool_call>", values: jsonValues, complete: true,
		parse: hermesKeys.parse, stream: hermesKeys.stream},
	Qwen3Coder: {open: "<tool_call>", close: "</tool_call>", bareOpen: "<function=", closed: "</function>",
		values: xmlValues, complete: true, parse: qwenXML.parse, stream: qwenXML.stream},
	Llama3JSON: {open: "<|python_tag|>", bare: "{[", values: jsonValues,
		parse: parseLlamaJSON, stream: llamaKeys.stream},
	Pythonic: {open: "<|python_start|>", close: "<|python_end|>", bare: "[", values: pythonValues, complete: true,
		parse: parsePythonic},
	Mistral: {open: "[TOOL_CALLS]", values: jsonValues, parse: parseMistral, stream: streamMistral, id: (*callIDs).mistral,
		inner: []string{"[ARGS]", "[CALL_ID]"}},
	DeepSeek: {open: "<｜tool▁calls▁begin｜>", close: "<｜tool▁calls▁end｜>", values: jsonValues, complete: true,
		parse: deepSeekTags.parse, stream: deepSeekTags.stream,
		inner: []string{deepSeekBegin, deepSeekSeparator, deepSeekEnd}},
	DeepSeekV32: {open: "<" + dsmlMarker + "function_calls>", close: "</" + dsmlMarker + "function_calls>",
		breaks: 2, values: dsmlValues, complete: true, parse: dsml.parse, stream: dsml.stream,
		inner: []string{dsmlMarker}},
	KimiK2: {open: "<|tool_calls_section_begin|>", close: "<|tool_calls_section_end|>", values: jsonValues, complete: true,
		parse: kimiTags.parse, stream: kimiTags.stream, id: (*callIDs).kimi,
		inner: []string{kimiBegin, kimiSeparator, kimiEnd}},
	MiniMaxM2: {open: "<minimax:tool_call>", close: "</minimax:tool_call>", values: invokeValues, complete: true,
		parse: miniMaxXML.parse, stream: miniMaxXML.stream},
	FunctionGemma: {open: "<start_function_call>", close: "<end_function_call>", values: gemmaValues, complete: true,
		parse: parseGemma, inner: []string{gemmaEscape}},
	GLM: {open: "<tool_call>", close: "</tool_call>", values: glmValues, parse: parseGLM, stream: streamGLM,
		inner: glmTags},
	Cohere: {open: "<|START_ACTION|>", close: "<|END_ACTION|>", values: jsonValues, complete: true,
		parse: cohereKeys.parse, stream: cohereKeys.stream},
	Apriel: {open: "<tool_calls>", close: "</tool_calls>", values: jsonValues, complete: true,
		parse: mistralKeys.parse, stream: mistralKeys.stream},
	Nemotron: {open: "<TOOLCALL>", close: "</TOOLCALL>", values: jsonValues, complete: true,
		parse: hermesKeys.parse, stream: hermesKeys.stream},
	Granite: {open: "<|tool_call|>", values: jsonValues,
		parse: hermesKeys.parse, stream: hermesKeys.stream},
	Functionary: {open: "<function=", close: "</function>", values: jsonValues,
		parse: parseFunctionary, stream: streamFunctionary},
	SeedOSS: {open: "<seed:tool_call>", close: "</seed:tool_call>", bareOpen: "<function=", closed: "</function>",
		values: xmlValues, complete: true, parse: qwenXML.parse, stream: qwenXML.stream},
	LFM2: {open: "<|tool_call_start|>", close: "<|tool_call_end|>", values: pythonValues, complete: true,
		parse: parseLFM2},
	GPTOSS:  {harmony: true, inner: harmonyTags},
	NoTools: {},
}

// errNoCall says that a text is not an attempt at a call.
var errNoCall = errors.New("it is not a call")

// detectParser returns the parser of the calls that a template writes, or tells the model to write. LFM2.5's does
// neither, but its vocabulary has the tags.
func (v *vocabulary) detectParser(template string) string {
	found := detectParser(template)
	if _, ok := v.added[callFormats[LFM2].open]; ok && found == NoTools {
		return LFM2
	}
	return found
}

// detectParser is that for any vocabulary.
func detectParser(template string) string {
	has := func(texts ...string) bool {
		return !slices.ContainsFunc(texts, func(s string) bool { return !strings.Contains(template, s) })
	}
	switch {
	case has(harmonyStart, harmonyChannel, harmonyMessage):
		return GPTOSS
	case has(dsmlMarker):
		return DeepSeekV32
	case has("<|tool_calls_section_begin|>"):
		return KimiK2
	case has("<minimax:tool_call>"):
		return MiniMaxM2
	case has("<start_function_call>"):
		return FunctionGemma
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

// single returns what a parser returns for one call.
func single(call art.ToolCall, err error) ([]art.ToolCall, error) {
	if err != nil {
		return nil, err
	}
	return []art.ToolCall{call}, nil
}
