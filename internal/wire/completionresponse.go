package wire

import (
	"unicode/utf8"

	"github.com/goart-dev/art"
)

// CompletionResponse is the body of a response of /v1/completions, and of each event of its stream.
type CompletionResponse struct {
	ID      string             `json:"id"`
	Object  string             `json:"object"` // "text_completion"
	Created int64              `json:"created"`
	Model   string             `json:"model"`   // name@step
	Choices []CompletionChoice `json:"choices"` // none in the event with the usage
	Usage   *Usage             `json:"usage,omitempty"`
}

// CompletionChoice is a reply, or a piece of one.
type CompletionChoice struct {
	Index        int                 `json:"index"`
	Text         string              `json:"text"`
	Logprobs     *CompletionLogprobs `json:"logprobs"`
	FinishReason *string             `json:"finish_reason"`
	// StopReason is vLLM's: the stop string that ended the reply, or the stop token.
	StopReason any `json:"stop_reason,omitempty"`
	// PromptTokenIDs and TokenIDs are set by return_token_ids; in a stream the former are in the first event.
	PromptTokenIDs []int32 `json:"prompt_token_ids,omitempty"`
	TokenIDs       []int32 `json:"token_ids,omitempty"`
	// PromptLogprobs are set by prompt_logprobs.
	PromptLogprobs PromptLogprobs `json:"prompt_logprobs,omitempty"`
}

// CompletionLogprobs are the logprobs of tokens, one element for each.
type CompletionLogprobs struct {
	TextOffset    []int      `json:"text_offset"`    // in characters
	TokenLogprobs []*float32 `json:"token_logprobs"` // null for the first token of a prompt
	Tokens        []string   `json:"tokens"`
	// TopLogprobs are those of the token and of the likeliest ones, by their texts; null if none are asked for.
	TopLogprobs []map[string]float32 `json:"top_logprobs"`
}

// NewCompletionResponse converts the replies to a request. prompts are the texts of its prompts if they are to be
// echoed.
func NewCompletionResponse(
	req *CompletionRequest, replies []*art.ChatResponse, prompts []string, tokens TokenBytes,
) *CompletionResponse {
	resp := newCompletion(replies[0].ID, replies[0].Model)
	resp.Usage = newUsage(replies, req.Choices())
	for i, r := range replies {
		of := i / req.Choices() // the prompt
		choice := req.choice(r, replies[of*req.Choices()].PromptLogprobs, tokens)
		choice.Index = i
		if req.Echo {
			choice.Text = prompts[of] + choice.Text
		}
		resp.Choices = append(resp.Choices, choice)
	}
	return resp
}

// choice converts one reply, without an echoed prompt in its text. prompt are the logprobs of its prompt.
func (r *CompletionRequest) choice(
	reply *art.ChatResponse, prompt [][]art.TokenLogprob, tokens TokenBytes,
) CompletionChoice {
	choice := CompletionChoice{
		Text: reply.Message.Content, FinishReason: &reply.Finish, StopReason: r.stopReason(reply),
	}
	whole := reply.Piece()
	if r.Logprobs != nil {
		list := r.logprobs(tokens)
		out := &CompletionLogprobs{}
		if r.Echo {
			out = list.prompt(whole.PromptIDs, prompt)
		}
		out.add(list.sampled(whole.IDs, whole.Logprobs, whole.TopLogprobs))
		choice.Logprobs = out
	}
	if r.ReturnTokenIDs {
		choice.TokenIDs, choice.PromptTokenIDs = whole.IDs, whole.PromptIDs
	}
	if r.PromptLogprobs != nil {
		choice.PromptLogprobs = newPromptLogprobs(prompt, tokens)
	}
	return choice
}

// completionLogprobs converts the logprobs of a reply, in several parts.
type completionLogprobs struct {
	tokens TokenBytes
	top    int // likeliest tokens at each position
	offset int // characters of the tokens so far
}

// logprobs begins to convert the logprobs of a reply.
func (r *CompletionRequest) logprobs(tokens TokenBytes) completionLogprobs {
	l := completionLogprobs{tokens: r.tokenTexts(tokens)}
	if r.Logprobs != nil {
		l.top = *r.Logprobs
	}
	return l
}

// sampled converts the logprobs of sampled tokens.
func (l *completionLogprobs) sampled(ids []int32, logprobs []float32, top [][]art.TokenLogprob) *CompletionLogprobs {
	out := &CompletionLogprobs{}
	for i, id := range ids {
		var likeliest []art.TokenLogprob
		if i < len(top) {
			likeliest = top[i]
		}
		l.add(out, id, &logprobs[i], likeliest)
	}
	return out
}

// prompt converts the logprobs of a prompt, at each position those of its token and then of the likeliest others.
func (l *completionLogprobs) prompt(ids []int32, logprobs [][]art.TokenLogprob) *CompletionLogprobs {
	out := &CompletionLogprobs{}
	for i, id := range ids {
		if i == 0 || i >= len(logprobs) || len(logprobs[i]) == 0 {
			l.add(out, id, nil, nil)
			continue
		}
		at := logprobs[i]
		l.add(out, id, &at[0].Logprob, at[1:min(len(at), l.top+1)])
	}
	return out
}

// add adds a token.
func (l *completionLogprobs) add(out *CompletionLogprobs, id int32, logprob *float32, likeliest []art.TokenLogprob) {
	text := validText(l.tokens(id))
	out.TextOffset = append(out.TextOffset, l.offset)
	out.Tokens = append(out.Tokens, text)
	l.offset += utf8.RuneCountInString(text)
	var own *float32
	var top map[string]float32
	if logprob != nil {
		x := finite(*logprob)
		own, top = &x, map[string]float32{text: x}
		for _, t := range likeliest {
			top[validText(l.tokens(t.ID))] = finite(t.Logprob)
		}
	}
	out.TokenLogprobs = append(out.TokenLogprobs, own)
	if l.top > 0 {
		out.TopLogprobs = append(out.TopLogprobs, top)
	}
}

// add appends the logprobs of further tokens.
func (c *CompletionLogprobs) add(more *CompletionLogprobs) {
	c.TextOffset = append(c.TextOffset, more.TextOffset...)
	c.TokenLogprobs = append(c.TokenLogprobs, more.TokenLogprobs...)
	c.Tokens = append(c.Tokens, more.Tokens...)
	c.TopLogprobs = append(c.TopLogprobs, more.TopLogprobs...)
}
