package wire

import (
	"cmp"
	"encoding/json"

	"github.com/goart-dev/art"
)

// ResponseFormat is OpenAI's restriction of the text of a reply.
type ResponseFormat struct {
	Type       string            `json:"type"` // "text", "json_object" or "json_schema"
	JSONSchema *JSONSchemaFormat `json:"json_schema,omitempty"`
}

// JSONSchemaFormat is a named schema. It is always enforced, whatever Strict says.
type JSONSchemaFormat struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Schema      json.RawMessage `json:"schema,omitempty"`
	Strict      *bool           `json:"strict,omitempty"`
}

// StructuredOutputs is vLLM's restriction of the text of a reply. It has one of its fields.
type StructuredOutputs struct {
	JSON       json.RawMessage `json:"json,omitempty"` // a schema, or a string that holds one
	Regex      string          `json:"regex,omitempty"`
	Choice     []string        `json:"choice,omitempty"`
	JSONObject bool            `json:"json_object,omitempty"`

	other fieldErrors
}

// fieldErrors are the unsupported fields that an object has.
type fieldErrors []*Error

// structuredUnsupported are the fields of structured_outputs that are not supported.
var structuredUnsupported = fieldTable{
	"disable_additional_properties": {"false"},
	"disable_any_whitespace":        {"false"},
	"grammar":                       nil,
	"structural_tag":                nil,
	"whitespace_pattern":            nil,
}

// UnmarshalJSON reads an object, and notes what of it is not supported.
func (s *StructuredOutputs) UnmarshalJSON(data []byte) error {
	type plain StructuredOutputs
	var read plain
	var fields map[string]json.RawMessage
	if json.Unmarshal(data, &fields) != nil || json.Unmarshal(data, &read) != nil {
		return FieldError("structured_outputs", "must be an object with one of json, regex, choice and json_object")
	}
	var p problemList
	structuredUnsupported.check(&p, fields)
	*s = StructuredOutputs(read)
	for _, e := range p.listed {
		e.Message, e.Param = "structured_outputs."+e.Message, "structured_outputs."+e.Param
		s.other = append(s.other, e)
	}
	if string(s.JSON) == "null" {
		s.JSON = nil
	}
	return nil
}

func (f *ResponseFormat) validate(p *problemList, path string) {
	switch f.Type {
	case "text", "json_object":
	case "json_schema":
		s := f.JSONSchema
		p.require(s != nil && len(s.Schema) > 0 && string(s.Schema) != "null", path, "has no schema")
	default:
		p.require(false, path+".type", "is %s: only text, json_object and json_schema are supported", Quote(f.Type))
	}
}

func (f *ResponseFormat) format() *art.ResponseFormat {
	out := &art.ResponseFormat{Type: art.FormatType(f.Type)}
	if f.Type == "json_schema" {
		out.Name, out.Schema = f.JSONSchema.Name, f.JSONSchema.Schema
	}
	return out
}

func (s *StructuredOutputs) validate(p *problemList) {
	for _, e := range s.other {
		p.add(e)
	}
	n := 0
	for _, set := range []bool{len(s.JSON) > 0, s.Regex != "", len(s.Choice) > 0, s.JSONObject} {
		if set {
			n++
		}
	}
	p.require(n == 1 || len(s.other) > 0,
		"structured_outputs", "must have exactly one of json, regex, choice and json_object")
}

func (s *StructuredOutputs) format() *art.ResponseFormat {
	switch {
	case len(s.JSON) > 0:
		schema := s.JSON
		if text := ""; json.Unmarshal(schema, &text) == nil {
			schema = json.RawMessage(text)
		}
		return &art.ResponseFormat{Type: art.FormatJSONSchema, Schema: schema}
	case s.Regex != "":
		return &art.ResponseFormat{Type: art.FormatRegex, Regex: s.Regex}
	case len(s.Choice) > 0:
		return &art.ResponseFormat{Type: art.FormatChoice, Choice: s.Choice}
	}
	return &art.ResponseFormat{Type: art.FormatJSONObject}
}

// validateFormat checks how the text of the reply is restricted.
func (s *ChatSettings) validateFormat(p *problemList) {
	if s.ResponseFormat != nil {
		s.ResponseFormat.validate(p, "response_format")
	}
	if s.StructuredOutputs != nil {
		s.StructuredOutputs.validate(p)
		p.require(s.ResponseFormat == nil || s.ResponseFormat.Type == "text",
			"structured_outputs", "comes with response_format; send one of them")
	}
}

// format returns how the text of the reply is restricted; nil leaves it to the model's options.
func (s *ChatSettings) format() *art.ResponseFormat {
	switch {
	case s.StructuredOutputs != nil:
		return s.StructuredOutputs.format()
	case s.ResponseFormat != nil:
		return s.ResponseFormat.format()
	}
	return nil
}

// SetFormat sets the fields for a format: OpenAI's where it has one, else vLLM's.
func (s *ChatSettings) SetFormat(f *art.ResponseFormat) {
	if f == nil {
		return
	}
	switch f.Type {
	case art.FormatRegex:
		s.StructuredOutputs = &StructuredOutputs{Regex: f.Regex}
	case art.FormatChoice:
		s.StructuredOutputs = &StructuredOutputs{Choice: f.Choice}
	case art.FormatJSONSchema:
		name := cmp.Or(f.Name, "reply") // OpenAI requires one
		schema := &JSONSchemaFormat{Name: name, Schema: f.Schema, Strict: new(true)}
		s.ResponseFormat = &ResponseFormat{Type: "json_schema", JSONSchema: schema}
	default:
		s.ResponseFormat = &ResponseFormat{Type: string(f.Type)}
	}
}
