package chat

import (
	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/jinja"
)

// needsResultNames reports whether the template fails on a result that does not say which function it is of, as
// OpenAI's clients send it.
func (t *Template) needsResultNames() bool {
	conversation := probeConversation()[:3]
	if _, err := t.render(conversation, probeTools(), Whole); err != nil {
		return false
	}
	conversation[2].Name = ""
	_, err := t.render(conversation, probeTools(), Whole)
	return err != nil
}

// nameResults gives results without a name that of the function that was called.
func nameResults(messages []*jinja.Dict) {
	names := map[any]any{} // by the id of the call
	for _, m := range messages {
		for _, call := range jinja.Items(field(m, "tool_calls")) {
			names[field(call, "id")] = field(field(call, "function"), "name")
		}
		name, called := names[field(m, "tool_call_id")]
		if called && hasRole(m, art.RoleTool) && field(m, "name") == nil {
			m.Set("name", name)
		}
	}
}
