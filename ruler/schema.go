package ruler

import (
	"encoding/json"
	"fmt"
	"strings"
)

// maxExplanation is the most characters of an explanation in an answer that a schema restricts.
const maxExplanation = 300

// schema allows one entry for each attempt, in their order, and nothing else. Explanations come before ratings.
func (a *ask) schema() json.RawMessage {
	properties := fmt.Sprintf(`"explanation":{"type":"string","maxLength":%d}`, maxExplanation)
	required := `"id","explanation"`
	if len(a.criteria) > 0 {
		criteria := make([]string, len(a.criteria))
		names := make([]string, len(a.criteria))
		for i := range a.criteria {
			choices, _ := json.Marshal(a.criteria[i].Choices) // texts
			criteria[i] = fmt.Sprintf(`%q:{"enum":%s}`, a.criteria[i].Name, choices)
			names[i] = fmt.Sprintf("%q", a.criteria[i].Name)
		}
		properties += fmt.Sprintf(
			`,"criteria":{"type":"object","properties":{%s},"required":[%s],"additionalProperties":false}`,
			strings.Join(criteria, ","), strings.Join(names, ","))
		required += `,"criteria"`
	} else {
		properties += `,"score":{"type":"number","minimum":0,"maximum":1}`
		required += `,"score"`
	}
	if a.passFail {
		properties += `,"pass":{"type":"boolean"}`
		required += `,"pass"`
	}
	entries := make([]string, len(a.items))
	for i, item := range a.items {
		entries[i] = fmt.Sprintf(
			`{"type":"object","properties":{"id":{"const":%q},%s},"required":[%s],"additionalProperties":false}`, item.ID,
			properties, required)
	}
	n := len(entries)
	return json.RawMessage(fmt.Sprintf(
		`{"type":"object","properties":{"scores":{"type":"array","prefixItems":[%s],"items":false,"minItems":%d,`+
			`"maxItems":%d}},"required":["scores"],"additionalProperties":false}`, strings.Join(entries, ","), n, n))
}
