package server

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/dev/arttest"
)

// postTo sends a JSON body to a path.
func postTo(h http.Handler, path, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// message returns a request of Anthropic's API with one message and further fields.
func message(fields string) string {
	return `{"model": "player", "max_tokens": 20, "messages": [{"role": "user", "content": "Hello"}]` + fields + `}`
}

// thoughtful is a reply with all that one can have.
var thoughtful = art.Message{
	Reasoning: "Hm", Content: "Hi",
	ToolCalls: []art.ToolCall{{ID: "c1", Name: "look", Arguments: `{"at":1}`}, {ID: "c2", Name: "go", Arguments: `west`}},
}

// TestMessages_Response pins a complete response. Arguments that are no object are kept.
func TestMessages_Response(t *testing.T) {
	w := postTo(newHandler(t, reply(thoughtful)), messagesPath, message(``))
	want := `{"id":"msg_1","type":"message","role":"assistant","model":"player@3","content":[` +
		`{"type":"thinking","thinking":"Hm","signature":""},{"type":"text","text":"Hi"},` +
		`{"type":"tool_use","id":"c1","name":"look","input":{"at":1}},` +
		`{"type":"tool_use","id":"c2","name":"go","input":{"_raw":"west"}}],` +
		`"stop_reason":"tool_use","stop_sequence":null,` +
		`"usage":{"input_tokens":2,"cache_creation_input_tokens":0,"cache_read_input_tokens":1,"output_tokens":2}}`
	if got := w.Body.String(); w.Code != http.StatusOK || got != want {
		t.Errorf("status %d, got %s", w.Code, got)
	}
}

// TestMessages_Stream pins the events of a stream that comes in pieces.
func TestMessages_Stream(t *testing.T) {
	w := postTo(newHandler(t, says(thoughtful)), messagesPath, message(`, "stream": true`))
	start := func(at, block string) string { // event of a block
		return "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":" + at +
			`,"content_block":` + block + "}\n\n"
	}
	event := func(kind, fields string) string {
		return "event: " + kind + "\ndata: {\"type\":\"" + kind + `"` + fields + "}\n\n"
	}
	_, got, _ := strings.Cut(w.Body.String(), "\n\n")
	want := start("0", `{"type":"thinking","thinking":"","signature":""}`) +
		event("content_block_delta", `,"index":0,"delta":{"thinking":"H","type":"thinking_delta"}`) +
		event("content_block_delta", `,"index":0,"delta":{"thinking":"m","type":"thinking_delta"}`) +
		event("content_block_stop", `,"index":0`) +
		start("1", `{"type":"text","text":""}`) +
		event("content_block_delta", `,"index":1,"delta":{"text":"H","type":"text_delta"}`) +
		event("content_block_delta", `,"index":1,"delta":{"text":"i","type":"text_delta"}`) +
		event("content_block_stop", `,"index":1`) +
		start("2", `{"type":"tool_use","id":"c1","name":"look","input":{}}`) +
		event("content_block_delta", `,"index":2,"delta":{"partial_json":"{\"at\":1}","type":"input_json_delta"}`) +
		event("content_block_stop", `,"index":2`) +
		start("3", `{"type":"tool_use","id":"c2","name":"go","input":{}}`) +
		event("content_block_delta", `,"index":3,"delta":{"partial_json":"{\"_raw\":\"west\"}","type":"input_json_delta"}`) +
		event("content_block_stop", `,"index":3`) +
		event("message_delta", `,"delta":{"stop_reason":"tool_use","stop_sequence":null},`+
			`"usage":{"input_tokens":11,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":2}`) +
		event("message_stop", ``)
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	head := w.Body.String()
	if !strings.HasPrefix(head, "event: message_start\ndata: "+`{"type":"message_start","message":{"id":"msg_fake-`) ||
		!strings.Contains(head, `"role":"assistant","model":"player@0","content":[],"stop_reason":null,"stop_sequence":null,`+
			`"usage":{"input_tokens":11,`) {
		t.Errorf("the stream begins with %s", head)
	}
}

// TestMessages_Request checks that a conversation with tools, and the settings, reach the backend.
func TestMessages_Request(t *testing.T) {
	body := `{"model": "player", "max_tokens": 9, "temperature": 0.5, "top_p": 0.9, "top_k": 40, "stop_sequences": ["END"],
		"thinking": {"type": "disabled"}, "metadata": {"user_id": "u"}, "tool_choice": {"type": "auto"},
		"system": [{"type": "text", "text": "Be ", "cache_control": {"type": "ephemeral"}}, {"type": "text", "text": "brief."}],
		"tools": [{"name": "look", "description": "Looks.", "input_schema": {"z": 1, "a": 2}}],
		"messages": [
			{"role": "user", "content": "Look"},
			{"role": "assistant", "content": [{"type": "thinking", "thinking": "Hm", "signature": ""},
				{"type": "text", "text": "I look."}, {"type": "tool_use", "id": "c1", "name": "look", "input": {"at": 1}},
				{"type": "tool_use", "id": "c2", "name": "go", "input": {"_raw": "west"}}]},
			{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "a wall"},
				{"type": "tool_result", "tool_use_id": "c2", "content": [{"type": "text", "text": "no"}], "is_error": true},
				{"type": "text", "text": "And "}, {"type": "text", "text": "now?"}]}]}`
	b := reply(art.Message{Content: "Hi"})
	if w := postTo(newHandler(t, b), messagesPath, body); w.Code != http.StatusOK {
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	want := []art.Message{
		art.System("Be brief."), art.User("Look"),
		{Role: art.RoleAssistant, Reasoning: "Hm", Content: "I look.", ToolCalls: []art.ToolCall{
			{ID: "c1", Name: "look", Arguments: `{"at":1}`}, {ID: "c2", Name: "go", Arguments: "west"},
		}},
		art.ToolResult("c1", "a wall"), art.ToolResult("c2", "no"), art.User("And now?"),
	}
	if !reflect.DeepEqual(b.last.Messages, want) {
		t.Errorf("messages are %+v", b.last.Messages)
	}
	if got := b.last.Tools; len(got) != 1 || got[0].Name != "look" || string(got[0].Parameters) != `{"z": 1, "a": 2}` {
		t.Errorf("tools are %+v", got)
	}
	s := b.last.Settings
	s.Seed = 0
	if !reflect.DeepEqual(s, art.Sampling{Temperature: 0.5, TopP: 0.9, TopK: 40, MaxTokens: 9, Stop: []string{"END"}}) {
		t.Errorf("settings are %+v", s)
	}
	if got := string(b.last.TemplateArgs); got != `{"enable_thinking":false}` {
		t.Errorf("template arguments are %s", got)
	}
	body = strings.Replace(body, `{"type": "auto"}`, `{"type": "none"}`, 1)
	if w := postTo(newHandler(t, b), messagesPath, body); w.Code != http.StatusOK || len(b.last.Tools) != 0 {
		t.Errorf("tool_choice none: status %d, tools %+v", w.Code, b.last.Tools)
	}
}

// TestMessages_StopReasons checks why a reply ended. The tokens of the fake are "H" and a zero byte.
func TestMessages_StopReasons(t *testing.T) {
	cases := map[string]struct{ finish, fields, want string }{
		"end":      {art.FinishStop, ``, `"stop_reason":"end_turn","stop_sequence":null`},
		"length":   {art.FinishLength, `, "stop_sequences": ["H"]`, `"stop_reason":"max_tokens","stop_sequence":null`},
		"sequence": {art.FinishStop, `, "stop_sequences": ["x", "H"]`, `"stop_reason":"stop_sequence","stop_sequence":"H"`},
		"no match": {art.FinishStop, `, "stop_sequences": ["x"]`, `"stop_reason":"end_turn","stop_sequence":null`},
	}
	for name, c := range cases {
		b := reply(art.Message{})
		complete := b.complete
		b.complete = func(ctx context.Context, m *art.Model, req *art.ChatRequest) (*art.ChatResponse, error) {
			r, err := complete(ctx, m, req)
			r.Finish = c.finish
			return r, err
		}
		for _, stream := range []string{``, `, "stream": true`} {
			w := postTo(newHandler(t, b), messagesPath, message(c.fields+stream))
			if !strings.Contains(w.Body.String(), c.want) {
				t.Errorf("%s: got %s, want %s", name, w.Body, c.want)
			}
		}
	}
}

// TestMessages_Errors checks the form of errors, before and in a stream, and of those that access control makes.
func TestMessages_Errors(t *testing.T) {
	kinds := map[error][2]any{
		art.ErrContextLength:  {400, "invalid_request_error"},
		art.ErrNotRegistered:  {404, "not_found_error"},
		art.ErrClosed:         {503, "overloaded_error"},
		errors.New("no disk"): {500, "api_error"},
	}
	for err, want := range kinds {
		w := postTo(newHandler(t, fails(err)), messagesPath, message(``))
		body := `{"error":{"message":"` + err.Error() + `","type":"` + want[1].(string) + `"},"type":"error"}`
		if got := w.Body.String(); w.Code != want[0] || got != body {
			t.Errorf("status %d, got %s, want %s", w.Code, got, body)
		}
	}
	broken := &failing{Backend: says(art.Message{Content: "Hello"}), after: 3, err: errors.New("no device")}
	w := postTo(newHandler(t, broken), messagesPath, message(`, "stream": true`))
	want := "event: error\ndata: " + `{"error":{"message":"no device","type":"api_error"},"type":"error"}` + "\n\n"
	if got := w.Body.String(); !strings.HasSuffix(got, want) {
		t.Errorf("got %s", got)
	}
	m := register(t, reply(art.Message{}), "player")
	h, err := Handler(func() []*art.Model { return []*art.Model{m} }, nil, &art.HandlerOptions{Keys: []string{"secret"}})
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodPost, "http://localhost"+messagesPath, strings.NewReader(message(``)))
	w = httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if got := w.Body.String(); w.Code != 401 || !strings.Contains(got, `"type":"authentication_error"`) {
		t.Errorf("status %d, got %s", w.Code, got)
	}
}

// TestMessages_Refused checks that what is not supported is refused by name.
func TestMessages_Refused(t *testing.T) {
	cases := []struct{ body, want string }{
		{`{"model": "player", "messages": [{"role": "user", "content": "x"}]}`, "max_tokens is missing"},
		{`{"model": "player", "max_tokens": 5}`, "messages must not be empty"},
		{message(`, "max_tokens": 0`), "max_tokens must be at least 1"},
		{message(`, "tool_choice": {"type": "any"}`), "there are no tools"},
		{message(`, "tool_choice": {"type": "some"}`), "tool_choice must be"},
		{message(`, "tool_choice": {"type": "tool"}`), "tool_choice.name goes with"},
		{message(`, "tool_choice": {"type": "auto", "disable_parallel_tool_use": true}`), "disable_parallel_tool_use"},
		{message(`, "thinking": {"type": "enabled", "budget_tokens": 2000}`), "thinking must be"},
		{message(`, "output_config": {"effort": "low"}`), "output_config is supported only as {}"},
		{message(`, "mcp_servers": [{"type": "url"}]`), "mcp_servers is supported only as []"},
		{message(`, "stop_sequences": [""]`), "stop_sequences must not contain"},
		{message(`, "system": [{"type": "image"}]`), `system[0] is of type "image"`},
		{message(`, "tools": [{"type": "bash_20250124", "name": "bash"}]`), `tools[0].type is "bash_20250124"`},
		{message(`, "tools": [{}]`), "tools[0].name must not be empty"},
		{message(`, "messages": [{"role": "tool", "content": "x"}]`), `messages[0].role is "tool"`},
		{message(`, "messages": [{"role": "user", "content": 5}]`), "messages[0].content must be a string or a list"},
		{message(`, "messages": [{"role": "user", "content": [{"type": "image"}]}]`), `messages[0].content[0] is of type "image"`},
		{message(`, "messages": [{"role": "user", "content": []}]`), "messages[0].content must not be empty"},
		{message(`, "messages": [{"role": "user", "content": "x"}, {"role": "assistant", "content": "y"}]`), "must not end with"},
	}
	h := newHandler(t, reply(art.Message{}))
	for _, c := range cases {
		w, want := postTo(h, messagesPath, c.body), strings.ReplaceAll(c.want, `"`, `\"`)
		if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: status %d, %s", c.body, w.Code, w.Body)
		}
	}
}

// TestMessages_CountTokens checks the count, which needs no max_tokens, and that it needs a Tokenizer.
func TestMessages_CountTokens(t *testing.T) {
	body := `{"model": "player", "messages": [{"role": "user", "content": "Hello"}]}`
	w := postTo(newHandler(t, &arttest.Backend{}), messagesPath+"/count_tokens", body)
	if got := w.Body.String(); w.Code != http.StatusOK || got != `{"input_tokens":11}` { // "user:Hello\n"
		t.Errorf("status %d, got %s", w.Code, got)
	}
	w = postTo(newHandler(t, reply(art.Message{})), messagesPath+"/count_tokens", body)
	if w.Code != http.StatusNotImplemented || !strings.Contains(w.Body.String(), "art.Tokenizer") {
		t.Errorf("status %d, got %s", w.Code, w.Body)
	}
}
