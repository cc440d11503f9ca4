package art

import (
	"bytes"
	"encoding/json"
	"slices"
	"unicode/utf8"
)

// FormatType says how the text of a reply is restricted.
type FormatType string

// Formats of replies.
const (
	FormatText       FormatType = "text"        // any text; it overrides the format of the model's options
	FormatJSONObject FormatType = "json_object" // any JSON object
	FormatJSONSchema FormatType = "json_schema" // JSON that ResponseFormat.Schema allows
	FormatRegex      FormatType = "regex"       // what ResponseFormat.Regex matches as a whole
	FormatChoice     FormatType = "choice"      // one of ResponseFormat.Choice
)

// ResponseFormat restricts the text of a reply. Every reply that ends by itself has the format; one that MaxTokens, a
// stop string or a stop token cuts is a beginning of one. Reasoning before the text is free. Where a request has tools,
// the reply is either of the format or calls them.
type ResponseFormat struct {
	Type   FormatType      `json:"type"`
	Name   string          `json:"name,omitempty"`   // of the schema; services such as OpenAI's want one
	Schema json.RawMessage `json:"schema,omitempty"` // a JSON Schema
	Regex  string          `json:"regex,omitempty"`
	Choice []string        `json:"choice,omitempty"`
}

// ToolMode says whether the model calls tools.
type ToolMode string

// Tool modes.
const (
	ToolAuto     ToolMode = "auto"     // the model decides; the default
	ToolNone     ToolMode = "none"     // the model does not see the tools
	ToolRequired ToolMode = "required" // the reply is one call or several, of any tools
	ToolNamed    ToolMode = "named"    // the reply is one call of the tool ToolChoice.Name
)

// ToolChoice says whether the model calls tools, and which. The arguments of calls that it forces are what the
// parameters of the tool allow.
type ToolChoice struct {
	Mode ToolMode `json:"mode"`
	Name string   `json:"name,omitempty"` // for ToolNamed
}

// Restricts reports whether a grammar restricts which tokens a reply may have.
func (s Sampling) Restricts() bool { return s.ResponseFormat != nil || s.ToolChoice != nil }

// clone returns a deep copy with the schema in the form of encoding/json, which storing does not change.
func (f *ResponseFormat) clone() *ResponseFormat {
	if f == nil {
		return nil
	}
	c := *f
	c.Choice = slices.Clone(f.Choice)
	if c.Schema = bytes.Clone(f.Schema); len(c.Schema) > 0 {
		if plain, err := json.Marshal(f.Schema); err == nil { // else Validate refuses it
			c.Schema = plain
		}
	}
	return &c
}

func (s Sampling) validateOutput(p *problems) {
	if f := s.ResponseFormat; f != nil { // it has what its type needs, and nothing else
		switch f.Type {
		case FormatText, FormatJSONObject:
		case FormatJSONSchema:
			p.check(json.Valid(f.Schema), "response_format.schema is not JSON")
		case FormatRegex:
			p.check(f.Regex != "", "response_format.regex is empty")
		case FormatChoice:
			p.check(len(f.Choice) > 0, "response_format.choice is empty")
		default:
			p.check(false, "response_format.type is %q, want text, json_object, json_schema, regex or choice", f.Type)
		}
		invalid := func(s string) bool { return !utf8.ValidString(s) }
		p.check(!slices.ContainsFunc(append([]string{f.Name, f.Regex}, f.Choice...), invalid),
			"response_format has a text that is not UTF-8")
		other := (f.Schema != nil || f.Name != "") && f.Type != FormatJSONSchema || f.Regex != "" && f.Type != FormatRegex ||
			f.Choice != nil && f.Type != FormatChoice
		p.check(!other, "response_format of type %q has fields of another type", f.Type)
	}
	c := s.ToolChoice
	if c == nil {
		return
	}
	known := slices.Contains([]ToolMode{ToolAuto, ToolNone, ToolRequired, ToolNamed}, c.Mode)
	p.check(known, "tool_choice is %q, want auto, none, required or named", c.Mode)
	p.check((c.Mode == ToolNamed) == (c.Name != ""), "tool_choice is %q with the name %q: a name goes with %q", c.Mode,
		c.Name, ToolNamed)
	p.check(s.ResponseFormat == nil || c.Mode != ToolRequired && c.Mode != ToolNamed,
		"response_format and a tool_choice that forces a call exclude each other")
}

// resolveTools checks a tool choice against the tools of a request and returns those that the model sees.
func (s *Sampling) resolveTools(tools []Tool) ([]Tool, error) {
	c := s.ToolChoice
	if c == nil {
		return tools, nil
	}
	var p problems
	switch c.Mode {
	case ToolNone:
		s.ToolChoice = nil // nothing is left to restrict
		return nil, nil
	case ToolRequired:
		p.check(len(tools) > 0, "tool_choice is required, and there are no tools")
	case ToolNamed:
		found := slices.ContainsFunc(tools, func(t Tool) bool { return t.Name == c.Name })
		p.check(found, "tool_choice names %q, which is not among the tools", c.Name)
	}
	return tools, p.err("complete", "send the tool, or another tool_choice")
}
