package art_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/goart-dev/art"
)

// encode marshals v and undoes the escapes that encoding/json adds for HTML.
func encode(t *testing.T, v any) string {
	t.Helper()
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		t.Fatalf("encode: %v", err)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// decode unmarshals into a new T.
func decode[T any](t *testing.T, text string) T {
	t.Helper()
	var v T
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("decode %s: %v", text, err)
	}
	return v
}

// The wire form of messages made in Go, which read back equal.
func TestMessage_GoldenJSON(t *testing.T) {
	call := art.ToolCall{ID: "c1", Name: "move", Arguments: `{"to": "<e4>"}`}
	cases := []struct {
		message art.Message
		want    string
	}{
		{art.System("Be brief."), `{"role":"system","content":"Be brief."}`},
		{art.User(""), `{"role":"user","content":""}`},
		{art.User("<b>\u2028&\"\\é\x00"), `{"role":"user","content":"<b>` + "\u2028" + `&\"\\é\u0000"}`},
		{art.Assistant("Hi"), `{"role":"assistant","content":"Hi"}`},
		{art.ToolResult("c1", "ok"), `{"role":"tool","content":"ok","tool_call_id":"c1"}`},
		{art.Message{Role: art.RoleAssistant, ToolCalls: []art.ToolCall{call}},
			`{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"move","arguments":"{\"to\": \"<e4>\"}"}}]}`},
		{art.Message{Role: art.RoleAssistant, Content: "a", Reasoning: "r", ToolCalls: []art.ToolCall{{}, call}, Name: "n"},
			`{"role":"assistant","content":"a","reasoning_content":"r","tool_calls":[{"id":"","type":"function","function":{"name":"","arguments":""}},` +
				`{"id":"c1","type":"function","function":{"name":"move","arguments":"{\"to\": \"<e4>\"}"}}],"name":"n"}`},
		{art.Message{Role: "critic", Content: "x"}, `{"role":"critic","content":"x"}`},
	}
	for _, c := range cases {
		raw, err := c.message.MarshalJSON()
		if err != nil || string(raw) != c.want {
			t.Errorf("got  %s (error %v)\nwant %s", raw, err, c.want)
		}
		escaped, err := json.Marshal(c.message)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{c.want, string(escaped)} {
			wantEqual(t, "read back", decode[art.Message](t, text), c.message)
		}
	}
	sampled := art.Assistant("x")
	sampled.Sample = &art.Sample{IDs: []int32{1}}
	wantEqual(t, "JSON of a sampled message", encode(t, sampled), `{"role":"assistant","content":"x"}`)
}

// What was read is written back: order of keys, unknown fields, form of the content.
func TestMessage_WireRoundTrip(t *testing.T) {
	cases := []struct{ text, content string }{
		{`{"content":"b","role":"user"}`, "b"},
		{`{"role":"assistant"}`, ""},
		{`{"role":"assistant","content":null}`, ""},
		{`{"role":"assistant","content":"","tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":""}}]}`, ""},
		{`{"role":"assistant","tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":""}}]}`, ""},
		{`{"role":"assistant","content":"x","refusal":null,"tool_calls":null,"audio":null,"name":null,"reasoning_content":null,"annotations":[]}`, "x"},
		{`{"role":"assistant","content":"x","tool_calls":[],"name":"","tool_call_id":""}`, "x"},
		{`{"role":"user","content":[]}`, ""},
		{`{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"data:x"}},{"type":"text","text":"b","cache":{"z":1,"a":2}}]}`, "ab"},
		{`{"role":"user","content":"x","big":12345678901234567890.10,"deep":{"b":[{"z":1e400,"a":"<&>"}],"a":null}}`, "x"},
		{`{"role":"user","content":"x","":{"":""},"Role":"other","CONTENT":5}`, "x"},
		{`{"role":"assistant","content":"x","tool_calls":[{"index":0,"function":{"arguments":"{}","name":"f","extra":true},"type":"function","id":"1"}]}`, "x"},
		{`{"role":"assistant","content":"x","tool_calls":[{"function":{"name":"f","arguments":{"b":1,"a":[1.0]}}}]}`, "x"},
		{`{"role":"assistant","content":"x","tool_calls":[{"function":{"name":"f","arguments":null}}]}`, "x"},
		{`{"role":"assistant","content":"x","tool_calls":[{"id":"1","type":"custom","custom":{"name":"f","input":"raw"}}]}`, "x"},
		{`{"role":"user","content":"x","text":"\\u003c \" \\\\\" end"}`, "x"},
	}
	for _, c := range cases {
		m := decode[art.Message](t, c.text)
		if got := encode(t, m); got != c.text {
			t.Errorf("got  %s\nwant %s", got, c.text)
		}
		if m.Content != c.content {
			t.Errorf("content of %s is %q, want %q", c.text, m.Content, c.content)
		}
		escaped, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		wantEqual(t, "through json.Marshal", decode[art.Message](t, string(escaped)), m)
	}
}

func TestMessage_WireNormalises(t *testing.T) {
	cases := []struct{ name, text, want string }{
		{"space", " { \"role\" : \"user\" ,\n\"content\":\t\"x\", \"x\" : [ 1 , { } ] } ", `{"role":"user","content":"x","x":[1,{}]}`},
		{"string escapes", `{"role":"us\u0065r","content":"\u00e9\/"}`, `{"role":"user","content":"é/"}`},
		{"html escapes", `{"role":"user","content":"x","x":"\u003C\u003e\u0026\u2028 \\u003c"}`, `{"role":"user","content":"x","x":"<>&` + "\u2028" + ` \\u003c"}`},
		{"duplicate keys", `{"role":"user","x":1,"content":"a","x":2,"content":"b"}`, `{"role":"user","x":2,"content":"b"}`},
	}
	for _, c := range cases {
		if got := encode(t, decode[art.Message](t, c.text)); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
}

// Fields that are changed in Go override what was read; the rest stays.
func TestMessage_EditedWire(t *testing.T) {
	const parts = `{"x":1,"content":[{"type":"text","text":"a"}],"role":"user","name":null}`
	const calls = `{"role":"assistant","tool_calls":[{"function":{"strict":true,"arguments":{"a":1},"name":"f"},` +
		`"id":"1","index":0}]}`
	cases := []struct {
		name, text string
		edit       func(m *art.Message)
		want       string
	}{
		{"content", parts, func(m *art.Message) { m.Content = "b" }, `{"x":1,"content":"b","role":"user","name":null}`},
		{"content to nothing", parts, func(m *art.Message) { m.Content = "" }, `{"x":1,"content":"","role":"user","name":null}`},
		{"role", parts, func(m *art.Message) { m.Role = art.RoleSystem }, `{"x":1,"content":[{"type":"text","text":"a"}],"role":"system","name":null}`},
		{"name", parts, func(m *art.Message) { m.Name = "n" }, `{"x":1,"content":[{"type":"text","text":"a"}],"role":"user","name":"n"}`},
		{"added field", parts, func(m *art.Message) { m.Reasoning = "r" },
			`{"x":1,"content":[{"type":"text","text":"a"}],"role":"user","name":null,"reasoning_content":"r"}`},
		{"removed field", `{"role":"user","content":"a","name":"n","x":1}`, func(m *art.Message) { m.Name = "" }, `{"role":"user","content":"a","x":1}`},
		{"content of a message without", calls, func(m *art.Message) { m.Content = "c" },
			`{"role":"assistant","tool_calls":[{"function":{"strict":true,"arguments":{"a":1},"name":"f"},"id":"1","index":0}],"content":"c"}`},
		{"call name", calls, func(m *art.Message) { m.ToolCalls[0].Name = "g" },
			`{"role":"assistant","tool_calls":[{"function":{"strict":true,"arguments":{"a":1},"name":"g"},"id":"1","index":0}]}`},
		{"call arguments", calls, func(m *art.Message) { m.ToolCalls[0].Arguments = "{}" },
			`{"role":"assistant","tool_calls":[{"function":{"strict":true,"arguments":"{}","name":"f"},"id":"1","index":0}]}`},
		{"call id", calls, func(m *art.Message) { m.ToolCalls[0].ID = "2" },
			`{"role":"assistant","tool_calls":[{"function":{"strict":true,"arguments":{"a":1},"name":"f"},"id":"2","index":0}]}`},
		{"no calls", calls, func(m *art.Message) { m.ToolCalls = nil }, `{"role":"assistant"}`},
		{"calls in place of null", `{"role":"assistant","content":"","tool_calls":null}`, func(m *art.Message) { m.ToolCalls = []art.ToolCall{{ID: "1", Name: "f"}} },
			`{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":""}}]}`},
		{"function of another type of call", `{"role":"assistant","content":null,"tool_calls":[{"type":"custom","id":"1"}]}`,
			func(m *art.Message) { m.ToolCalls[0].Name = "f" },
			`{"role":"assistant","content":null,"tool_calls":[{"type":"custom","id":"1","function":{"name":"f","arguments":""}}]}`},
	}
	for _, c := range cases {
		m := decode[art.Message](t, c.text)
		c.edit(&m)
		if got := encode(t, m); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
}

func TestMessage_InvalidJSON(t *testing.T) {
	cases := []struct{ text, say string }{
		{`5`, "is a number, want an object"},
		{`null`, "is null, want an object"},
		{`{}`, "role is missing"},
		{`{"role":null}`, "role is missing"},
		{`{"role":""}`, "role is empty"},
		{`{"role":5}`, "role is a number, want a string"},
		{`{"role":"user","content":5}`, "content is a number, want a string, null or an array of parts"},
		{`{"role":"user","content":{"type":"text"}}`, "content is an object"},
		{`{"role":"user","content":[{"type":"text","text":"a"},"b"]}`, "content[1] is a string, want an object"},
		{`{"role":"user","content":[{"text":"a"}]}`, "content[0].type is missing"},
		{`{"role":"user","content":[{"type":"text"}]}`, "content[0].text is missing"},
		{`{"role":"user","content":[{"type":"text","text":[]}]}`, "content[0].text is an array, want a string"},
		{`{"role":"user","name":true}`, "name is a boolean, want a string"},
		{`{"role":"user","reasoning_content":{}}`, "reasoning_content is an object"},
		{`{"role":"tool","tool_call_id":1}`, "tool_call_id is a number"},
		{`{"role":"assistant","tool_calls":{}}`, "tool_calls is an object, want an array"},
		{`{"role":"assistant","tool_calls":[null]}`, "tool_calls[0] is null, want an object"},
		{`{"role":"assistant","tool_calls":[{"function":{"name":"f"}},{"id":1,"function":{"name":"f"}}]}`, "tool_calls[1].id is a number"},
		{`{"role":"assistant","tool_calls":[{"type":true,"function":{"name":"f"}}]}`, "tool_calls[0].type is a boolean"},
		{`{"role":"assistant","tool_calls":[{"id":"1"}]}`, "tool_calls[0].function is missing"},
		{`{"role":"assistant","tool_calls":[{"function":"f"}]}`, "tool_calls[0].function is a string, want an object"},
		{`{"role":"assistant","tool_calls":[{"function":{}}]}`, "tool_calls[0].function.name is missing"},
		{`{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":[]}}]}`, "tool_calls[0].function.arguments is an array"},
	}
	for _, c := range cases {
		m := art.User("untouched")
		wantErr(t, json.Unmarshal([]byte(c.text), &m), art.ErrInvalid, "read message", c.say)
		wantEqual(t, "message after a failure", m, art.User("untouched"))
	}
	var m art.Message
	wantErr(t, m.UnmarshalJSON([]byte(`{"role":"user"`)), art.ErrInvalid, "not valid JSON")
	_, err := json.Marshal(art.Message{Content: "x"})
	wantErr(t, err, art.ErrInvalid, "write message", "role is empty")
}

// randomText returns a text with characters that encoders treat specially.
func randomText(r *rand.Rand) string {
	pieces := []string{
		"", "a", "word ", "<b>", "&", "\u2028", "\u2029", `"`, `\`, `\u003c`, "\n", "\x00", "\x7f", "é", "世界", "🙂", "{\"a\":1}", "\ufffd", "/",
	}
	var b strings.Builder
	for range r.IntN(5) {
		b.WriteString(pieces[r.IntN(len(pieces))])
	}
	return b.String()
}

// randomMessage returns a message as Go code makes them.
func randomMessage(r *rand.Rand) art.Message {
	switch r.IntN(5) {
	case 0:
		return art.System(randomText(r))
	case 1:
		return art.User(randomText(r))
	case 2:
		return art.ToolResult(randomText(r), randomText(r))
	}
	m := art.Assistant(randomText(r))
	m.Reasoning, m.Name = randomText(r), randomText(r)
	for range r.IntN(3) {
		m.ToolCalls = append(m.ToolCalls, art.ToolCall{ID: randomText(r), Name: randomText(r), Arguments: randomText(r)})
	}
	return m
}

func TestMessage_RoundTripProperty(t *testing.T) {
	const seed = 4
	t.Log("seed", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 2000 {
		m := randomMessage(r)
		escaped, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{string(escaped), encode(t, m)} {
			if got := decode[art.Message](t, text); !reflect.DeepEqual(got, m) {
				t.Fatalf("got  %+v\nwant %+v\nfrom %s", got, m, text)
			}
		}
	}
}

// sameJSON reports whether two texts are the same JSON, numbers as they are written.
func sameJSON(t *testing.T, a, b []byte) bool {
	t.Helper()
	value := func(text []byte) (v any) {
		d := json.NewDecoder(bytes.NewReader(text))
		d.UseNumber()
		if err := d.Decode(&v); err != nil {
			t.Fatal(err)
		}
		return v
	}
	return reflect.DeepEqual(value(a), value(b))
}

// keys returns the keys of an object, in order, each once.
func keys(t *testing.T, text []byte) (out []string) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(text))
	if _, err := d.Token(); err != nil {
		t.Fatal(err)
	}
	for d.More() {
		key, err := d.Token()
		var value json.RawMessage
		if err != nil || d.Decode(&value) != nil {
			t.Fatal(err)
		}
		if !slices.Contains(out, key.(string)) {
			out = append(out, key.(string))
		}
	}
	return out
}

// fuzzWire checks that a wire value that can be read is written as the same JSON with the same order of keys, and reads
// back equal.
func fuzzWire[T any](f *testing.F, seeds ...string) {
	for _, seed := range seeds {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var v, again T
		if json.Unmarshal(data, &v) != nil {
			return
		}
		out, err := json.Marshal(v)
		if err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
		if !sameJSON(t, data, out) {
			t.Errorf("read    %s\nwritten %s", data, out)
		}
		if a, b := keys(t, data), keys(t, out); !slices.Equal(a, b) {
			t.Errorf("keys %q became %q", a, b)
		}
		if err := json.Unmarshal(out, &again); err != nil || !reflect.DeepEqual(v, again) {
			t.Errorf("%s reads back as %+v, error %v; want %+v", out, again, err, v)
		}
	})
}

func FuzzMessage(f *testing.F) {
	fuzzWire[art.Message](f,
		`{"role":"user","content":"x"}`,
		`{"content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"u"}}],"x":{"b":[1e3],`+
			`"a":"\u003c\\u003c"},"role":"user"}`,
		`{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"f",`+
			`"arguments":"{}","x":null}}],"role":"user"}`,
		`{"role":"assistant","tool_calls":[{"type":"custom"},{"function":{"arguments":{"b":1},"name":"f"}}],"name":null}`,
		`{"role":"\ud800","content":"","tool_calls":[],"reasoning_content":"r","tool_call_id":""}`,
	)
}

// TestMessage_DuplicateKeys: of a duplicate key the last value counts, at the position of the first, also among many
// keys.
func TestMessage_DuplicateKeys(t *testing.T) {
	var data, want strings.Builder
	for i := range 100 {
		fmt.Fprintf(&data, `,"k%d":%d`, i%50, i)
	}
	for i := range 50 {
		fmt.Fprintf(&want, `,"k%d":%d`, i, i+50)
	}
	var m art.Message
	if err := json.Unmarshal([]byte(`{"role":"user"`+data.String()+"}"), &m); err != nil {
		t.Fatal(err)
	}
	if got := encode(t, m); got != `{"role":"user"`+want.String()+"}" {
		t.Errorf("got %s", got)
	}
}

func TestToolCall_JSON(t *testing.T) {
	c := decode[art.ToolCall](t, `{"function":{"name":"f"},"index":0}`)
	wantEqual(t, "a call on its own", encode(t, c), `{"function":{"name":"f"},"index":0}`)
	wantErr(t, json.Unmarshal([]byte(`{"function":{"name":5}}`), &c), art.ErrInvalid, "read tool call",
		"function.name is a number")
}

func TestTool_JSON(t *testing.T) {
	const schema = `{"type":"object","properties":{"z":{"type":"number","minimum":1.50},"a":{"enum":["<",">"]}},` +
		`"required":["z"]}`
	tool := art.Tool{Name: "f", Description: "does", Parameters: json.RawMessage(schema)}
	wantEqual(t, "JSON", encode(t, tool),
		`{"type":"function","function":{"name":"f","description":"does","parameters":`+schema+`}}`)
	wantEqual(t, "JSON without options", encode(t, art.Tool{Name: "f"}), `{"type":"function","function":{"name":"f"}}`)
	for _, made := range []art.Tool{tool, {Name: "f"}, {}} {
		escaped, err := json.Marshal(made)
		if err != nil {
			t.Fatal(err)
		}
		wantEqual(t, "read back", decode[art.Tool](t, string(escaped)), made)
	}
	spaced := art.Tool{Name: "f", Parameters: json.RawMessage(" { \"a\" : 1 } ")}
	wantEqual(t, "parameters with space", encode(t, spaced),
		`{"type":"function","function":{"name":"f","parameters":{"a":1}}}`)
	for _, text := range []string{
		`{"function":{"strict":true,"parameters":` + schema + `,"name":"f"},"type":"function","x":[1]}`,
		`{"type":"function","function":{"name":"f","description":null,"parameters":null}}`,
		`{"type":"function","function":{"name":"f","parameters":true}}`,
		`{"type":"web_search","filters":{"b":1,"a":2}}`,
		`{"function":{"name":"f"}}`,
	} {
		read := decode[art.Tool](t, text)
		wantEqual(t, "written back", encode(t, read), text)
	}
	edited := decode[art.Tool](t, `{"function":{"strict":true,"parameters":null,"name":"f"}}`)
	edited.Name, edited.Parameters, edited.Description = "g", json.RawMessage(`{}`), "d"
	wantEqual(t, "edited", encode(t, edited), `{"function":{"strict":true,"parameters":{},"name":"g","description":"d"}}`)
}

func TestTool_InvalidJSON(t *testing.T) {
	cases := []struct{ text, say string }{
		{`[]`, "is an array, want an object"},
		{`{"type":"function"}`, "function is missing"},
		{`{"type":"function","name":"f"}`, "function is missing"},
		{`{"function":{"name":null}}`, "function.name is missing"},
		{`{"function":{"name":"f","description":1}}`, "function.description is a number"},
		{`{"function":{"name":"f","parameters":"{}"}}`, "function.parameters is a string, want an object"},
	}
	for _, c := range cases {
		var tool art.Tool
		wantErr(t, json.Unmarshal([]byte(c.text), &tool), art.ErrInvalid, "read tool", c.say)
	}
	_, err := json.Marshal(art.Tool{Name: "f", Parameters: json.RawMessage(`{`)})
	wantErr(t, err, art.ErrInvalid, "write tool", "function.parameters of f is not valid JSON")
}

func FuzzTool(f *testing.F) {
	fuzzWire[art.Tool](f,
		`{"type":"function","function":{"name":"f","description":"d","parameters":{"z":1,"a":[{}]}}}`,
		`{"function":{"strict":true,"parameters":null,"name":"f"},"type":null}`,
		`{"type":"web_search","x":"\u2028"}`,
	)
}

// Texts are written as encoding/json writes them, but for the escapes of U+2028 and U+2029.
func TestMessage_Text(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	pieces := []string{
		"a", "é", "😀", "\"", "\\", "\\u2028", "<&>", "\u2028", "\u2029", "\x7f", "\x80", "\xe2\x80", "\uFFFD",
	}
	for c := range 32 {
		pieces = append(pieces, string(rune(c)))
	}
	for range 500 {
		var text strings.Builder
		for range random.IntN(8) {
			text.WriteString(pieces[random.IntN(len(pieces))])
		}
		quoted := encode(t, strings.NewReplacer("\u2028", "LS", "\u2029", "PS").Replace(text.String()))
		want := strings.NewReplacer("LS", "\u2028", "PS", "\u2029").Replace(quoted)
		raw, err := art.User(text.String()).MarshalJSON()
		if err != nil || string(raw) != `{"role":"user","content":`+want+`}` {
			t.Fatalf("%q is written as %s (error %v), want content %s", text.String(), raw, err, want)
		}
	}
}

func BenchmarkMessage_MarshalJSON(b *testing.B) {
	for name, m := range map[string]art.Message{
		"short": art.User("3+4="), "long": art.User(strings.Repeat("Line \"of\" text.\n", 256)),
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := m.MarshalJSON(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkTrajectoryGroup_MarshalJSON(b *testing.B) {
	g := &art.TrajectoryGroup{}
	for range 8 {
		t := art.NewTrajectory(art.System("Reply with a number."))
		for range 4 {
			reply := art.Assistant("12")
			reply.Sample = &art.Sample{PromptIDs: make([]int32, 100), IDs: make([]int32, 8), Logprobs: make([]float32, 8)}
			for i := range reply.Sample.Logprobs {
				reply.Sample.Logprobs[i] = -1 / float32(i+3)
			}
			t.Add(art.User("3+4="), reply)
		}
		g.Trajectories = append(g.Trajectories, t)
	}
	for b.Loop() {
		if _, err := g.MarshalJSON(); err != nil {
			b.Fatal(err)
		}
	}
}
