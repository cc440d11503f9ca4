package schema_test

import (
	"encoding/json"
	"fmt"

	"github.com/goart-dev/art/ruler/reward/schema"
)

// First takes the first JSON in an answer, and Only nothing but JSON.
func ExampleSchema() {
	s, err := schema.Parse(json.RawMessage(`{
		"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]
	}`))
	if err != nil {
		panic(err)
	}
	for _, answer := range []string{`{"city": "Oslo"}`, `It is {"city": "Oslo"}.`, `{"town": "Oslo"}`} {
		fmt.Println(s.First(answer), s.Only(answer), answer)
	}
	// Output:
	// 1 1 {"city": "Oslo"}
	// 1 0 It is {"city": "Oslo"}.
	// 0 0 {"town": "Oslo"}
}
