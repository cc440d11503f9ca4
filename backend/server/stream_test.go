package server

import (
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/goart-dev/art"
)

// TestStream pins the events of complete streams. The time is synctest's.
func TestStream(t *testing.T) {
	const head = `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":946684800,"model":"player@3",`
	const role = head + `"choices":[{"index":0,"delta":{"role":"assistant","content":""},` +
		`"logprobs":null,"finish_reason":null}]`
	calls := []art.ToolCall{{ID: "c1", Name: "look", Arguments: `{"at":1}`}, {ID: "c2", Name: "go", Arguments: `{}`}}
	cases := []struct {
		name   string
		reply  art.Message
		fields string
		want   string
	}{
		{"text", art.Message{Content: "Hi\n"}, ``, role + "}\n\n" +
			head + `"choices":[{"index":0,"delta":{"content":"Hi\n"},"logprobs":null,"finish_reason":null}]}` + "\n\n" +
			head + `"choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}]}` + "\n\n" +
			"data: [DONE]\n\n"},
		{"usage and ids", art.Message{}, `, "return_token_ids": true, "stream_options": {"include_usage": true}`,
			role + `,"prompt_token_ids":[7,8,9]}` + "\n\n" +
				head + `"choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":null,"token_ids":[72,0]}]}` + "\n\n" +
				head + `"choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}]}` + "\n\n" +
				head + `"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5,` +
				`"prompt_tokens_details":{"cached_tokens":1}}}` + "\n\n" +
				"data: [DONE]\n\n"},
		{"logprobs", art.Message{}, `, "logprobs": true`, role + "}\n\n" +
			head + `"choices":[{"index":0,"delta":{},"logprobs":{"content":[` +
			`{"token":"H","logprob":-0.25,"bytes":[72],"top_logprobs":[]},` +
			`{"token":"\u0000","logprob":-1.5,"bytes":[0],"top_logprobs":[]}]},"finish_reason":null}]}` + "\n\n" +
			head + `"choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}]}` + "\n\n" +
			"data: [DONE]\n\n"},
		{"logprobs of ids", art.Message{}, `, "logprobs": true, "return_tokens_as_token_ids": true`, role + "}\n\n" +
			head + `"choices":[{"index":0,"delta":{},"logprobs":{"content":[` +
			`{"token":"token_id:72","logprob":-0.25,"bytes":[116,111,107,101,110,95,105,100,58,55,50],` +
			`"top_logprobs":[]},` +
			`{"token":"token_id:0","logprob":-1.5,"bytes":[116,111,107,101,110,95,105,100,58,48],"top_logprobs":[]}]},` +
			`"finish_reason":null}]}` + "\n\n" +
			head + `"choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}]}` + "\n\n" +
			"data: [DONE]\n\n"},
		{"reasoning and tools", art.Message{Reasoning: "Hm", ToolCalls: calls}, ``, role + "}\n\n" +
			head + `"choices":[{"index":0,"delta":{"reasoning":"Hm","reasoning_content":"Hm"},` +
			`"logprobs":null,"finish_reason":null}]}` + "\n\n" +
			head + `"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c1","type":"function",` +
			`"function":{"name":"look","arguments":""}}]},"logprobs":null,"finish_reason":null}]}` + "\n\n" +
			head + `"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,` +
			`"function":{"arguments":"{\"at\":1}"}}]},"logprobs":null,"finish_reason":null}]}` + "\n\n" +
			head + `"choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"id":"c2","type":"function",` +
			`"function":{"name":"go","arguments":""}}]},"logprobs":null,"finish_reason":null}]}` + "\n\n" +
			head + `"choices":[{"index":0,"delta":{"tool_calls":[{"index":1,` +
			`"function":{"arguments":"{}"}}]},"logprobs":null,"finish_reason":null}]}` + "\n\n" +
			head + `"choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"tool_calls"}]}` + "\n\n" +
			"data: [DONE]\n\n"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := post(newHandler(t, reply(c.reply)), hello(`, "stream": true`+c.fields))
				if w.Code != http.StatusOK || w.Header().Get("Content-Type") != "text/event-stream" {
					t.Fatalf("status %d, type %q: %s", w.Code, w.Header().Get("Content-Type"), w.Body)
				}
				if got := w.Body.String(); got != c.want {
					t.Errorf("got\n%s\nwant\n%s", got, c.want)
				}
			})
		})
	}
}
