package art

import (
	"bytes"
	"encoding/json"
	"maps"
)

// templateArgs merges the variables of the chat template, those of the call before those of the model. It returns nil
// when there are none.
func (o *ChatOptions) templateArgs(defaults *ChatOptions) (json.RawMessage, error) {
	merged := map[string]json.RawMessage{}
	for _, o := range []*ChatOptions{defaults, o} {
		if o == nil || len(o.TemplateArgs) == 0 || bytes.Equal(bytes.TrimSpace(o.TemplateArgs), []byte("null")) {
			continue
		}
		var args map[string]json.RawMessage
		if err := json.Unmarshal(o.TemplateArgs, &args); err != nil {
			return nil, problems{"template arguments must be a JSON object: " + err.Error()}.err("complete", `write them like {"enable_thinking": false}`)
		}
		maps.Copy(merged, args)
	}
	if len(merged) == 0 {
		return nil, nil
	}
	return json.Marshal(merged)
}
