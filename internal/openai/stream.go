package openai

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/goart-dev/art"
)

// Chunk is one event of a stream.
type Chunk struct {
	ID      string        `json:"id"`
	Object  string        `json:"object"`  // "chat.completion.chunk"
	Created int64         `json:"created"` // Unix seconds
	Model   string        `json:"model"`   // name@step
	Choices []ChunkChoice `json:"choices"` // one; none in the chunk with the usage
	// Usage is set in the last chunk when the request asked for it.
	Usage *Usage `json:"usage,omitempty"`
	// PromptTokenIDs is the exact context, in the first chunk, when return_token_ids asked for it.
	PromptTokenIDs []int32 `json:"prompt_token_ids,omitempty"`
}

// ChunkChoice is what an event adds to the reply.
type ChunkChoice struct {
	Index        int       `json:"index"`
	Delta        Delta     `json:"delta"`
	Logprobs     *Logprobs `json:"logprobs"`
	FinishReason *string   `json:"finish_reason"` // set in the last one
	// TokenIDs are the sampled tokens, when return_token_ids asked for them. They come in the last one.
	TokenIDs []int32 `json:"token_ids,omitempty"`
}

// Delta is a piece of the message.
type Delta struct {
	Role             art.Role        `json:"role,omitempty"`
	Content          *string         `json:"content,omitempty"`
	ReasoningContent string          `json:"reasoning_content,omitempty"`
	ToolCalls        []ToolCallDelta `json:"tool_calls,omitempty"`
}

// ToolCallDelta is a piece of a tool call; here it is always a whole one.
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

// chunks cuts a response into the events of a stream: role, reasoning, text, each tool call, the end, and the usage if
// it is asked for. Logprobs and token ids come with the end: they are those of the whole reply.
func chunks(resp *Response, opts *StreamOptions) []*Chunk {
	choice := resp.Choices[0]
	var out []*Chunk
	add := func(c ChunkChoice) {
		out = append(out, &Chunk{
			ID: resp.ID, Object: "chat.completion.chunk", Created: resp.Created, Model: resp.Model,
			Choices: []ChunkChoice{c},
		})
	}
	for _, delta := range deltas(&choice.Message) {
		add(ChunkChoice{Delta: delta})
	}
	add(ChunkChoice{FinishReason: &choice.FinishReason, Logprobs: choice.Logprobs, TokenIDs: choice.TokenIDs})
	out[0].PromptTokenIDs = resp.PromptTokenIDs
	if opts != nil && opts.IncludeUsage {
		add(ChunkChoice{})
		last := out[len(out)-1]
		last.Choices, last.Usage = []ChunkChoice{}, resp.Usage
	}
	return out
}

// deltas cuts a message into pieces. The first holds the role alone, with an empty text as clients expect.
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

// encodeEvents writes chunks as server-sent events, and the mark of the end.
func encodeEvents(chunks []*Chunk) ([]byte, error) {
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
