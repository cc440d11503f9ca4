package wire

// CompletionResponse is the body of a response of /v1/completions, and of each event of its stream.
type CompletionResponse struct {
	ID      string             `json:"id"`
	Object  string             `json:"object"` // "text_completion"
	Created int64              `json:"created"`
	Model   string             `json:"model"`   // name@step
	Choices []CompletionChoice `json:"choices"` // one; none in the event with the usage
	Usage   *Usage             `json:"usage,omitempty"`
}

// CompletionChoice is a reply, or a piece of one.
type CompletionChoice struct {
	Index        int                 `json:"index"`
	Text         string              `json:"text"`
	Logprobs     *CompletionLogprobs `json:"logprobs"`
	FinishReason *string             `json:"finish_reason"`
	// PromptTokenIDs and TokenIDs are set by return_token_ids; in a stream the former are in the first event.
	PromptTokenIDs []int32 `json:"prompt_token_ids,omitempty"`
	TokenIDs       []int32 `json:"token_ids,omitempty"`
	// PromptLogprobs are set by prompt_logprobs.
	PromptLogprobs PromptLogprobs `json:"prompt_logprobs,omitempty"`
}

// CompletionLogprobs are the logprobs of sampled tokens, one element for each.
type CompletionLogprobs struct {
	TextOffset    []int     `json:"text_offset"` // in characters
	TokenLogprobs []float32 `json:"token_logprobs"`
	Tokens        []string  `json:"tokens"`
	TopLogprobs   *struct{} `json:"top_logprobs"` // always null
}
