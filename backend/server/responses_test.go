package server

import (
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/goart-dev/art"
)

const responsesPath = "/v1/responses"

// TestResponses_Response pins a complete response, without options and with them.
func TestResponses_Response(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHandler(t, reply(thoughtful))
		w := postTo(h, responsesPath, `{"model": "player", "input": "Hello"}`)
		want := `{"id":"resp_1","object":"response","created_at":946684800,"status":"completed","error":null,` +
			`"incomplete_details":null,"instructions":null,"max_output_tokens":null,"metadata":{},"model":"player@3",` +
			`"output":[{"type":"reasoning","id":"rs_1_0","status":"completed","summary":[],"content":[{"type":"reasoning_text","text":"Hm"}]},` +
			`{"type":"message","id":"msg_1_1","role":"assistant","status":"completed","content":[` +
			`{"type":"output_text","text":"Hi","annotations":[],"logprobs":[]}]},` +
			`{"type":"function_call","id":"fc_1_2","call_id":"c1","name":"look","arguments":"{\"at\":1}","status":"completed"},` +
			`{"type":"function_call","id":"fc_1_3","call_id":"c2","name":"go","arguments":"west","status":"completed"}],` +
			`"parallel_tool_calls":true,"temperature":null,"tool_choice":"auto","tools":[],"top_p":null,` +
			`"usage":{"input_tokens":3,"input_tokens_details":{"cached_tokens":1},"output_tokens":2,` +
			`"output_tokens_details":{"reasoning_tokens":0},"total_tokens":5}}`
		if got := w.Body.String(); w.Code != http.StatusOK || got != want {
			t.Errorf("status %d, got %s", w.Code, got)
		}
		w = postTo(newHandler(t, reply(art.Message{Content: "Hi"})), responsesPath, `{"model": "player", "input": "Hello",
			"instructions": "Be brief.", "max_output_tokens": 5, "metadata": {"a": "b"}, "temperature": 0.5, "tool_choice": "none",
			"tools": [{"type": "function", "name": "look"}], "include": ["message.output_text.logprobs"]}`)
		for _, want := range []string{
			`"instructions":"Be brief."`, `"max_output_tokens":5`, `"metadata":{"a":"b"}`, `"temperature":0.5`,
			`"tool_choice":"none"`, `"tools":[{"type":"function","name":"look"}]`,
			`"logprobs":[{"token":"H","logprob":-0.25,"bytes":[72],"top_logprobs":[]},{"token":"\u0000",`,
		} {
			if !strings.Contains(w.Body.String(), want) {
				t.Errorf("no %s in %s", want, w.Body)
			}
		}
	})
}

// responseEvent is what a client reads of an event.
type responseEvent struct {
	Type     string
	Sequence int             `json:"sequence_number"`
	Output   int             `json:"output_index"`
	ItemID   string          `json:"item_id"`
	Delta    string          `json:"delta"`
	Response json.RawMessage `json:"response"`
	Item     json.RawMessage `json:"item"`
	Code     string
}

// readResponseEvents reads a stream whose events have names that equal their types, and no end marker.
func readResponseEvents(t *testing.T, stream string) []responseEvent {
	t.Helper()
	var out []responseEvent
	for text := range strings.SplitSeq(strings.TrimSuffix(stream, "\n\n"), "\n\n") {
		name, data, _ := strings.Cut(text, "\n")
		var e responseEvent
		if err := json.Unmarshal([]byte(strings.TrimPrefix(data, "data: ")), &e); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		if name != "event: "+e.Type || e.Sequence != len(out) {
			t.Errorf("event %d: %s", len(out), text)
		}
		out = append(out, e)
	}
	return out
}

// TestResponses_Stream checks the order of the events, and that what they say together is the response.
func TestResponses_Stream(t *testing.T) {
	h := newHandler(t, says(thoughtful))
	const body = `{"model": "player", "input": "Hello"`
	events := readResponseEvents(t, postTo(h, responsesPath, body+`, "stream": true}`).Body.String())
	var kinds []string
	texts := map[string]string{}
	for _, e := range events {
		kinds = append(kinds, strings.TrimPrefix(e.Type, "response."))
		texts[e.ItemID] += e.Delta
	}
	added, done := []string{"output_item.added", "content_part.added"}, []string{"content_part.done", "output_item.done"}
	call := []string{
		"output_item.added", "function_call_arguments.delta", "function_call_arguments.done", "output_item.done",
	}
	want := []string{"created", "in_progress"}
	for _, kind := range []string{"reasoning_text", "output_text"} {
		want = append(want, added...)
		want = append(want, kind+".delta", kind+".delta", kind+".done")
		want = append(want, done...)
	}
	want = append(append(append(want, call...), call...), "completed")
	if !reflect.DeepEqual(kinds, want) {
		t.Errorf("got %q, want %q", kinds, want)
	}
	var whole, last struct {
		ID     string
		Output []struct {
			ID, Arguments string
			Content       []struct{ Text string }
		}
	}
	if err := json.Unmarshal(postTo(h, responsesPath, body+`}`).Body.Bytes(), &whole); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(events[len(events)-1].Response, &last); err != nil || !reflect.DeepEqual(whole, last) {
		t.Errorf("the last event has %+v, the response is %+v, error %v", last, whole, err)
	}
	for _, item := range whole.Output {
		text := item.Arguments
		for _, part := range item.Content {
			text += part.Text
		}
		if texts[item.ID] != text || text == "" {
			t.Errorf("deltas of %s are %q, want %q", item.ID, texts[item.ID], text)
		}
	}
}

// TestResponses_Request checks that a conversation with tools, and the settings, reach the backend.
func TestResponses_Request(t *testing.T) {
	body := `{"model": "player", "instructions": "Be brief.", "max_output_tokens": 9,
		"temperature": 0.5, "top_p": 0.9, "top_k": 40, "store": true, "text": {"format": {"type": "text"}}, "include": ["reasoning.encrypted_content"], "parallel_tool_calls": true,
		"tools": [{"type": "function", "name": "look", "description": "Looks.", "parameters": {"z": 1, "a": 2}, "strict": true}],
		"input": [
			{"role": "developer", "content": "More."}, {"role": "user", "content": [{"type": "input_text", "text": "Look"}]},
			{"type": "reasoning", "id": "rs_1", "summary": [], "content": [{"type": "reasoning_text", "text": "Hm"}]},
			{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I "}, {"type": "output_text", "text": "look."}]},
			{"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{\"at\": 1}"},
			{"type": "function_call", "call_id": "c2", "name": "go", "arguments": "west"},
			{"type": "function_call_output", "call_id": "c1", "output": "a wall"},
			{"type": "function_call_output", "call_id": "c2", "output": [{"type": "input_text", "text": "no"}]},
			{"type": "reasoning", "id": "rs_2", "summary": [{"type": "summary_text", "text": "Well"}]},
			{"role": "assistant", "content": "A wall."}, {"role": "user", "content": "And now?"}]}`
	b := reply(art.Message{Content: "Hi"})
	if w := postTo(newHandler(t, b), responsesPath, body); w.Code != http.StatusOK {
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	want := []art.Message{
		art.System("Be brief."), {Role: art.RoleDeveloper, Content: "More."}, art.User("Look"),
		{Role: art.RoleAssistant, Reasoning: "Hm", Content: "I look.", ToolCalls: []art.ToolCall{
			{ID: "c1", Name: "look", Arguments: `{"at": 1}`}, {ID: "c2", Name: "go", Arguments: "west"},
		}},
		art.ToolResult("c1", "a wall"), art.ToolResult("c2", "no"),
		{Role: art.RoleAssistant, Reasoning: "Well", Content: "A wall."}, art.User("And now?"),
	}
	if !reflect.DeepEqual(b.last.Messages, want) {
		t.Errorf("messages are %+v", b.last.Messages)
	}
	wantTools := []art.Tool{{Name: "look", Description: "Looks.", Parameters: []byte(`{"z": 1, "a": 2}`)}}
	if got := b.last.Tools; !reflect.DeepEqual(got, wantTools) {
		t.Errorf("tools are %+v", got)
	}
	s := b.last.Settings
	s.Seed = 0
	if !reflect.DeepEqual(s, art.Sampling{Temperature: 0.5, TopP: 0.9, TopK: 40, MaxTokens: 9}) {
		t.Errorf("settings are %+v", s)
	}
}

// TestResponses_Ends checks a reply that is cut off, and one that fails in its stream.
func TestResponses_Ends(t *testing.T) {
	h := newHandler(t, says(art.Message{Content: "Hello"}))
	const body = `{"model": "player", "input": "Hello", "max_output_tokens": 3`
	w := postTo(h, responsesPath, body+`}`)
	want := `"status":"incomplete","error":null,"incomplete_details":{"reason":"max_output_tokens"}`
	if got := w.Body.String(); !strings.Contains(got, want) {
		t.Errorf("got %s", got)
	}
	events := readResponseEvents(t, postTo(h, responsesPath, body+`, "stream": true}`).Body.String())
	if last := events[len(events)-1]; last.Type != "response.incomplete" {
		t.Errorf("the last event is %+v", last)
	}
	broken := &failing{Backend: says(art.Message{Content: "Hello"}), after: 3, err: errors.New("no device")}
	events = readResponseEvents(t, postTo(newHandler(t, broken), responsesPath, body+`, "stream": true}`).Body.String())
	n := len(events)
	want = `"status":"failed","error":{"code":"server_error","message":"no device"}`
	if events[n-2].Type != "error" || events[n-2].Code != "server_error" || events[n-1].Type != "response.failed" ||
		!strings.Contains(string(events[n-1].Response), want) {
		t.Errorf("the last events are %+v", events[n-2:])
	}
}

// TestResponses_Refused checks that what is not supported is refused by name.
func TestResponses_Refused(t *testing.T) {
	input := func(item string) string { return `{"model": "player", "input": [` + item + `]}` }
	with := func(field string) string { return `{"model": "player", "input": "x", ` + field + `}` }
	cases := []struct{ body, want string }{
		{`{"model": "player"}`, "input must not be empty"},
		{input(``), "input must not be empty"},
		{with(`"input": 5`), "input must be a list"},
		{with(`"previous_response_id": "resp_1"`), "previous_response_id is not supported"},
		{with(`"text": {"format": {"type": "grammar"}}`), `text.format.type is "grammar"`},
		{with(`"text": {"format": {"type": "json_schema", "name": "n"}}`), "text.format has no schema"},
		{with(`"text": {"verbosity": "low"}`), "text.verbosity is supported only as"},
		{with(`"reasoning": {"effort": "high"}`), "reasoning is supported only as"},
		{with(`"truncation": "auto"`), "truncation is supported only as"},
		{with(`"background": true`), "background is supported only as false"},
		{with(`"include": ["file_search_call.results"]`), `include has "file_search_call.results"`},
		{with(`"tool_choice": "required"`), "there are no tools"},
		{with(`"tool_choice": "any"`), "tool_choice must be"},
		{with(`"max_output_tokens": 0`), "max_output_tokens must be at least 1"},
		{with(`"top_logprobs": 3`), "top_logprobs needs"},
		{with(`"tools": [{"type": "web_search"}]`), `tools[0].type is "web_search"`},
		{with(`"tools": [{"type": "function"}]`), "tools[0].name must not be empty"},
		{input(`{"type": "item_reference", "id": "x"}`), `input[0] is of type "item_reference"`},
		{input(`{"role": "tool", "content": "x"}`), `input[0].role is "tool"`},
		{input(`{"role": "user", "content": [{"type": "input_image"}]}`), `input[0].content[0] is of type "input_image"`},
		{input(`{"role": "user", "content": 5}`), "input[0].content must be a string or a list"},
		{input(`{"type": "function_call", "name": "look"}`), "input[0] must have a call_id"},
		{input(`{"type": "function_call_output", "output": "x"}`), "input[0].call_id must not be empty"},
	}
	h := newHandler(t, reply(art.Message{}))
	for _, c := range cases {
		w := postTo(h, responsesPath, c.body)
		if e := readWireError(t, w.Body); w.Code != http.StatusBadRequest || !strings.Contains(e.Message, c.want) {
			t.Errorf("%s: status %d, %s", c.body, w.Code, e.Message)
		}
	}
}
