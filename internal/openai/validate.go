package openai

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/goart-dev/art"
)

// maxStop is how many stop strings a request may have; it is OpenAI's limit.
const maxStop = 4

// roles are those that a message may have.
var roles = []art.Role{art.RoleSystem, art.RoleDeveloper, art.RoleUser, art.RoleAssistant, art.RoleTool}

// problemList collects what is wrong with a request.
type problemList []*Error

// require adds a problem unless ok.
func (p *problemList) require(ok bool, field, format string, args ...any) {
	if !ok {
		*p = append(*p, fieldError(field, format, args...))
	}
}

// validate returns everything that is wrong with a decoded request.
func (r *Request) validate() []*Error {
	var p problemList
	r.validateInput(&p)
	r.validateSampling(&p)
	r.validateOutput(&p)
	return p
}

// validateInput checks what the prompt is made of.
func (r *Request) validateInput(p *problemList) {
	p.require(len(r.Messages) > 0, "messages", "must not be empty")
	for i, m := range r.Messages {
		p.require(slices.Contains(roles, m.Role), fmt.Sprintf("messages[%d].role", i), "is %q: it must be one of %q", m.Role, roles)
	}
	for i, tool := range r.Tools {
		p.require(tool.Name != "", fmt.Sprintf("tools[%d].function.name", i), "must not be empty")
	}
	var args map[string]json.RawMessage
	isObject := len(r.ChatTemplateKwargs) == 0 || json.Unmarshal(r.ChatTemplateKwargs, &args) == nil
	p.require(isObject, "chat_template_kwargs", "must be an object of variables for the chat template")
	supported := r.ToolChoice == "" || r.ToolChoice == "auto" || r.ToolChoice == "none"
	p.require(supported, "tool_choice", "must be \"auto\" or \"none\": forcing a call is not supported; ask for it in the prompt")
}

// validateSampling checks what shapes the distribution.
func (r *Request) validateSampling(p *problemList) {
	p.require(r.Temperature == nil || *r.Temperature >= 0, "temperature", "must not be negative; 0 is greedy")
	p.require(r.TopP == nil || *r.TopP > 0 && *r.TopP <= 1, "top_p", "must be above 0 and at most 1; 1 is off")
	p.require(r.TopK == nil || *r.TopK >= -1, "top_k", "must not be below -1; -1 and 0 are off")
	p.require(r.MaxTokens == nil || *r.MaxTokens >= 1, "max_tokens", "must be at least 1; leave it out for the rest of the context")
	p.require(r.MaxCompletionTokens == nil || *r.MaxCompletionTokens >= 1,
		"max_completion_tokens", "must be at least 1; leave it out for the rest of the context")
	p.require(r.MaxTokens == nil || r.MaxCompletionTokens == nil || *r.MaxTokens == *r.MaxCompletionTokens,
		"max_tokens", "differs from max_completion_tokens; send one of them")
	p.require(len(r.Stop) <= maxStop, "stop", "has %d strings; at most %d are supported", len(r.Stop), maxStop)
	p.require(!slices.Contains(r.Stop, ""), "stop", "must not contain an empty string")
}

// validateOutput checks what is asked for beside the text.
func (r *Request) validateOutput(p *problemList) {
	p.require(r.TopLogprobs == 0, "top_logprobs", "must be 0: only the logprobs of the sampled tokens are known; set logprobs alone")
}
