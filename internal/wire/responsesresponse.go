package wire

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
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
	s := &responsesStream{req: req, tokens: tokens}
	if _, err := s.Piece(art.ChoicePiece{Piece: reply.Piece()}); err != nil {
		return nil, err
	}
	s.End([]*art.ChatResponse{reply})
	return s.response, nil
}

// responsesStream writes a reply as the events of the Responses API. Items come one after the other; an item and its
// content are added before their text, and done after it.
type responsesStream struct {
	req      *ResponsesRequest
	tokens   TokenBytes
	response *ResponsesResponse // with the items that are done; nil before the first event
	sequence int
	open     string          // type of the open item; "" is none
	id       string          // of the open item
	text     strings.Builder // of the open item
	logprobs []TokenLogprob  // of the open item
	waiting  []TokenLogprob  // of tokens whose text is held back
}

// NewResponsesStream returns the events of the reply to a request. tokens is called for logprobs only.
func NewResponsesStream(req *ResponsesRequest, tokens TokenBytes) Stream {
	return &responsesStream{req: req, tokens: tokens}
}

// fields are the fields of an event beside its type and number.
type fields map[string]any

func (s *responsesStream) event(kind string, f fields) Event {
	f["type"], f["sequence_number"] = kind, s.sequence
	s.sequence++
	return Event{Name: kind, Data: f}
}

// about returns an event about the whole response, as it is now.
func (s *responsesStream) about(kind string) Event {
	snapshot := *s.response
	return s.event(kind, fields{"response": &snapshot})
}

func (s *responsesStream) Piece(p art.ChoicePiece) ([]Event, error) {
	var out []Event
	if s.response == nil {
		if s.req.WantsLogprobs() && p.PromptIDs == nil {
			return nil, FieldError("include", "has %q, which is not supported by model %s, which is frozen: "+
				"its replies carry no tokens", logprobsIncluded, p.Model)
		}
		resp := &ResponsesResponse{
			ID: itemID("resp", p.ID), Object: "response", CreatedAt: time.Now().Unix(), Status: inProgress,
			Instructions: s.req.Instructions, MaxOutputTokens: s.req.MaxOutputTokens, Metadata: s.req.Metadata, Model: p.Model,
			Output: []any{}, ParallelToolCalls: true, Temperature: s.req.Temperature, TopP: s.req.TopP,
			ToolChoice: cmp.Or(s.req.ToolChoice, "auto"), Tools: s.req.WireTools,
		}
		if len(resp.Metadata) == 0 {
			resp.Metadata = json.RawMessage("{}")
		}
		if len(resp.Tools) == 0 || string(resp.Tools) == "null" {
			resp.Tools = json.RawMessage("[]")
		}
		s.response = resp
		out = append(out, s.about("response.created"), s.about("response.in_progress"))
	}
	if s.req.WantsLogprobs() && p.Reasoning == "" {
		s.waiting = append(s.waiting, newLogprobs(p.IDs, p.Logprobs, p.TopLogprobs, s.tokens).Content...)
	}
	if p.Reasoning != "" {
		out = append(out, s.start("reasoning", "rs", ReasoningText{Type: "reasoning_text"})...)
		out = append(out, s.add("response.reasoning_text.delta", p.Reasoning, nil))
	}
	if p.Content != "" {
		out = append(out, s.start("message", "msg", newOutputText("", nil))...)
		out = append(out, s.add("response.output_text.delta", p.Content, s.waiting))
		s.waiting = nil
	}
	for _, call := range p.ToolCalls {
		out = append(out, s.call(call)...)
	}
	return out, nil
}

// newOutputText returns the text of a message. Its lists are not null.
func newOutputText(text string, logprobs []TokenLogprob) OutputText {
	return OutputText{
		Type: "output_text", Text: text, Annotations: []struct{}{}, Logprobs: append([]TokenLogprob{}, logprobs...),
	}
}

// start begins an item with text, unless one of the type is open.
func (s *responsesStream) start(kind, prefix string, part any) []Event {
	if s.open == kind {
		return nil
	}
	out := s.finish(completed)
	s.open = kind
	s.id = fmt.Sprintf("%s_%d", itemID(prefix, s.response.ID), len(s.response.Output))
	return append(out,
		s.event("response.output_item.added", fields{"output_index": len(s.response.Output), "item": s.item(inProgress)}),
		s.event("response.content_part.added", s.place(fields{"part": part})))
}

// place adds where the text of the open item is.
func (s *responsesStream) place(f fields) fields {
	f["item_id"], f["output_index"], f["content_index"] = s.id, len(s.response.Output), 0
	return f
}

func (s *responsesStream) add(kind, text string, logprobs []TokenLogprob) Event {
	s.text.WriteString(text)
	s.logprobs = append(s.logprobs, logprobs...)
	f := s.place(fields{"delta": text})
	if s.open == "message" {
		f["logprobs"] = append([]TokenLogprob{}, logprobs...)
	}
	return s.event(kind, f)
}

// item returns the open item as it is now. One that has just begun has no content.
func (s *responsesStream) item(status string) any {
	if s.open == "reasoning" {
		item := ReasoningItem{Type: s.open, ID: s.id, Status: status, Summary: []struct{}{}, Content: []ReasoningText{}}
		if s.text.Len() > 0 {
			item.Content = []ReasoningText{{Type: "reasoning_text", Text: s.text.String()}}
		}
		return item
	}
	item := MessageItem{Type: s.open, ID: s.id, Role: "assistant", Status: status, Content: []OutputText{}}
	if s.text.Len() > 0 {
		item.Content = []OutputText{newOutputText(s.text.String(), s.logprobs)}
	}
	return item
}

func (s *responsesStream) finish(status string) []Event {
	if s.open == "" {
		return nil
	}
	item := s.item(status)
	done := s.place(fields{"text": s.text.String()})
	kind, part := "response.reasoning_text.done", any(ReasoningText{Type: "reasoning_text", Text: s.text.String()})
	if s.open == "message" {
		kind, part = "response.output_text.done", newOutputText(s.text.String(), s.logprobs)
		done["logprobs"] = append([]TokenLogprob{}, s.logprobs...)
	}
	out := []Event{
		s.event(kind, done),
		s.event("response.content_part.done", s.place(fields{"part": part})),
		s.event("response.output_item.done", fields{"output_index": len(s.response.Output), "item": item}),
	}
	s.response.Output = append(s.response.Output, item)
	s.open, s.logprobs = "", nil
	s.text.Reset()
	return out
}

func (s *responsesStream) call(call art.ToolCall) []Event {
	out, index := s.finish(completed), len(s.response.Output)
	item := CallItem{
		Type: "function_call", ID: fmt.Sprintf("%s_%d", itemID("fc", s.response.ID), index), CallID: call.ID,
		Name: call.Name, Status: inProgress,
	}
	out = append(out, s.event("response.output_item.added", fields{"output_index": index, "item": item}))
	item.Arguments, item.Status = call.Arguments, completed
	out = append(out,
		s.event("response.function_call_arguments.delta",
			fields{"output_index": index, "item_id": item.ID, "delta": call.Arguments}),
		s.event("response.function_call_arguments.done",
			fields{"output_index": index, "item_id": item.ID, "name": call.Name, "arguments": call.Arguments}),
		s.event("response.output_item.done", fields{"output_index": index, "item": item}))
	s.response.Output = append(s.response.Output, item)
	return out
}

func (s *responsesStream) End(replies []*art.ChatResponse) []Event {
	r := replies[0]
	status := completed
	if r.Finish == art.FinishLength {
		status = incomplete
		s.response.IncompleteDetails = &IncompleteDetails{Reason: "max_output_tokens"}
	}
	out := s.finish(status)
	s.response.Status, s.response.Usage = status, &ResponsesUsage{
		InputTokens: r.Usage.PromptTokens, InputTokensDetails: PromptDetails{CachedTokens: r.Usage.CachedTokens},
		OutputTokens: r.Usage.CompletionTokens, TotalTokens: r.Usage.PromptTokens + r.Usage.CompletionTokens,
	}
	return append(out, s.about("response."+status))
}

func (s *responsesStream) Fail(e *Error) []Event {
	code := "server_error"
	if e.Status < http.StatusInternalServerError {
		code = "invalid_prompt"
	}
	s.response.Status, s.response.Error = failed, &ResponsesError{Code: code, Message: e.Message}
	problem := s.event("error", fields{"code": code, "message": e.Message, "param": orNull(e.Param)})
	return []Event{problem, s.about("response." + failed)}
}
