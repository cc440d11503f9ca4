package art

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Role says who wrote a message. The values are OpenAI's.
type Role string

// The roles of the chat completions wire format.
const (
	RoleSystem    Role = "system"
	RoleDeveloper Role = "developer"
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleTool      Role = "tool"
)

// Message is one turn of a conversation.
//
// Its JSON is OpenAI's chat message. A message that was read from JSON keeps its unknown fields, the order of its keys
// and the form of its content (string, null, list of parts), and is written back the same; see [Message.UnmarshalJSON].
type Message struct {
	Role Role
	// Content is the text of the message. For a list of parts it is the text parts, joined.
	Content string
	// Reasoning is the model's reasoning before its answer, where its format separates the two ("reasoning_content").
	Reasoning string
	// ToolCalls are the calls that an assistant makes.
	ToolCalls []ToolCall
	// ToolCallID is the id of the call that a message of [RoleTool] answers.
	ToolCallID string
	// Name is the optional name of the participant.
	Name string
	// Sample is set exactly when the model being trained wrote this message: that is what is trained on.
	// It is stored with the trajectory and is not part of the wire JSON.
	Sample *Sample

	wire []wireField // JSON that the fields above do not hold; nil for a message made in Go
}

// ToolCall is one function call of an assistant.
type ToolCall struct {
	ID string
	// Name of the function.
	Name string
	// Arguments is the JSON text as the model wrote it: it may be invalid.
	Arguments string

	wire []wireField
}

// Tool describes a function that the model may call. Parameters keep the order of their keys, because the order is
// part of the prompt.
type Tool struct {
	Name        string
	Description string
	// Parameters is a JSON Schema.
	Parameters json.RawMessage

	wire []wireField
}

// Sample is the record of how the engine wrote one message, never a reconstruction of it. Training uses these ids and
// logprobs; text is never encoded again.
type Sample struct {
	PromptIDs []int32   // the exact context
	IDs       []int32   // sampled, including the stop token if it was sampled
	Logprobs  []float32 // of IDs, under the policy at Step, before temperature, top-k and top-p
	Sampled   []float32 // logprobs of IDs under the distribution that was sampled from; nil when equal to Logprobs
	Forced    []bool    // tokens that a grammar left no choice about, which are not trained on; nil when there are none
	Settings  Sampling
	Step      int    // policy step that sampled
	Finish    string // one of the Finish constants
}

// Why a completion ended.
const (
	FinishStop      = "stop"       // an end token or a stop string
	FinishLength    = "length"     // the token limit or the end of the context
	FinishToolCalls = "tool_calls" // an end token, and the message has tool calls
)

// Sampling is the full set of sampling parameters, with the seed: with the same weights and prompt it reproduces a
// sample.
type Sampling struct {
	Temperature float64  `json:"temperature"` // 0 is greedy
	TopP        float64  `json:"top_p"`       // 1 is off
	TopK        int      `json:"top_k"`       // 0 is off
	MaxTokens   int      `json:"max_tokens"`  // 0 is the rest of the context
	Stop        []string `json:"stop,omitempty"`
	Seed        uint64   `json:"seed"`

	// What the fields of the same names in [ChatOptions] say. 0 and empty are off; so is a RepetitionPenalty of 1.
	MinP              float64           `json:"min_p,omitempty"`
	RepetitionPenalty float64           `json:"repetition_penalty,omitempty"`
	PresencePenalty   float64           `json:"presence_penalty,omitempty"`
	FrequencyPenalty  float64           `json:"frequency_penalty,omitempty"`
	LogitBias         map[int32]float64 `json:"logit_bias,omitempty"`
	MinTokens         int               `json:"min_tokens,omitempty"`
	StopTokenIDs      []int32           `json:"stop_token_ids,omitempty"`
	AllowedTokenIDs   []int32           `json:"allowed_token_ids,omitempty"` // nil is all tokens
	BadWords          []string          `json:"bad_words,omitempty"`
	IgnoreEOS         bool              `json:"ignore_eos,omitempty"`
	ResponseFormat    *ResponseFormat   `json:"response_format,omitempty"` // nil is any text
	ToolChoice        *ToolChoice       `json:"tool_choice,omitempty"`     // nil leaves it to the model

	// What a response lists besides its sample; see [ChatOptions]. They do not change what is sampled, and a [Sample] does
	// not have them.
	TopLogprobs    int  `json:"-"`
	PromptLogprobs *int `json:"-"` // nil is off
}

// Reshapes reports whether tokens are drawn from another distribution than the policy's: whether [Sample].Sampled
// differs from Logprobs.
func (s Sampling) Reshapes() bool {
	return s.Temperature != 1 || s.TopP < 1 || s.TopK > 0 || s.MinP > 0 || s.MinTokens > 0 || len(s.LogitBias) > 0 ||
		s.RepetitionPenalty != 0 && s.RepetitionPenalty != 1 || s.PresencePenalty != 0 || s.FrequencyPenalty != 0 ||
		s.AllowedTokenIDs != nil || len(s.BadWords) > 0 || s.Restricts()
}

// TokenLogprob is a token that was sampled or might have been.
type TokenLogprob struct {
	ID      int32
	Logprob float32 // under the policy, as in [Sample].Logprobs
	Rank    int     // 1 for the likeliest token of the vocabulary; ties are in the order of ids
}

// System returns a system message.
func System(content string) Message { return Message{Role: RoleSystem, Content: content} }

// User returns a user message.
func User(content string) Message { return Message{Role: RoleUser, Content: content} }

// Assistant returns an assistant message that the model did not write: context, or a target of supervised training.
func Assistant(content string) Message { return Message{Role: RoleAssistant, Content: content} }

// ToolResult returns the answer to the tool call of the given id.
func ToolResult(callID, content string) Message {
	return Message{Role: RoleTool, ToolCallID: callID, Content: content}
}

// cloneMessages copies messages and their tool calls. What wire holds is never changed and is shared.
func cloneMessages(messages []Message) []Message {
	messages = slices.Clone(messages)
	for i := range messages {
		messages[i].ToolCalls = slices.Clone(messages[i].ToolCalls)
	}
	return messages
}

func cloneTools(tools []Tool) []Tool {
	tools = slices.Clone(tools)
	for i := range tools {
		tools[i].Parameters = slices.Clone(tools[i].Parameters)
	}
	return tools
}

// wireError is what a failed UnmarshalJSON or MarshalJSON returns.
func wireError(op string, err error) error {
	if err == nil {
		return nil
	}
	return &Error{op, fmt.Errorf("%w: %w", ErrInvalid, err), "the form is that of OpenAI's chat completions"}
}

// UnmarshalJSON reads a message in OpenAI's wire form. Content is a string, null, absent, or a list of parts, of which
// Content holds the text parts, joined.
//
// [Message.MarshalJSON] writes back what was read: unknown fields, the order of keys, the form of the content. Fields
// that were changed since override what was read. A message whose role is missing, or in which a field has the wrong
// type, is an [ErrInvalid] that names the field.
func (m *Message) UnmarshalJSON(data []byte) error {
	return wireError("read message", m.decode(data))
}

func (m *Message) decode(data []byte) error {
	d := newDecoder(data)
	read := Message{Role: Role(d.required("role"))}
	content, err := contentText(d.raw("content"))
	d.nested("content", err)
	read.Content, read.Reasoning = content, d.text("reasoning_content")
	read.ToolCallID, read.Name = d.text("tool_call_id"), d.text("name")
	read.ToolCalls = elements(d, "tool_calls", (*ToolCall).decode)
	if read.Role == "" {
		d.fail("role", "is empty")
	}
	if d.err != nil {
		return d.err
	}
	read.wire = keepWire(d.fields, read.known())
	*m = read
	return nil
}

// contentText returns the text of a content: a string itself, or the joined text parts of a list. Parts of other types
// are ignored.
func contentText(raw json.RawMessage) (string, error) {
	switch kind := kindOf(raw); kind {
	case kindString:
		return stringOf(raw), nil
	case kindNull, "":
		return "", nil
	case kindArray:
		var text strings.Builder
		for i, part := range parts(raw) {
			d := newDecoder(part)
			if d.required("type") == "text" {
				text.WriteString(d.required("text"))
			}
			if d.err != nil {
				return "", within(fmt.Sprintf("[%d]", i), d.err)
			}
		}
		return text.String(), nil
	default:
		return "", fmt.Errorf("is %s, want a string, null or an array of parts", kind)
	}
}

func parts(raw json.RawMessage) []json.RawMessage {
	d := decoder{fields: []wireField{{key: "content", raw: raw}}}
	return d.array("content")
}

// media returns the content as it was read if it has parts that Content does not hold, such as images, else nil.
func (m *Message) media() json.RawMessage {
	for _, f := range m.wire {
		if f.key != "content" || kindOf(f.raw) != kindArray {
			continue
		}
		isMedia := func(part json.RawMessage) bool { return newDecoder(part).text("type") != "text" }
		if slices.ContainsFunc(parts(f.raw), isMedia) {
			return f.raw
		}
	}
	return nil
}

// MarshalJSON writes OpenAI's wire form; see [Message.UnmarshalJSON]. A message made in Go has the keys role, content,
// reasoning_content, tool_calls, tool_call_id, name; empty ones are left out, and the content of a message that has
// only tool calls is null. A message without a role is an [ErrInvalid].
func (m Message) MarshalJSON() ([]byte, error) {
	if m.Role == "" {
		return nil, wireError("write message", &fieldError{"role", "is empty"})
	}
	if m.wire == nil {
		return m.canonical(), nil
	}
	return appendObject(nil, m.wire, m.known()), nil
}

// canonical writes the fields of known, which are all that a message made in Go has, in one pass.
func (m *Message) canonical() []byte {
	b := make([]byte, 0, len(m.Content)+len(m.Reasoning)+64)
	b = appendQuoted(append(b, `{"role":`...), string(m.Role))
	b = append(b, `,"content":`...)
	if m.Content == "" && len(m.ToolCalls) > 0 {
		b = append(b, "null"...)
	} else {
		b = appendQuoted(b, m.Content)
	}
	b = appendText(b, "reasoning_content", m.Reasoning)
	if calls, _ := arrayOf(m.ToolCalls); calls != nil { // calls always encode
		b = appendField(b, "tool_calls", calls)
	}
	b = appendText(b, "tool_call_id", m.ToolCallID)
	b = appendText(b, "name", m.Name)
	return append(b, '}')
}

func appendText(b []byte, key, value string) []byte {
	if value == "" {
		return b
	}
	return appendField(b, key, quote(value))
}

func (m *Message) known() []knownField {
	content := quote(m.Content)
	calls, _ := arrayOf(m.ToolCalls)
	if m.Content == "" && calls != nil {
		content = json.RawMessage("null")
	}
	return []knownField{
		textField("role", string(m.Role)),
		{key: "content", raw: content, zero: m.Content == "", says: func(raw json.RawMessage) bool {
			text, err := contentText(raw)
			return err == nil && text == m.Content
		}},
		textField("reasoning_content", m.Reasoning),
		{key: "tool_calls", raw: calls, zero: calls == nil, says: func(json.RawMessage) bool {
			return calls == nil // of tool calls only null and [] are kept
		}},
		textField("tool_call_id", m.ToolCallID),
		textField("name", m.Name),
	}
}

func textField(key, value string) knownField {
	k := knownField{key: key, zero: value == "", says: func(raw json.RawMessage) bool { return stringOf(raw) == value }}
	if value != "" {
		k.raw = quote(value)
	}
	return k
}

// UnmarshalJSON reads a tool call in OpenAI's wire form. Arguments is the text of function.arguments; from servers that
// send an object instead it is that object's JSON. Calls of another type than "function" are kept as read, and have no
// Name. It keeps unknown fields and reports errors like [Message.UnmarshalJSON].
func (c *ToolCall) UnmarshalJSON(data []byte) error {
	return wireError("read tool call", c.decode(data))
}

func (c *ToolCall) decode(data []byte) error {
	d := newDecoder(data)
	read := ToolCall{ID: d.text("id")}
	if function := d.function(); function != nil {
		read.Name, read.Arguments = function.required("name"), function.arguments()
		d.nested("function", function.err)
	}
	if d.err != nil {
		return d.err
	}
	read.wire = keepWire(d.fields, read.known(d.raw("function") != nil))
	*c = read
	return nil
}

// function returns the decoder of the field "function". It is nil, and no error, for other types than "function".
func (d *decoder) function() *decoder {
	raw, kind := d.raw("function"), d.text("type")
	if raw == nil {
		if kind == "" || kind == "function" {
			d.fail("function", "is missing")
		}
		return nil
	}
	return newDecoder(raw)
}

func (d *decoder) arguments() string {
	raw := d.raw("arguments")
	if kindOf(raw) == kindObject {
		return string(normalize(raw))
	}
	return d.text("arguments")
}

// MarshalJSON writes OpenAI's wire form; see [ToolCall.UnmarshalJSON].
func (c ToolCall) MarshalJSON() ([]byte, error) {
	return appendObject(nil, c.wire, c.known(isFunction(c.wire, c.Name))), nil
}

// isFunction reports whether a tool or a call has the field "function": only one that was read without it has none.
func isFunction(wire []wireField, name string) bool {
	return wire == nil || name != "" || slices.ContainsFunc(wire, func(f wireField) bool { return f.key == "function" })
}

func (c *ToolCall) known(isFunction bool) []knownField {
	id := textField("id", c.ID)
	id.raw = quote(c.ID)
	known := []knownField{id, typeField()}
	if !isFunction {
		return known
	}
	name := textField("name", c.Name)
	name.raw = quote(c.Name)
	arguments := knownField{key: "arguments", raw: quote(c.Arguments), zero: c.Arguments == ""}
	arguments.says = func(raw json.RawMessage) bool {
		return kindOf(raw) == kindObject && string(raw) == c.Arguments ||
			kindOf(raw) != kindObject && stringOf(raw) == c.Arguments
	}
	return append(known, knownField{key: "function", sub: []knownField{name, arguments}})
}

// typeField is the type of a tool or a call. No Go field holds it, so what was read stays.
func typeField() knownField {
	return knownField{key: "type", raw: quote("function"), zero: true, says: func(json.RawMessage) bool { return true }}
}

// UnmarshalJSON reads a tool in OpenAI's wire form. Parameters are kept as read, without insignificant space. Tools of
// another type than "function" are kept as read, and have no Name. It keeps unknown fields and reports errors like
// [Message.UnmarshalJSON].
func (t *Tool) UnmarshalJSON(data []byte) error {
	return wireError("read tool", t.decode(data))
}

func (t *Tool) decode(data []byte) error {
	d := newDecoder(data)
	var read Tool
	if function := d.function(); function != nil {
		read.Name, read.Description = function.required("name"), function.text("description")
		read.Parameters = function.parameters()
		d.nested("function", function.err)
	}
	if d.err != nil {
		return d.err
	}
	read.wire = keepWire(d.fields, read.known(d.raw("function") != nil))
	*t = read
	return nil
}

// parameters returns the schema, which is an object, true or false; absent and null are nil.
func (d *decoder) parameters() json.RawMessage {
	raw := d.raw("parameters")
	switch kind := kindOf(raw); kind {
	case kindNull, "":
		return nil
	case kindObject, kindBool:
		return normalize(raw)
	default:
		d.fail("parameters", "is %s, want an object", kind)
		return nil
	}
}

// MarshalJSON writes OpenAI's wire form; see [Tool.UnmarshalJSON]. Empty Description and Parameters are left out.
// Parameters that are not JSON are an [ErrInvalid].
func (t Tool) MarshalJSON() ([]byte, error) {
	if t.Parameters != nil && !json.Valid(t.Parameters) {
		return nil, wireError("write tool", &fieldError{"function.parameters", "of " + t.Name + " is not valid JSON"})
	}
	return appendObject(nil, t.wire, t.known(isFunction(t.wire, t.Name))), nil
}

func (t *Tool) known(isFunction bool) []knownField {
	known := []knownField{typeField()}
	if !isFunction {
		return known
	}
	name := textField("name", t.Name)
	name.raw = quote(t.Name)
	parameters := knownField{key: "parameters", zero: t.Parameters == nil, says: func(json.RawMessage) bool {
		return t.Parameters == nil // only null is kept
	}}
	if t.Parameters != nil {
		parameters.raw = normalize(t.Parameters)
	}
	sub := []knownField{name, textField("description", t.Description), parameters}
	return append(known, knownField{key: "function", sub: sub})
}
