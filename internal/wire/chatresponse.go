package wire

import (
	"bytes"
	"encoding/json"
	"slices"
	"time"

	"github.com/goart-dev/art"
)

// ChatResponse is the body of a chat completions response.
type ChatResponse struct {
	ID      string       `json:"id"`
	Object  string       `json:"object"`  // "chat.completion"
	Created int64        `json:"created"` // Unix seconds
	Model   string       `json:"model"`   // name@step
	Choices []ChatChoice `json:"choices"`
	Usage   *Usage       `json:"usage"`
	// PromptTokenIDs is the exact context, if return_token_ids is set.
	PromptTokenIDs []int32 `json:"prompt_token_ids,omitempty"`
	// PromptLogprobs are those of the context, if prompt_logprobs is set.
	PromptLogprobs PromptLogprobs `json:"prompt_logprobs,omitempty"`
}

// ChatChoice is the reply in a [ChatResponse].
type ChatChoice struct {
	Index        int       `json:"index"`
	Message      Message   `json:"message"`
	Logprobs     *Logprobs `json:"logprobs"`
	FinishReason string    `json:"finish_reason"`
	// StopReason is vLLM's: the stop string that ended the reply, or the stop token.
	StopReason any `json:"stop_reason,omitempty"`
	// TokenIDs are the sampled tokens, stop token included, if return_token_ids is set.
	TokenIDs []int32 `json:"token_ids,omitempty"`
	// Sample is the [art.Sample] of the message in its stored form, if [ChatRequest].ReturnSamples is set.
	Sample json.RawMessage `json:"art_sample,omitempty"`
}

// Usage counts tokens.
type Usage struct {
	PromptTokens        int           `json:"prompt_tokens"`
	CompletionTokens    int           `json:"completion_tokens"`
	TotalTokens         int           `json:"total_tokens"`
	PromptTokensDetails PromptDetails `json:"prompt_tokens_details"`
}

// PromptDetails says how many tokens of a prompt were found in the KV cache.
type PromptDetails struct {
	CachedTokens int `json:"cached_tokens"`
}

// newUsage adds up the token counts of replies to n of which there is each prompt. A prompt counts once, and of it what
// was found before the first of its replies had computed it.
func newUsage(replies []*art.ChatResponse, n int) *Usage {
	sum := AddUsage(replies, n)
	return &Usage{
		PromptTokens: sum.PromptTokens, CompletionTokens: sum.CompletionTokens,
		TotalTokens: sum.PromptTokens + sum.CompletionTokens, PromptTokensDetails: PromptDetails{sum.CachedTokens},
	}
}

// AddUsage adds up the token counts of replies to n of which there is each prompt, as newUsage does.
func AddUsage(replies []*art.ChatResponse, n int) (u art.Usage) {
	for prompt := range slices.Chunk(replies, n) {
		cached := prompt[0].Usage.CachedTokens
		for _, r := range prompt {
			cached = min(cached, r.Usage.CachedTokens)
			u.CompletionTokens += r.Usage.CompletionTokens
		}
		u.PromptTokens += prompt[0].Usage.PromptTokens
		u.CachedTokens += cached
	}
	return u
}

// NewChatResponse converts the replies to a request, with their logprobs and token ids if the request set those fields.
// They are an error if a reply has no [art.Sample]. tokens is called for logprobs only.
func NewChatResponse(req *ChatRequest, replies []*art.ChatResponse, tokens TokenBytes) (*ChatResponse, error) {
	first := replies[0]
	resp := &ChatResponse{
		ID:      first.ID,
		Object:  "chat.completion",
		Created: time.Now().Unix(),
		Model:   first.Model,
		Usage:   newUsage(replies, len(replies)),
	}
	for i, r := range replies {
		choice := ChatChoice{
			Index: i, Message: Message{r.Message}, FinishReason: r.Finish, StopReason: req.stopReason(r),
		}
		sample := r.Message.Sample
		if sample == nil && (req.Logprobs || req.ReturnTokenIDs) {
			return nil, noSampleError(&req.ChatSettings, r.Model)
		}
		if req.Logprobs {
			choice.Logprobs = newLogprobs(sample.IDs, sample.Logprobs, r.TopLogprobs, req.tokenTexts(tokens))
		}
		if req.ReturnTokenIDs {
			choice.TokenIDs = sample.IDs
		}
		if req.ReturnSamples && sample != nil {
			var err error
			if choice.Sample, err = EncodeSample(sample); err != nil {
				return nil, err
			}
		}
		resp.Choices = append(resp.Choices, choice)
	}
	if req.ReturnTokenIDs {
		resp.PromptTokenIDs = first.Message.Sample.PromptIDs
	}
	if req.PromptLogprobs != nil {
		resp.PromptLogprobs = newPromptLogprobs(first.PromptLogprobs, tokens)
	}
	return resp, nil
}

// stopReason returns the stop string that ended a reply, or the one of the request's stop token ids; nil if none did.
func (s *ChatSettings) stopReason(r *art.ChatResponse) any {
	if r.Stopped != "" {
		return r.Stopped
	}
	if sample := r.Message.Sample; r.Finish == art.FinishStop && sample != nil && len(sample.IDs) > 0 {
		if last := sample.IDs[len(sample.IDs)-1]; slices.Contains(s.StopTokenIDs, last) {
			return last
		}
	}
	return nil
}

// tokenTexts returns how logprobs show tokens.
func (s *ChatSettings) tokenTexts(tokens TokenBytes) TokenBytes {
	if s.ReturnTokensAsTokenIDs {
		return asTokenIDs
	}
	return tokens
}

// noSampleError says that a reply has none of the tokens that the request wants.
func noSampleError(req *ChatSettings, model string) *Error {
	field := "return_token_ids"
	if req.Logprobs {
		field = "logprobs"
	}
	return FieldError(field, "is not supported by model %s, which is frozen: its replies carry no tokens", model)
}

// Message is a reply in OpenAI's form. Its reasoning is written in both spellings: "reasoning", which is vLLM's, beside
// "reasoning_content", which [art.Message] writes and more clients read.
type Message struct{ art.Message }

// MarshalJSON implements [json.Marshaler].
func (m Message) MarshalJSON() ([]byte, error) {
	data, err := json.Marshal(m.Message)
	if err != nil || m.Reasoning == "" {
		return data, err
	}
	reasoning, err := json.Marshal(m.Reasoning)
	if err != nil {
		return nil, err
	}
	return append(bytes.TrimSuffix(data, []byte("}")), `,"reasoning":`+string(reasoning)+"}"...), nil
}

// readReasoning sets the reasoning of a message that a client has sent in vLLM's spelling only.
func readReasoning(m *art.Message, raw []byte) {
	var read struct {
		Reasoning string `json:"reasoning"`
	}
	if m.Reasoning == "" && bytes.Contains(raw, []byte(`"reasoning"`)) && json.Unmarshal(raw, &read) == nil {
		m.Reasoning = read.Reasoning
	}
}

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

// chatStream writes replies as chat completion chunks. Each reply has the role; reasoning, text and tool calls as they
// come; the finish reason. The usage is last, if it was asked for.
type chatStream struct {
	req    *ChatRequest
	tokens TokenBytes
	head   *ChatChunk // what all chunks have; nil before the first
	begun  []bool     // by the index of the reply
	calls  []int      // tool calls so far, by the index of the reply
}

// NewChatStream returns the events of the replies to a request. tokens is called for logprobs only.
func NewChatStream(req *ChatRequest, tokens TokenBytes) Stream {
	n := req.Choices()
	return &chatStream{req: req, tokens: tokens, begun: make([]bool, n), calls: make([]int, n)}
}

func (s *chatStream) Piece(p art.ChoicePiece) ([]Event, error) {
	var out []Event
	if !s.begun[p.Choice] {
		if (s.req.Logprobs || s.req.ReturnTokenIDs) && p.PromptIDs == nil {
			return nil, noSampleError(&s.req.ChatSettings, p.Model)
		}
		first := s.head == nil
		if first {
			s.head = &ChatChunk{ID: p.ID, Object: "chat.completion.chunk", Created: time.Now().Unix(), Model: p.Model}
		}
		s.begun[p.Choice] = true
		role := s.chunk(ChunkChoice{Index: p.Choice, Delta: Delta{Role: art.RoleAssistant, Content: new(string)}})
		if first && s.req.ReturnTokenIDs {
			role.PromptTokenIDs = p.PromptIDs
		}
		out = append(out, Event{Data: role})
	}
	for _, c := range s.choices(&p) {
		c.Index = p.Choice
		out = append(out, Event{Data: s.chunk(c)})
	}
	return out, nil
}

func (s *chatStream) chunk(choices ...ChunkChoice) *ChatChunk {
	c := *s.head
	c.Choices = append([]ChunkChoice{}, choices...)
	return &c
}

// choices splits a piece: one kind of text in each chunk, and its tokens in the first. Tokens without text have a chunk
// only if they were asked for.
func (s *chatStream) choices(p *art.ChoicePiece) []ChunkChoice {
	if p.End != nil {
		return []ChunkChoice{{FinishReason: &p.End.Finish, StopReason: s.req.stopReason(p.End)}}
	}
	var out []ChunkChoice
	add := func(d Delta) { out = append(out, ChunkChoice{Delta: d}) }
	if p.Reasoning != "" {
		add(Delta{Reasoning: p.Reasoning, ReasoningContent: p.Reasoning})
	}
	if p.Content != "" {
		add(Delta{Content: &p.Content})
	}
	for _, call := range p.ToolCalls {
		at := s.calls[p.Choice]
		first := ToolCallDelta{Index: at, ID: call.ID, Type: "function", Function: FunctionDelta{Name: call.Name}}
		rest := ToolCallDelta{Index: at, Function: FunctionDelta{Arguments: call.Arguments}}
		add(Delta{ToolCalls: []ToolCallDelta{first}})
		add(Delta{ToolCalls: []ToolCallDelta{rest}})
		s.calls[p.Choice]++
	}
	if len(p.IDs) == 0 || !s.req.Logprobs && !s.req.ReturnTokenIDs {
		return out
	}
	if len(out) == 0 {
		out = []ChunkChoice{{}}
	}
	if s.req.Logprobs {
		out[0].Logprobs = newLogprobs(p.IDs, p.Logprobs, p.TopLogprobs, s.req.tokenTexts(s.tokens))
	}
	if s.req.ReturnTokenIDs {
		out[0].TokenIDs = p.IDs
	}
	return out
}

func (s *chatStream) End(replies []*art.ChatResponse) []Event {
	var out []Event
	if opts := s.req.StreamOptions; opts != nil && opts.IncludeUsage {
		last := s.chunk()
		last.Usage = newUsage(replies, len(replies))
		out = append(out, Event{Data: last})
	}
	return append(out, Event{Data: done{}})
}

func (s *chatStream) Fail(e *Error) []Event { return []Event{{Data: e}, {Data: done{}}} }
