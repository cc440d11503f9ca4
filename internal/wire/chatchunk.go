package wire

import "github.com/goart-dev/art"

// ChatChunk is one event of a stream of chat completions.
type ChatChunk struct {
	ID      string        `json:"id"`
	Object  string        `json:"object"`  // "chat.completion.chunk"
	Created int64         `json:"created"` // Unix seconds
	Model   string        `json:"model"`   // name@step
	Choices []ChunkChoice `json:"choices"` // of one index; none in the chunk with the usage
	// Usage is set in the last chunk, if stream_options.include_usage is set.
	Usage *Usage `json:"usage,omitempty"`
	// PromptTokenIDs is the exact context, in the first chunk, if return_token_ids is set.
	PromptTokenIDs []int32 `json:"prompt_token_ids,omitempty"`
}

// ChunkChoice is what a [ChatChunk] adds to the reply.
type ChunkChoice struct {
	Index        int       `json:"index"`
	Delta        Delta     `json:"delta"`
	Logprobs     *Logprobs `json:"logprobs"`
	FinishReason *string   `json:"finish_reason"` // set in the last one
	// StopReason is vLLM's, with FinishReason: the stop string that ended the reply, or the stop token.
	StopReason any `json:"stop_reason,omitempty"`
	// TokenIDs are the tokens that were sampled for this chunk, if return_token_ids is set.
	TokenIDs []int32 `json:"token_ids,omitempty"`
}

// Delta is a piece of the message. Reasoning is written in both spellings, vLLM's and the older one that more clients
// read.
type Delta struct {
	Role             art.Role        `json:"role,omitempty"`
	Content          *string         `json:"content,omitempty"`
	Reasoning        string          `json:"reasoning,omitempty"`
	ReasoningContent string          `json:"reasoning_content,omitempty"`
	ToolCalls        []ToolCallDelta `json:"tool_calls,omitempty"`
}

// ToolCallDelta is a piece of a tool call. The first one of a call has ID, Type and the name of the function, once:
// clients concatenate the strings of all of them.
type ToolCallDelta struct {
	Index    int           `json:"index"`
	ID       string        `json:"id,omitempty"`
	Type     string        `json:"type,omitempty"` // "function"
	Function FunctionDelta `json:"function"`
}

// FunctionDelta is the function of a [ToolCallDelta].
type FunctionDelta struct {
	Name      string `json:"name,omitempty"`
	Arguments string `json:"arguments"`
}
