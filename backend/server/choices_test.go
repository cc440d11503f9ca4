package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/dev/arttest"
)

// sayer is a backend whose replies depend on the seed: a third of them calls tools.
func sayer() *arttest.Backend {
	return &arttest.Backend{Reply: func(_ context.Context, _ *art.Model, req *art.ChatRequest) (art.Message, error) {
		m := art.Assistant(fmt.Sprintf("é%d", req.Settings.Seed))
		if req.Settings.Seed%3 == 0 {
			m.ToolCalls = []art.ToolCall{{ID: "a", Name: "f", Arguments: `{"x":1}`}, {ID: "b", Name: "g", Arguments: `{}`}}
		}
		return m, nil
	}}
}

// chatBody is what tests read of a response of chat completions.
type chatBody struct {
	Choices []struct {
		Index        int
		Message      art.Message
		FinishReason string  `json:"finish_reason"`
		TokenIDs     []int32 `json:"token_ids"`
		Logprobs     struct{ Content []struct{ Token string } }
	}
	Usage          struct{ PromptTokens, CompletionTokens, TotalTokens int }
	PromptTokenIDs []int32 `json:"prompt_token_ids"`
}

// chunkBody is what tests read of a chunk of a stream.
type chunkBody struct {
	ID      string
	Choices []struct {
		Index int
		Delta struct {
			Role      string
			Content   string
			ToolCalls []struct {
				Index    int
				ID       string
				Function struct{ Name, Arguments string }
			} `json:"tool_calls"`
		}
		FinishReason *string `json:"finish_reason"`
		TokenIDs     []int32 `json:"token_ids"`
		Text         string
	}
	PromptTokenIDs []int32 `json:"prompt_token_ids"`
}

// readChunks decodes the events of a stream, which must end as it should.
func readChunks(t *testing.T, stream string) (chunks []chunkBody) {
	t.Helper()
	body, ok := strings.CutSuffix(stream, "data: [DONE]\n\n")
	if !ok {
		t.Fatalf("the stream does not end: %s", stream)
	}
	for event := range strings.SplitSeq(strings.TrimSuffix(body, "\n\n"), "\n\n") {
		var c chunkBody
		if err := json.Unmarshal([]byte(strings.TrimPrefix(event, "data: ")), &c); err != nil {
			t.Fatalf("%s: %v", event, err)
		}
		chunks = append(chunks, c)
	}
	return chunks
}

// TestChoices_StreamIsWhole: the chunks of each of n replies, put together as clients do, are the reply of a response
// that is not streamed.
func TestChoices_StreamIsWhole(t *testing.T) {
	h := newHandler(t, sayer())
	const fields = `, "n": 7, "seed": 5, "return_token_ids": true, "logprobs": true`
	w := post(h, hello(fields))
	var whole chatBody
	if err := json.Unmarshal(w.Body.Bytes(), &whole); err != nil || len(whole.Choices) != 7 {
		t.Fatalf("%v: %s", err, w.Body)
	}
	chunks := readChunks(t, post(h, hello(fields+`, "stream": true`)).Body.String())
	for i, want := range whole.Choices {
		got, finish, roles := art.Assistant(""), "", 0
		var ids []int32
		for _, chunk := range chunks {
			for _, c := range chunk.Choices {
				if c.Index != i {
					continue
				}
				if finish != "" || chunk.ID != chunks[0].ID {
					t.Errorf("choice %d: a chunk after its end, or with another id", i)
				}
				if c.Delta.Role != "" {
					roles++
				}
				got.Content += c.Delta.Content
				ids = append(ids, c.TokenIDs...)
				for _, call := range c.Delta.ToolCalls {
					if call.ID != "" {
						got.ToolCalls = append(got.ToolCalls, art.ToolCall{ID: call.ID, Name: call.Function.Name})
					}
					got.ToolCalls[call.Index].Arguments += call.Function.Arguments
				}
				if c.FinishReason != nil {
					finish = *c.FinishReason
				}
			}
		}
		wantEqual(t, "index", want.Index, i)
		wantEqual(t, "content", got.Content, want.Message.Content)
		wantEqual(t, "calls", got.ToolCalls, want.Message.ToolCalls)
		wantEqual(t, "finish", finish, want.FinishReason)
		wantEqual(t, "ids", ids, want.TokenIDs)
		wantEqual(t, "roles", roles, 1)
		wantEqual(t, "logprobs", len(want.Logprobs.Content), len(ids))
	}
	wantEqual(t, "prompt", chunks[0].PromptTokenIDs, whole.PromptTokenIDs)
	for _, c := range chunks[1:] {
		if c.PromptTokenIDs != nil {
			t.Error("the prompt comes twice")
		}
	}
}

// TestChoices_SeedsAndUsage: the first reply is that of a request for one, the others differ, and the prompt counts
// once.
func TestChoices_SeedsAndUsage(t *testing.T) {
	h := newHandler(t, sayer())
	read := func(fields string) (texts []string, usage map[string]any) {
		var body struct {
			Choices []struct{ Message art.Message }
			Usage   map[string]any
		}
		w := post(h, hello(fields))
		if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil {
			t.Fatalf("%v: %s", err, w.Body)
		}
		for _, c := range body.Choices {
			texts = append(texts, c.Message.Content)
		}
		return texts, body.Usage
	}
	one, usage := read(`, "seed": 5`)
	three, total := read(`, "seed": 5, "n": 3`)
	wantEqual(t, "first", three[0], one[0])
	if three[1] == three[0] || three[2] == three[0] || three[1] == three[2] {
		t.Errorf("replies %q", three)
	}
	wantEqual(t, "prompt tokens", total["prompt_tokens"], usage["prompt_tokens"])
	sampled := 0
	for _, text := range three {
		sampled += len([]rune(text))
	}
	wantEqual(t, "completion tokens", total["completion_tokens"], any(float64(sampled)))
}

// TestChoices_Recorded: all replies to a request of a rollout are recorded, or none when the client gets an error.
func TestChoices_Recorded(t *testing.T) {
	b := &oneFails{Backend: says(art.Message{Content: "x"})}
	s := newRecording(t, b, nil)
	id, base := s.open("")
	for _, stream := range []string{"", `, "stream": true`} {
		status, _ := s.do("k1", "POST", base+"/v1/chat/completions", hello(`, "n": 3`+stream))
		wantEqual(t, "status", status, http.StatusOK)
	}
	b.failing = true
	status, _ := s.do("k1", "POST", base+"/v1/chat/completions", hello(`, "n": 3`))
	wantEqual(t, "status", status, http.StatusInternalServerError)
	var got art.Trajectory
	s.must(http.StatusOK, "GET", "/v1/rollouts/"+id, "", &got)
	wantEqual(t, "samples", len(got.Samples()), 6)
}

// oneFails fails the second completion once it is failing; the third one never ends by itself.
type oneFails struct {
	*arttest.Backend
	failing bool
	calls   atomic.Int32
}

func (b *oneFails) Complete(ctx context.Context, m *art.Model, req *art.ChatRequest) (*art.ChatResponse, error) {
	if b.failing {
		switch b.calls.Add(1) {
		case 2:
			return nil, errors.New("out of memory")
		case 3:
			<-ctx.Done()
			return nil, ctx.Err()
		}
	}
	return b.Backend.Complete(ctx, m, req)
}

// TestChoices_Completions: several prompts have n replies each, in their order, whole and streamed.
func TestChoices_Completions(t *testing.T) {
	h := newHandler(t, sayer())
	const fields = `{"model": "player", "prompt": ["a", "bc"], "n": 2, "seed": 4, "return_token_ids": true`
	var whole struct {
		Choices []struct {
			Index          int
			Text           string
			PromptTokenIDs []int32 `json:"prompt_token_ids"`
		}
		Usage map[string]any
	}
	w := postTo(h, completionsPath, fields+`}`)
	if err := json.Unmarshal(w.Body.Bytes(), &whole); err != nil || len(whole.Choices) != 4 {
		t.Fatalf("%v: %s", err, w.Body)
	}
	texts := map[int]string{}
	for _, chunk := range readChunks(t, postTo(h, completionsPath, fields+`, "stream": true}`).Body.String()) {
		for _, c := range chunk.Choices {
			texts[c.Index] += c.Text
		}
	}
	for i, c := range whole.Choices {
		wantEqual(t, "index", c.Index, i)
		wantEqual(t, "stream", texts[i], c.Text)
		wantEqual(t, "prompt", string(c.PromptTokenIDs), []string{"a", "bc"}[i/2])
		wantEqual(t, "seeds of another prompt", c.Text, whole.Choices[i%2].Text)
	}
	wantEqual(t, "prompt tokens", whole.Usage["prompt_tokens"], any(3.0))
}

// TestCompletions_Echo: the text and the logprobs begin with those of the prompt.
func TestCompletions_Echo(t *testing.T) {
	h := newHandler(t, says(art.Message{Content: "Hi"}))
	var body struct {
		Choices []struct {
			Text     string
			Logprobs struct {
				Tokens        []string
				TokenLogprobs []*float32           `json:"token_logprobs"`
				TopLogprobs   []map[string]float32 `json:"top_logprobs"`
				TextOffset    []int                `json:"text_offset"`
			}
		}
	}
	w := postTo(h, completionsPath, `{"model": "player", "prompt": [71, 111], "echo": true, "logprobs": 1}`)
	if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil {
		t.Fatalf("%v: %s", err, w.Body)
	}
	got := body.Choices[0]
	wantEqual(t, "text", got.Text, "GoHi")
	wantEqual(t, "tokens", got.Logprobs.Tokens, []string{"G", "o", "H", "i"})
	wantEqual(t, "offsets", got.Logprobs.TextOffset, []int{0, 1, 2, 3})
	if l := got.Logprobs.TokenLogprobs; l[0] != nil || *l[1] != -1 || *l[2] != -0.5625 {
		t.Errorf("logprobs %v", l)
	}
	wantEqual(t, "likeliest", got.Logprobs.TopLogprobs, []map[string]float32{
		nil, {"o": -1, "p": -2}, {"H": -0.5625}, {"i": -0.625},
	})
}

// TestGenerate_Likeliest: the sampled token comes first, with its rank.
func TestGenerate_Likeliest(t *testing.T) {
	h := newHandler(t, says(art.Message{Content: "Hi"}))
	w := postTo(h, "/inference/v1/generate", `{"token_ids": [71, 111],
		"sampling_params": {"logprobs": 2, "prompt_logprobs": 1, "max_tokens": 1, "n": 2}}`)
	want := `"logprobs":{"content":[{"token_id":72,"logprob":-0.5625,"rank":1,"top_logprobs":[` +
		`{"token_id":72,"logprob":-0.5625,"rank":1},{"token_id":73,"logprob":-1.5625,"rank":2}]}]}`
	if got := w.Body.String(); strings.Count(got, want) != 2 {
		t.Errorf("got %s, want twice %s", got, want)
	}
	prompt := `"prompt_logprobs":[null,{"111":{"logprob":-1,"rank":1,"decoded_token":"o"},` +
		`"112":{"logprob":-2,"rank":2,"decoded_token":"p"}}]`
	if got := w.Body.String(); !strings.Contains(got, prompt) {
		t.Errorf("got %s, want %s", got, prompt)
	}
}

// TestStopReason: vLLM's field has the stop string or the stop token.
func TestStopReason(t *testing.T) {
	b := reply(art.Message{Content: "Hi"})
	b.stopped = "."
	if got := post(newHandler(t, b), hello(`, "stop": "."`)).Body.String(); !strings.Contains(got, `"stop_reason":"."`) {
		t.Error(got)
	}
	got := post(newHandler(t, reply(art.Message{Content: "Hi"})), hello(`, "stop_token_ids": [0]`)).Body.String()
	if !strings.Contains(got, `"stop_reason":0`) {
		t.Error(got)
	}
}
