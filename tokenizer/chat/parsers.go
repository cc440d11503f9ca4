package chat

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/goart-dev/art"
)

// The parsers of tool calls; see [Parsers].
const (
	apriel        = "apriel"
	cohere        = "cohere"
	deepSeek      = "deepseek"
	deepSeekV32   = "deepseek_v32"
	functionary   = "functionary"
	functionGemma = "functiongemma"
	glm           = "glm"
	gptOSS        = "gpt_oss"
	granite       = "granite"
	hermes        = "hermes"
	kimiK2        = "kimi_k2"
	lfm2          = "lfm2"
	llama3JSON    = "llama3_json"
	miniMaxM2     = "minimax_m2"
	mistral       = "mistral"
	nemotron      = "nemotron"
	noTools       = "none"
	pythonic      = "pythonic"
	qwen3Coder    = "qwen3_coder"
	seedOSS       = "seed_oss"
)

// Parsers returns the names of the parsers of tool calls. They read, for the models in parentheses:
//
//	apriel         a JSON array of objects with name and arguments between <tool_calls> and </tool_calls> (Apriel 1.5)
//	cohere         the same with tool_name and parameters between <|START_ACTION|> and <|END_ACTION|> (Command A, R7B)
//	deepseek       for each call a name and arguments, these in a fenced JSON block (V3, R1) or not (V3.1), between
//	               <｜tool▁calls▁begin｜> and <｜tool▁calls▁end｜>
//	deepseek_v32   <｜DSML｜invoke name="..."> with <｜DSML｜parameter name="..." string="true"> blocks between
//	               <｜DSML｜function_calls> and </｜DSML｜function_calls> (DeepSeek V3.2; source: its
//	               encoding/encoding_dsv32.py)
//	functionary    <function=name>{...}</function> (Functionary 3.1)
//	functiongemma  call:name{key:<escape>value<escape>} between <start_function_call> and <end_function_call>
//	glm            a name and pairs of <arg_key> and <arg_value> between <tool_call> and </tool_call> (GLM 4.5 and later)
//	gpt_oss        Harmony: the channel analysis is reasoning, a message with a recipient is a call, all else is content
//	granite        as apriel, after <|tool_call|> (Granite 3)
//	hermes         {"name": ..., "arguments": {...}}, one or several, between <tool_call> and </tool_call> (Hermes, Qwen
//	               2.5 and 3)
//	kimi_k2        for each call an id that names the function, and JSON arguments, between
//	               <|tool_calls_section_begin|> and <|tool_calls_section_end|>
//	lfm2           as pythonic or hermes, between <|tool_call_start|> and <|tool_call_end|>
//	llama3_json    {"name": ..., "parameters": {...}} that is the whole reply or follows <|python_tag|>; several are
//	               separated by semicolons or white space, or in a list
//	minimax_m2     <invoke name="..."> with <parameter name="..."> blocks between <minimax:tool_call> and its end
//	mistral        what follows the tag TOOL_CALLS: a JSON array of calls, or one call as its name, the tag ARGS and its
//	               arguments
//	nemotron       as apriel, between <TOOLCALL> and </TOOLCALL> (Nemotron Nano 2)
//	none           no calls: a whole reply is text
//	pythonic       [f(a=1), g(b="x")], the whole reply or between <|python_start|> and <|python_end|> (Llama 3.2, 4)
//	qwen3_coder    <function=name> with <parameter=key> blocks between <tool_call> and </tool_call>
//	seed_oss       as qwen3_coder, between <seed:tool_call> and </seed:tool_call> (Seed-OSS)
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
	hermes: {open: "<tool_call>", close: "</tool_call>", values: jsonValues, complete: true,
		parse: hermesKeys.parse, stream: hermesKeys.stream},
	qwen3Coder: {open: "<tool_call>", close: "</tool_call>", bareOpen: "<function=", closed: "</function>",
		values: xmlValues, complete: true, parse: qwenXML.parse, stream: qwenXML.stream},
	llama3JSON: {open: "<|python_tag|>", bare: "{[", values: jsonValues,
		parse: parseLlamaJSON, stream: llamaKeys.stream},
	pythonic: {open: "<|python_start|>", close: "<|python_end|>", bare: "[", values: pythonValues, complete: true,
		parse: parsePythonic},
	mistral: {open: "[TOOL_CALLS]", values: jsonValues, parse: parseMistral, stream: streamMistral, id: (*callIDs).mistral,
		inner: []string{"[ARGS]", "[CALL_ID]"}},
	deepSeek: {open: "<｜tool▁calls▁begin｜>", close: "<｜tool▁calls▁end｜>", values: jsonValues, complete: true,
		parse: deepSeekTags.parse, stream: deepSeekTags.stream,
		inner: []string{deepSeekBegin, deepSeekSeparator, deepSeekEnd}},
	deepSeekV32: {open: "<" + dsmlMarker + "function_calls>", close: "</" + dsmlMarker + "function_calls>",
		breaks: 2, values: dsmlValues, complete: true, parse: dsml.parse, stream: dsml.stream,
		inner: []string{dsmlMarker}},
	kimiK2: {open: "<|tool_calls_section_begin|>", close: "<|tool_calls_section_end|>", values: jsonValues, complete: true,
		parse: kimiTags.parse, stream: kimiTags.stream, id: (*callIDs).kimi,
		inner: []string{kimiBegin, kimiSeparator, kimiEnd}},
	miniMaxM2: {open: "<minimax:tool_call>", close: "</minimax:tool_call>", values: invokeValues, complete: true,
		parse: miniMaxXML.parse, stream: miniMaxXML.stream},
	functionGemma: {open: "<start_function_call>", close: "<end_function_call>", values: gemmaValues, complete: true,
		parse: parseGemma, inner: []string{gemmaEscape}},
	glm: {open: "<tool_call>", close: "</tool_call>", values: glmValues, parse: parseGLM, stream: streamGLM,
		inner: glmTags},
	cohere: {open: "<|START_ACTION|>", close: "<|END_ACTION|>", values: jsonValues, complete: true,
		parse: cohereKeys.parse, stream: cohereKeys.stream},
	apriel: {open: "<tool_calls>", close: "</tool_calls>", values: jsonValues, complete: true,
		parse: mistralKeys.parse, stream: mistralKeys.stream},
	nemotron: {open: "<TOOLCALL>", close: "</TOOLCALL>", values: jsonValues, complete: true,
		parse: hermesKeys.parse, stream: hermesKeys.stream},
	granite: {open: "<|tool_call|>", values: jsonValues,
		parse: hermesKeys.parse, stream: hermesKeys.stream},
	functionary: {open: "<function=", close: "</function>", values: jsonValues,
		parse: parseFunctionary, stream: streamFunctionary},
	seedOSS: {open: "<seed:tool_call>", close: "</seed:tool_call>", bareOpen: "<function=", closed: "</function>",
		values: xmlValues, complete: true, parse: qwenXML.parse, stream: qwenXML.stream},
	lfm2: {open: "<|tool_call_start|>", close: "<|tool_call_end|>", values: pythonValues, complete: true,
		parse: parseLFM2},
	gptOSS:  {harmony: true, inner: harmonyTags},
	noTools: {},
}

// errNoCall says that a text is not an attempt at a call.
var errNoCall = errors.New("it is not a call")

// parserSigns are texts of a template that tell which parser reads the calls that it writes or asks for.
// The first row counts of which the template has all texts.
var parserSigns = []struct {
	parser string
	texts  []string
}{
	{gptOSS, []string{harmonyStart, harmonyChannel, harmonyMessage}},
	{deepSeekV32, []string{dsmlMarker}},
	{kimiK2, []string{"<|tool_calls_section_begin|>"}},
	{miniMaxM2, []string{"<minimax:tool_call>"}},
	{functionGemma, []string{"<start_function_call>"}},
	{seedOSS, []string{"<seed:tool_call>"}},
	{apriel, []string{"<tool_calls>["}},
	{nemotron, []string{"<TOOLCALL>"}},
	{lfm2, []string{"<|tool_call_start|>"}},
	{lfm2, []string{"<|tool_list_start|>"}},
	{granite, []string{"<|tool_call|>"}},
	{qwen3Coder, []string{"<tool_call>", "<function=", "<parameter="}},
	{glm, []string{"<tool_call>", "<arg_key>", "<arg_value>"}},
	{deepSeek, []string{"<｜tool▁calls▁begin｜>"}},
	{cohere, []string{"<|START_ACTION|>"}},
	{hermes, []string{"<tool_call>"}},
	{mistral, []string{"[TOOL_CALLS]"}},
	{functionary, []string{"<function=", "</function>"}},
	{pythonic, []string{"<|python_start|>"}},
	{pythonic, []string{"[func_name1("}},
	{llama3JSON, []string{"<|start_header_id|>", `"parameters"`}},
	{llama3JSON, []string{"<|python_tag|>"}},
}

// detectParser returns the parser of the calls of a template. LFM2.5's has no sign, but its vocabulary has the tags.
func (v *vocabulary) detectParser(template string) string {
	for _, sign := range parserSigns {
		if !slices.ContainsFunc(sign.texts, func(s string) bool { return !strings.Contains(template, s) }) {
			return sign.parser
		}
	}
	if _, ok := v.added[callFormats[lfm2].open]; ok {
		return lfm2
	}
	return noTools
}

// single returns what a parser returns for one call.
func single(call art.ToolCall, err error) ([]art.ToolCall, error) {
	if err != nil {
		return nil, err
	}
	return []art.ToolCall{call}, nil
}
