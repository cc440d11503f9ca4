package wire

import (
	"encoding/json"
	"time"

	"github.com/goart-dev/art"
)

// ResponsesResponse is the body of a response of /v1/responses, and what its stream says about the response.
type ResponsesResponse struct {
	ID                string             `json:"id"`
	Object            string             `json:"object"` // "response"
	CreatedAt         int64              `json:"created_at"`
	Status            string             `json:"status"` // "in_progress", "completed", "incomplete" or "failed"
	Error             *ResponsesError    `json:"error"`
	IncompleteDetails *IncompleteDetails `json:"incomplete_details"`
	Instructions      *string            `json:"instructions"`
	MaxOutputTokens   *int               `json:"max_output_tokens"`
	Metadata          json.RawMessage    `json:"metadata"`
	Model             string             `json:"model"`  // name@step
	Output            []any              `json:"output"` // of the Item types
	ParallelToolCalls bool               `json:"parallel_tool_calls"`
	Temperature       *float64           `json:"temperature"`
	ToolChoice        ToolChoice         `json:"tool_choice"`
	Tools             json.RawMessage    `json:"tools"`
	TopP              *float64           `json:"top_p"`
	Usage             *ResponsesUsage    `json:"usage"`
}

// ResponsesError says why a response failed.
type ResponsesError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// IncompleteDetails say why a response ended early.
type IncompleteDetails struct {
	Reason string `json:"reason"` // "max_output_tokens"
}

// ResponsesUsage counts tokens.
type ResponsesUsage struct {
	InputTokens         int           `json:"input_tokens"`
	InputTokensDetails  PromptDetails `json:"input_tokens_details"`
	OutputTokens        int           `json:"output_tokens"`
	OutputTokensDetails OutputDetails `json:"output_tokens_details"`
	TotalTokens         int           `json:"total_tokens"`
}

// OutputDetails splits the tokens of a reply. How many of them are reasoning is not known.
type OutputDetails struct {
	ReasoningTokens int `json:"reasoning_tokens"` // always 0
}

// MessageItem is the text of a reply.
type MessageItem struct {
	Type    string       `json:"type"` // "message"
	ID      string       `json:"id"`
	Role    string       `json:"role"` // "assistant"
	Status  string       `json:"status"`
	Content []OutputText `json:"content"`
}

// OutputText is the content of a [MessageItem].
type OutputText struct {
	Type        string         `json:"type"` // "output_text"
	Text        string         `json:"text"`
	Annotations []struct{}     `json:"annotations"`
	Logprobs    []TokenLogprob `json:"logprobs"`
}

// ReasoningItem is the reasoning of a reply.
type ReasoningItem struct {
	Type    string          `json:"type"` // "reasoning"
	ID      string          `json:"id"`
	Status  string          `json:"status"`
	Summary []struct{}      `json:"summary"`
	Content []ReasoningText `json:"content"`
}

// ReasoningText is the content of a [ReasoningItem].
type ReasoningText struct {
	Type string `json:"type"` // "reasoning_text"
	Text string `json:"text"`
}

// CallItem is a tool call of a reply.
type CallItem struct {
	Type      string `json:"type"` // "function_call"
	ID        string `json:"id"`
	CallID    string `json:"call_id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
	Status    string `json:"status"`
}

// States of a response and of its items.
const (
	inProgress = "in_progress"
	completed  = "completed"
	incomplete = "incomplete"
	failed     = "failed"
)

// NewResponsesResponse converts the reply to a request. tokens is called for logprobs only.
func NewResponsesResponse(
	req *ResponsesRequest, reply *art.ChatResponse, tokens TokenBytes,
) (*ResponsesResponse, error) {
	s := newResponsesStream(req, tokens)
	if _, err := s.Piece(art.ChoicePiece{Piece: reply.Piece()}); err != nil {
		return nil, err
	}
	s.End([]*art.ChatResponse{reply})
	return s.response, nil
}

// begin returns a response to which nothing has been said.
func (r *ResponsesRequest) begin(id, model string) *ResponsesResponse {
	resp := &ResponsesResponse{
		ID: itemID("resp", id), Object: "response", CreatedAt: time.Now().Unix(), Status: inProgress,
		Instructions: r.Instructions, MaxOutputTokens: r.MaxOutputTokens, Metadata: r.Metadata, Model: model,
		Output: []any{}, ParallelToolCalls: true, Temperature: r.Temperature, ToolChoice: r.ToolChoice,
		Tools: r.WireTools, TopP: r.TopP,
	}
	if resp.ToolChoice == "" {
		resp.ToolChoice = "auto"
	}
	if len(resp.Metadata) == 0 {
		resp.Metadata = json.RawMessage("{}")
	}
	if len(resp.Tools) == 0 || string(resp.Tools) == "null" {
		resp.Tools = json.RawMessage("[]")
	}
	return resp
}

// newResponsesUsage converts token counts.
func newResponsesUsage(u art.Usage) *ResponsesUsage {
	return &ResponsesUsage{
		InputTokens: u.PromptTokens, InputTokensDetails: PromptDetails{CachedTokens: u.CachedTokens},
		OutputTokens: u.CompletionTokens, TotalTokens: u.PromptTokens + u.CompletionTokens,
	}
}
