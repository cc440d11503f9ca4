package wire

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/goart-dev/art"
)

// ChatChunk is one event of a stream of chat completions.
type ChatChunk struct {
	ID      string        `json:"id"`
	Object  string        `json:"object"`  // "chat.completion.chunk"
	Created int64         `json:"created"` // Unix seconds
	Model   string        `json:"model"`   // name@step
	Choices []ChunkChoice `json:"choices"` // one; none in the chunk with the usage
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
	// TokenIDs are the sampled tokens, in the last one, if return_token_ids is set.
	TokenIDs []int32 `json:"token_ids,omitempty"`
}

// Delta is a piece of the message.
type Delta struct {
	Role             art.Role        `json:"role,omitempty"`
	Content          *string         `json:"content,omitempty"`
	ReasoningContent string          `json:"reasoning_content,omitempty"`
	ToolCalls        []ToolCallDelta `json:"tool_calls,omitempty"`
}

// ToolCallDelta is a piece of a tool call: today always the whole call.
type ToolCallDelta struct {
	Index    int           `json:"index"`
	ID       string        `json:"id"`
	Type     string        `json:"type"` // "function"
	Function FunctionDelta `json:"function"`
}

// FunctionDelta is the function of a [ToolCallDelta].
type FunctionDelta struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// Chunks splits a response into the events of a stream: role, reasoning, text, each tool call, the finish reason, and
// the usage if opts include it. Logprobs and token ids are those of the whole reply and come with the finish reason.
func (r *ChatResponse) Chunks(opts *StreamOptions) []*ChatChunk {
	choice := r.Choices[0]
	var out []*ChatChunk
	add := func(c ChunkChoice) {
		out = append(out, &ChatChunk{
			ID: r.ID, Object: "chat.completion.chunk", Created: r.Created, Model: r.Model, Choices: []ChunkChoice{c},
		})
	}
	for _, delta := range deltas(&choice.Message) {
		add(ChunkChoice{Delta: delta})
	}
	add(ChunkChoice{FinishReason: &choice.FinishReason, Logprobs: choice.Logprobs, TokenIDs: choice.TokenIDs})
	out[0].PromptTokenIDs = r.PromptTokenIDs
	if opts != nil && opts.IncludeUsage {
		add(ChunkChoice{})
		last := out[len(out)-1]
		last.Choices, last.Usage = []ChunkChoice{}, r.Usage
	}
	return out
}

// deltas splits a message into pieces. The first has the role and an empty text, as clients expect.
func deltas(m *art.Message) []Delta {
	out := []Delta{{Role: art.RoleAssistant, Content: new(string)}}
	if m.Reasoning != "" {
		out = append(out, Delta{ReasoningContent: m.Reasoning})
	}
	if m.Content != "" {
		out = append(out, Delta{Content: &m.Content})
	}
	for i, call := range m.ToolCalls {
		out = append(out, Delta{ToolCalls: []ToolCallDelta{{
			Index: i, ID: call.ID, Type: "function",
			Function: FunctionDelta{Name: call.Name, Arguments: call.Arguments},
		}}})
	}
	return out
}

// EncodeEvents writes chunks as server-sent events, followed by OpenAI's end marker.
func EncodeEvents(chunks []*ChatChunk) ([]byte, error) {
	var out bytes.Buffer
	for _, c := range chunks {
		data, err := json.Marshal(c)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&out, "data: %s\n\n", data)
	}
	out.WriteString("data: [DONE]\n\n")
	return out.Bytes(), nil
}
