package chat

import (
	"encoding/binary"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/callid"
	"github.com/goart-dev/art/internal/jinja"
)

// callIDs gives the calls of a reply their ids, none of which is in the conversation already.
//
// An id does not change what the model sees of its own reply, which has the ids of the tokens that were sampled.
type callIDs struct {
	rule     func(c *callIDs, name, own string) string // of the format; nil is ownOrNew
	prompt   []int32
	messages []art.Message // of the prompt
	seed     uint64
	source   *callid.Source  // nil until it is needed
	taken    map[string]bool // by the messages before the reply, and so far in it
	earlier  int             // calls in the messages before the reply
	count    int             // of the calls so far in the reply
}

// next returns the id of the next call. own is the one that the model wrote, "" if it wrote none.
func (c *callIDs) next(name, own string) string {
	rule := c.rule
	if rule == nil {
		rule = (*callIDs).ownOrNew
	}
	id := rule(c, name, own)
	if c.taken == nil {
		c.taken = map[string]bool{}
	}
	c.taken[id] = true
	c.count++
	return id
}

// ownOrNew keeps an id that the model wrote, unless the conversation has it.
func (c *callIDs) ownOrNew(_, own string) string {
	if own != "" && !c.taken[own] {
		return own
	}
	if c.source == nil {
		// By the tokens of the prompt and the ids of earlier calls, which few templates write, the prompts of an agent differ
		// that does the same again and sees its last turns only.
		data := make([]byte, 0, 4*len(c.prompt))
		for _, id := range c.prompt {
			data = binary.LittleEndian.AppendUint32(data, uint32(id))
		}
		for i := range c.messages {
			for _, call := range c.messages[i].ToolCalls {
				data = append(append(data, call.ID...), 0)
			}
		}
		c.source = new(callid.Of(data, c.seed))
	}
	return c.source.ID(c.count)
}

var nineCharacters = regexp.MustCompile(`^[0-9A-Za-z]{9}$`)

// mistral is the rule for Mistral's templates, which refuse an id that is not nine letters and digits.
func (c *callIDs) mistral(name, own string) string {
	if !nineCharacters.MatchString(own) {
		own = ""
	}
	return c.ownOrNew(name, own)
}

// kimi is the rule for Kimi K2: an id names the function and counts the calls of the conversation. A model that loses
// count is corrected.
func (c *callIDs) kimi(name, own string) string {
	if isKimiID(own, name) && !c.taken[own] {
		return own
	}
	return freeKimiID(name, c.earlier+c.count, c.taken)
}

// isKimiID reports whether an id is as Kimi K2 writes it.
func isKimiID(id, name string) bool {
	count, ok := strings.CutPrefix(id, "functions."+name+":")
	_, err := strconv.ParseUint(count, 10, 63)
	return ok && err == nil
}

// freeKimiID returns the first id from a count on that is not taken.
func freeKimiID(name string, count int, taken map[string]bool) string {
	for ; ; count++ {
		if id := fmt.Sprintf("functions.%s:%d", name, count); !taken[id] {
			return id
		}
	}
}

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
