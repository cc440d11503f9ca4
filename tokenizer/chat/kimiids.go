package chat

import (
	"fmt"
	"strings"

	"github.com/goart-dev/art/internal/jinja"
)

// nameIDs gives the calls of a conversation the ids that Kimi K2 gives them, and their results too: its template writes
// the id of a call, which must be functions.NAME:COUNT, and not the name. Ids that name the function stay.
func nameIDs(messages []*jinja.Dict) {
	ids, count := map[string]string{}, 0
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
			named := fmt.Sprintf("functions.%s:%d", name, count)
			if !strings.HasPrefix(id, "functions."+name+":") {
				ids[id] = named
				call.Set("id", named)
			}
			count++
		}
	}
}
