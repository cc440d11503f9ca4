package wire

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// fieldTable lists the fields of an API that would change the reply and are not supported, each with its neutral values
// in JSON. null is neutral for all of them.
type fieldTable map[string][]string

// unsupported are those of chat completions.
var unsupported = fieldTable{
	// OpenAI's.
	"audio":               nil,
	"function_call":       {`"auto"`, `"none"`},
	"functions":           {"[]"},
	"modalities":          {`["text"]`},
	"moderation":          nil,
	"parallel_tool_calls": {"true"},
	"reasoning_effort":    nil,
	"verbosity":           {`"medium"`},
	"web_search_options":  nil,
	// vLLM's.
	"add_generation_prompt":      {"true"},
	"add_special_tokens":         {"false"},
	"best_of":                    {"1"},
	"chat_template":              nil,
	"continue_final_message":     {"false"},
	"documents":                  {"[]"},
	"echo":                       {"false"},
	"guided_choice":              nil,
	"guided_grammar":             nil,
	"guided_json":                nil,
	"guided_regex":               nil,
	"include_reasoning":          {"true"},
	"include_stop_str_in_output": {"false"},
	"length_penalty":             {"1"},
	"logits_processors":          {"[]"},
	"logprob_token_ids":          {"[]"},
	"mm_processor_kwargs":        {"{}"},
	"return_prompt_text":         {"false"},
	"skip_special_tokens":        {"true"},
	"thinking_token_budget":      nil,
	"truncate_prompt_tokens":     nil,
	"use_beam_search":            {"false"},
	"vllm_xargs":                 {"{}"},
}

// hints say what to use instead of some of the fields.
var hints = map[string]string{
	"functions":     "use tools",
	"function_call": "use tool_choice",
	"guided_choice": "use structured_outputs",
	"guided_json":   "use structured_outputs",
	"guided_regex":  "use structured_outputs",
}

// check finds the unsupported fields whose value is not neutral, in the order of their names.
func (t fieldTable) check(p *problemList, fields map[string]json.RawMessage) {
	for _, name := range slices.Sorted(maps.Keys(t)) {
		value, set := fields[name]
		if set && !isNeutral(value, t[name]) {
			p.add(unsupportedError(name, t[name]))
		}
	}
}

// maxNeutral limits the length of a neutral value, white space included.
const maxNeutral = 1 << 10

// isNeutral reports whether a value is null or equals an accepted one as a JSON value: 0.0 is 0.
func isNeutral(value json.RawMessage, accepted []string) bool {
	var got any
	if len(value) > maxNeutral || json.Unmarshal(value, &got) != nil {
		return false // for example a number out of range
	}
	return got == nil || slices.ContainsFunc(accepted, func(a string) bool {
		var want any
		return json.Unmarshal([]byte(a), &want) == nil && reflect.DeepEqual(got, want)
	})
}

// unsupportedError says which values of a field are accepted, if any, and what to use instead.
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
	e := FieldError(name, "%s", message)
	e.Code = "unsupported_parameter"
	return e
}
