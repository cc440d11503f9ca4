package art

import (
	"encoding/json"
	"slices"
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
		s.Restricts()
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

// cloneTools copies tools and their parameters.
func cloneTools(tools []Tool) []Tool {
	tools = slices.Clone(tools)
	for i := range tools {
		tools[i].Parameters = slices.Clone(tools[i].Parameters)
	}
	return tools
}
