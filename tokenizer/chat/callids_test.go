package chat

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/callid"
)

// callID is the id of the i-th call of a reply to an empty prompt, unless the model wrote another.
func callID(i int) string { return callid.Of(nil, 0).ID(i) }

// mistralID is an id as Mistral's models write it.
func mistralID(i int) string { return fmt.Sprintf("call%05d", i) }

// giveIDs gives the calls of a reply the ids that its parser makes of a prompt, unless the format writes ids.
func giveIDs(m *art.Message, parser string, prompt []int32) {
	if slices.Contains(idFormats, parser) {
		return
	}
	var data []byte
	for _, id := range prompt {
		data = binary.LittleEndian.AppendUint32(data, uint32(id))
	}
	for i := range m.ToolCalls {
		m.ToolCalls[i].ID = callid.Of(data, 0).ID(i)
	}
}

// TestRead_CallIDs: whatever the format, no two calls of a conversation have the same id, even if the client drops what
// came before, and neither do the calls of several replies to one prompt. Whole and streamed replies have the same ids,
// and those that the template checks, it takes. The model writes the same two calls in each reply.
func TestRead_CallIDs(t *testing.T) {
	for _, c := range replyCases {
		if c.parser == noTools {
			continue
		}
		template, tools := withTemplate(t, c.template, c.tokens...), []art.Tool{schema}
		written := callsMessage(c.ids(0), c.ids(1))
		if c.single {
			written.ToolCalls = written.ToolCalls[:1]
		}
		ids, mask, err := template.Target([]art.Message{art.User("Hi"), written}, tools)
		must(t, err)
		reply := masked(ids, mask)
		seen := map[string]bool{}
		take := func(prompt []int32, messages []art.Message, seed uint64) art.Message {
			r := template.Read(prompt, tools).Answering(messages, seed)
			for _, id := range reply {
				r.Add(id)
			}
			_, m, err := r.Close()
			must(t, err)
			early, err := streamed(template.Stream(prompt, tools).Answering(messages, seed), reply)
			if err != nil || !slices.Equal(callIDsOf(&early), callIDsOf(&m)) || len(m.ToolCalls) != len(written.ToolCalls) {
				t.Fatalf("%s: whole %+v, streamed %+v (%v)", c.template, m.ToolCalls, early.ToolCalls, err)
			}
			return m
		}
		h := art.History{Messages: []art.Message{art.User("Hi")}}
		for turn := range 6 {
			prompt := template.mustPrompt(t, h.Messages, tools)
			m := take(prompt, h.Messages, 0)
			for _, call := range m.ToolCalls {
				if seen[call.ID] {
					t.Fatalf("%s: turn %d repeats %q", c.template, turn, call.ID)
				}
				seen[call.ID] = true
			}
			if !slices.Equal(callIDsOf(&m), callIDsOf(new(take(prompt, h.Messages, 0)))) {
				t.Errorf("%s: the ids of turn %d change", c.template, turn)
			}
			if !slices.Contains(idFormats, c.parser) {
				if other := take(prompt, h.Messages, 1); other.ToolCalls[0].ID == m.ToolCalls[0].ID {
					t.Errorf("%s: two replies to a prompt have %q", c.template, m.ToolCalls[0].ID)
				}
			}
			m.Sample = &art.Sample{PromptIDs: prompt, IDs: reply}
			h.Add(m, art.User("And now?"))
			before := slices.Concat(prompt, reply)
			if next := template.mustPrompt(t, h.Messages, tools); !slices.Equal(next[:len(before)], before) {
				t.Errorf("%s: the prompt of turn %d does not begin with the one before and the reply", c.template, turn+1)
			}
			if turn >= 2 && !slices.Contains(idFormats, c.parser) { // the client drops all but the last turn
				h.Messages = h.Messages[len(h.Messages)-3:]
			}
		}
	}
}

// idFormats are the parsers of formats whose models write ids.
var idFormats = []string{apriel, mistral, kimiK2}

// callsMessage is a message with calls of one function.
func callsMessage(ids ...string) art.Message {
	m := art.Message{Role: art.RoleAssistant}
	for _, id := range ids {
		m.ToolCalls = append(m.ToolCalls, art.ToolCall{ID: id, Name: "get_weather", Arguments: `{"n": 1}`})
	}
	return m
}

func callIDsOf(m *art.Message) (ids []string) {
	for _, call := range m.ToolCalls {
		ids = append(ids, call.ID)
	}
	return ids
}

// TestRead_KimiIDs: a model that begins to count again in each reply, or writes the name alone, gets ids that count the
// calls of the conversation, and the template writes them. An id that is right stays.
func TestRead_KimiIDs(t *testing.T) {
	const begin, end = "<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"
	template := withTemplate(t, "kimi_ids", begin, end, kimiBegin, kimiSeparator, kimiEnd)
	history := []art.Message{art.User("Hi")}
	for _, c := range [][2]string{
		{"functions.f:0", "functions.f:0"}, {"functions.f:0", "functions.f:1"}, {"functions.f:2", "functions.f:2"},
		{"f", "functions.f:3"}, {"functions.f:7", "functions.f:7"}, {"functions.f:0", "functions.f:5"},
		{"functions.g:5", "functions.g:5"}, {"f:0", "functions.f:8"},
	} {
		prompt := template.mustPrompt(t, history, nil)
		reply := template.control.encode(begin+kimiBegin+c[0]+kimiSeparator+"{}"+kimiEnd+end+"<|im_end|>", 0)
		r := template.Read(prompt, nil).Answering(history, 0)
		for _, id := range reply {
			r.Add(id)
		}
		_, m, err := r.Close()
		must(t, err)
		if len(m.ToolCalls) != 1 || m.ToolCalls[0].ID != c[1] {
			t.Fatalf("%q: got %+v, want %q", c[0], m.ToolCalls, c[1])
		}
		history = append(history, m, art.ToolResult(c[1], "1"))
		text := template.mustText(t, history, nil, Whole)
		if !strings.HasSuffix(text, "## Return of "+c[1]+"\n1<|im_end|>") ||
			!strings.Contains(text, kimiBegin+c[1]+kimiSeparator) {
			t.Errorf("%q", text)
		}
	}
}

// TestText_NamedIDsDoNotRepeat: a call whose id comes from elsewhere does not get one that a call before it has.
func TestText_NamedIDsDoNotRepeat(t *testing.T) {
	m := callsMessage("functions.get_weather:1", "x", "y")
	text := withTemplate(t, "kimi_ids").mustText(t, []art.Message{art.User("a"), m}, nil, Whole)
	for _, id := range []string{"functions.get_weather:1", "functions.get_weather:2", "functions.get_weather:3"} {
		if strings.Count(text, id) != 1 {
			t.Errorf("%q is not once in %q", id, text)
		}
	}
}

// TestRead_MistralIDs: Mistral's templates refuse an id that is not nine letters and digits, so a call whose id is
// otherwise gets another.
func TestRead_MistralIDs(t *testing.T) {
	for own, kept := range map[string]bool{
		"a1B2c3D4e": true, "x": false, "a1B2c3D4é": false, "a1B2-3D4e": false, "a1B2c3D4e5": false,
	} {
		p := smallFormat(t, mistral, "").start(false, nil)
		p.add(withTokens(p.format, "[TOOL_CALLS]f[CALL_ID]"+own+"[ARGS]{}"))
		_, err := p.close()
		must(t, err)
		if id := p.message.ToolCalls[0].ID; len(id) != callid.Length || (id == own) != kept {
			t.Errorf("%q became %q", own, id)
		}
	}
}
