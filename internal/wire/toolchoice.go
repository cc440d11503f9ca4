package wire

import (
	"bytes"
	"cmp"
	"encoding/json"

	"github.com/goart-dev/art"
)

// ToolChoice says whether the model may call tools: "auto", "none", "required", the JSON of an object that names one,
// or "" for the default. It holds what the client sent; whether that is valid is checked later.
type ToolChoice string

// NewToolChoice converts a tool choice to the form of chat completions; "" of nil.
func NewToolChoice(c *art.ToolChoice) ToolChoice {
	if c == nil {
		return ""
	}
	if c.Mode != art.ToolNamed {
		return ToolChoice(c.Mode)
	}
	name, _ := json.Marshal(c.Name) // a string always encodes
	return ToolChoice(`{"type":"function","function":{"name":` + string(name) + `}}`)
}

// UnmarshalJSON keeps a string as it is, and an object as its JSON text.
func (c *ToolChoice) UnmarshalJSON(data []byte) error {
	var s *string
	if err := json.Unmarshal(data, &s); err != nil {
		*c = ToolChoice(data)
		return nil
	}
	if s != nil {
		*c = ToolChoice(*s)
	}
	return nil
}

// MarshalJSON writes what UnmarshalJSON read.
func (c ToolChoice) MarshalJSON() ([]byte, error) {
	if bytes.HasPrefix([]byte(c), []byte("{")) {
		return []byte(c), nil
	}
	return json.Marshal(string(c))
}

// choice converts a tool choice; nil of "". ok is false for one that is not known.
func (c ToolChoice) choice() (choice *art.ToolChoice, ok bool) {
	switch c {
	case "":
		return nil, true
	case "auto", "none", "required":
		return &art.ToolChoice{Mode: art.ToolMode(c)}, true
	}
	var object struct {
		Type     string
		Name     string // as in the Responses API
		Function struct{ Name string }
	}
	if json.Unmarshal([]byte(c), &object) != nil || object.Type != "function" {
		return nil, false
	}
	name := cmp.Or(object.Name, object.Function.Name)
	return &art.ToolChoice{Mode: art.ToolNamed, Name: name}, name != ""
}

// validate finds a tool choice that is not known.
func (c ToolChoice) validate(p *problemList) {
	_, ok := c.choice()
	p.require(ok, "tool_choice", `must be "auto", "none", "required" or an object of type "function" with a name`)
}

// allowOneCall drops parallel_tool_calls false from the fields of a request that names a tool: the reply is one call
// then.
func allowOneCall(fields map[string]json.RawMessage) {
	var c ToolChoice
	if raw, set := fields["tool_choice"]; !set || c.UnmarshalJSON(raw) != nil {
		return
	}
	named, ok := c.choice()
	if ok && named != nil && named.Mode == art.ToolNamed && string(fields["parallel_tool_calls"]) == "false" {
		delete(fields, "parallel_tool_calls")
	}
}
