package chat

import (
	"github.com/goart-dev/art/internal/jinja"
)

// nameIDs gives the calls of a conversation the ids that Kimi K2 gives them, and their results too: its template writes
// the id of a call, which must be functions.NAME:COUNT, and not the name. Ids that name the function stay.
func nameIDs(messages []*jinja.Dict) {
	ids, taken, count := map[string]string{}, map[string]bool{}, 0
	for _, m := range messages {
		if of, ok := field(m, "tool_call_id").(string); ok && ids[of] != "" {
			m.Set("tool_call_id", ids[of])
		}
		for _, item := range jinja.Items(field(m, "tool_calls")) {
			call, ok := item.(*jinja.Dict)
			if !ok {
				continue
			}
			name, _ := field(field(call, "function"), "name").(string)
			id, _ := field(call, "id").(string)
			if !isKimiID(id, name) {
				ids[id] = freeKimiID(name, count, taken)
				id = ids[id]
				call.Set("id", id)
			}
			taken[id] = true
			count++
		}
	}
}
