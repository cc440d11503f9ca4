package art_test

import (
	"encoding/json"
	"testing"

	"github.com/goart-dev/art"
)

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
