package openai

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// unsupported lists fields that would change the reply and are not supported, each with the values (JSON) that ask for
// nothing. null asks for nothing everywhere.
var unsupported = map[string][]string{
	// OpenAI's.
	"audio":               nil,
	"frequency_penalty":   {"0"},
	"function_call":       {`"auto"`, `"none"`},
	"functions":           {"[]"},
	"logit_bias":          {"{}"},
	"modalities":          {`["text"]`},
	"moderation":          nil,
	"n":                   {"1"},
	"parallel_tool_calls": {"true"},
	"presence_penalty":    {"0"},
	"reasoning_effort":    nil,
	"response_format":     {`{"type":"text"}`},
	"verbosity":           {`"medium"`},
	"web_search_options":  nil,
	// vLLM's.
	"add_generation_prompt":      {"true"},
	"add_special_tokens":         {"false"},
	"allowed_token_ids":          nil,
	"bad_words":                  {"[]"},
	"best_of":                    {"1"},
	"chat_template":              nil,
	"continue_final_message":     {"false"},
	"documents":                  {"[]"},
	"echo":                       {"false"},
	"guided_choice":              nil,
	"guided_grammar":             nil,
	"guided_json":                nil,
	"guided_regex":               nil,
	"ignore_eos":                 {"false"},
	"include_stop_str_in_output": {"false"},
	"length_penalty":             {"1"},
	"logits_processors":          {"[]"},
	"min_p":                      {"0"},
	"min_tokens":                 {"0"},
	"prompt_logprobs":            nil,
	"repetition_penalty":         {"1"},
	"skip_special_tokens":        {"true"},
	"stop_token_ids":             {"[]"},
	"structured_outputs":         nil,
	"truncate_prompt_tokens":     nil,
	"use_beam_search":            {"false"},
}

// hints say what to do about some of the fields.
var hints = map[string]string{
	"n":               "send the request n times: a shared prompt is computed once",
	"functions":       "use tools",
	"function_call":   "use tool_choice",
	"response_format": "ask for the format in the prompt",
}

// checkUnsupported finds every field that asks for what is not supported, in the order of names.
func checkUnsupported(p *problemList, fields map[string]json.RawMessage) {
	for _, name := range slices.Sorted(maps.Keys(unsupported)) {
		value, set := fields[name]
		if set && !asksForNothing(value, unsupported[name]) {
			p.add(unsupportedError(name, unsupported[name]))
		}
	}
}

// maxNothing bounds the length of a value that asks for nothing, white space included.
const maxNothing = 1 << 10

// asksForNothing reports whether a value is null or one of the accepted ones, as JSON values: 0.0 is 0.
func asksForNothing(value json.RawMessage, accepted []string) bool {
	var got any
	if len(value) > maxNothing || json.Unmarshal(value, &got) != nil {
		return false // such as a number out of range
	}
	return got == nil || slices.ContainsFunc(accepted, func(a string) bool {
		var want any
		return json.Unmarshal([]byte(a), &want) == nil && reflect.DeepEqual(got, want)
	})
}

// unsupportedError says that a field is not supported, which values are, and what to do instead.
func unsupportedError(name string, accepted []string) *Error {
	message := "is not supported"
	if len(accepted) > 0 {
		message = "is supported only as " + strings.Join(accepted, " or ")
	}
	if hint := hints[name]; hint != "" {
		message += "; " + hint
	} else {
		message += "; leave it out"
	}
	e := fieldError(name, "%s", message)
	e.Code = "unsupported_parameter"
	return e
}
