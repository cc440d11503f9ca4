package art_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/grpo/dataset"
)

// Lines of OpenAI's fine-tuning format come back the same: unknown fields, order of keys, forms of content.
func TestExample_RoundTrip(t *testing.T) {
	for _, line := range []string{
		`{"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"Hello <b> & \u0001é"}]}`,
		`{"messages":[{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{}"}}]}],` +
			`"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{"b":{},"a":{}}}}}]}`,
		`{"tools":[{"type":"function","function":{"strict":true,"name":"f"}}],"parallel_tool_calls":false,"messages":[{"weight":0,"role":"assistant","content":"x"}],"id":1.50}`,
		`{"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"u"}}]}],"tools":[]}`,
		`{"messages":[{"role":"user","content":"x"}],"tools":null,"functions":[{"name":"old"}]}`,
	} {
		var e art.Example
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := dataset.WriteJSONL(&out, e); err != nil {
			t.Fatal(err)
		}
		wantEqual(t, "line", strings.TrimSpace(out.String()), line)
	}
}

func TestExample_MadeInGo(t *testing.T) {
	e := art.Example{History: art.History{
		Messages: []art.Message{art.User("a<b"), art.Assistant("yes")},
		Tools:    []art.Tool{{Name: "f"}},
	}}
	var out bytes.Buffer
	if err := dataset.WriteJSONL(&out, e, e); err != nil {
		t.Fatal(err)
	}
	const line = `{"messages":[{"role":"user","content":"a<b"},{"role":"assistant","content":"yes"}],` +
		`"tools":[{"type":"function","function":{"name":"f"}}]}` + "\n"
	wantEqual(t, "lines", out.String(), line+line)

	e.Add(art.User("more"))
	e.Tools = nil
	out.Reset()
	if err := dataset.WriteJSONL(&out, e); err != nil {
		t.Fatal(err)
	}
	wantEqual(t, "trajectory", e.Trajectory().Messages, e.Messages)
	if strings.Contains(out.String(), "tools") || !strings.Contains(out.String(), "more") {
		t.Errorf("wrote %s", out.String())
	}
}

func TestExample_Errors(t *testing.T) {
	for line, words := range map[string]string{
		`[]`:                              "is an array",
		`{"prompt":"a","completion":"b"}`: "messages is missing or empty",
		`{"messages":[]}`:                 "messages is missing or empty",
		`{"messages":{}}`:                 "messages is an object",
		`{"messages":[{"role":"user","content":1}]}`:                     "messages[0].content is a number",
		`{"messages":[{"role":"user","content":"x"}],"tools":[{"a":1}]}`: "tools[0].function is missing",
	} {
		wantErr(t, json.Unmarshal([]byte(line), new(art.Example)), art.ErrInvalid, words)
	}
	wantErr(t, dataset.WriteJSONL(&bytes.Buffer{}, art.Example{}), art.ErrInvalid, "record 0", "messages is empty")
	bad := art.Example{History: art.History{Messages: []art.Message{{}}}}
	good := art.Example{History: art.History{Messages: []art.Message{art.User("x")}}}
	wantErr(t, dataset.WriteJSONL(&bytes.Buffer{}, good, bad), art.ErrInvalid, "record 1", "role")
	wantErr(t, dataset.WriteJSONL(fullDisk{}, 1), art.ErrStorage, "no space")
}

var errNoSpace = errors.New("no space left")

// fullDisk is a writer that fails.
type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errNoSpace }

// What is read is written back the same, once it is in canonical form.
func FuzzExample(f *testing.F) {
	f.Add([]byte(`{"messages":[{"role":"user","content":"hi"}],"tools":[{"type":"function","function":{"name":"f"}}]}`))
	f.Add([]byte(`{"id":1,"messages":[{"weight":0,"role":"assistant","content":null}],"tools":null,"id":2}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var e, again art.Example
		if json.Unmarshal(data, &e) != nil {
			return
		}
		first, err := e.MarshalJSON()
		if err != nil {
			t.Fatalf("%v: %s", err, data)
		}
		if err := json.Unmarshal(first, &again); err != nil {
			t.Fatalf("%v: %s", err, first)
		}
		if second, err := again.MarshalJSON(); err != nil || !bytes.Equal(first, second) {
			t.Fatalf("%v:\n%s\n%s", err, first, second)
		}
	})
}
