package tokenizer

import (
	"fmt"
	"slices"
	"strings"

	"github.com/goart-dev/art"
)

// The control tokens of ChatML. The last three pairs are plain text where the vocabulary has no tokens for them.
const (
	imStart       = "<|im_start|>"
	imEnd         = "<|im_end|>"
	thinkOpen     = "<think>"
	thinkClose    = "</think>"
	callOpen      = "<tool_call>"
	callClose     = "</tool_call>"
	responseOpen  = "<tool_response>"
	responseClose = "</tool_response>"
)

// chatML writes a turn as
//
//	<|im_start|>role
//	content<|im_end|>
//
// with the assistant's turn in this order, each part only where there is one:
//
//	<think>
//	reasoning
//	</think>
//
//	content
//	<tool_call>
//	{"name": "...", "arguments": {...}}
//	</tool_call>
//
// Tools are described in the first system turn, which is made for them if there is none. Their results are a user turn
// of <tool_response> blocks, one turn for all that follow one another. Participants' names are not written.
type chatML struct {
	tok     *Tokenizer
	bos     []int32  // when the model's own chat template begins with it
	end     int32    // of a turn
	ends    []int32  // of a reply
	markers []marker // in a reply
}

func newChatML(t *Tokenizer) (*chatML, error) {
	f := &chatML{tok: t}
	for _, token := range []string{imStart, imEnd, thinkOpen, thinkClose, callOpen, callClose, responseOpen, responseClose} {
		id, ok := t.added.byContent[token]
		if !ok && (token == imStart || token == imEnd) {
			return nil, fmt.Errorf("the vocabulary has no token %s", token)
		}
		if ok && t.model.produces(id) {
			return nil, fmt.Errorf("the token %s can come out of ordinary text, so content could not be told from control", token)
		}
	}
	f.end = t.added.byContent[imEnd]
	f.ends = t.endsOfText(f.end)
	f.markers = t.markers(thinkOpen, thinkClose, callOpen, callClose)
	if strings.Contains(t.chatTemplate, "bos_token") {
		f.bos = t.bos
	}
	return f, nil
}

// endsOfText lists the ids that end a reply: the end of the turn, and those that end a text.
func (t *Tokenizer) endsOfText(turn int32) []int32 {
	ends := append([]int32{turn}, t.eos...)
	if id, ok := t.added.byContent["<|endoftext|>"]; ok && t.IsSpecial(id) {
		ends = append(ends, id)
	}
	slices.Sort(ends[1:])
	ends = slices.Compact(ends)
	return append(ends[:1], slices.DeleteFunc(ends[1:], func(id int32) bool { return id == turn })...)
}

func (f *chatML) stops() []int32 { return f.ends }

func (f *chatML) reply(w *writer) {
	w.scaffold(imStart + "assistant\n")
	w.border()
}

func (f *chatML) render(w *writer, messages []art.Message, tools []art.Tool) error {
	w.append(f.bos...)
	first := 0
	if len(tools) > 0 {
		system := ""
		if len(messages) > 0 && isSystem(messages[0].Role) {
			system, first = messages[0].Content, 1
		}
		if err := f.system(w, system, tools); err != nil {
			return err
		}
	}
	for i := first; i < len(messages); i++ {
		if err := f.message(w, messages, i); err != nil {
			return fmt.Errorf("message %d: %w", i, err)
		}
	}
	return nil
}

func isSystem(r art.Role) bool { return r == art.RoleSystem || r == art.RoleDeveloper }

func (f *chatML) message(w *writer, messages []art.Message, i int) error {
	m := &messages[i]
	if m.Sample != nil && m.Role != art.RoleAssistant {
		return fmt.Errorf("it has a Sample, but its role is %q: only an assistant's message is sampled", m.Role)
	}
	switch m.Role {
	case art.RoleSystem, art.RoleDeveloper:
		f.turn(w, "system", m.Content)
	case art.RoleUser:
		f.turn(w, "user", m.Content)
	case art.RoleTool:
		first := i == 0 || messages[i-1].Role != art.RoleTool
		last := i == len(messages)-1 || messages[i+1].Role != art.RoleTool
		f.result(w, m.Content, first, last)
	case art.RoleAssistant:
		return f.assistant(w, m)
	default:
		return fmt.Errorf("role %q is not known", m.Role)
	}
	return nil
}

func (f *chatML) turn(w *writer, role, content string) {
	w.scaffold(imStart + role + "\n")
	w.content(content)
	w.scaffold(imEnd + "\n")
	w.border()
}

// result writes the result of one tool call. first and last say where it is among results that follow one another.
func (f *chatML) result(w *writer, content string, first, last bool) {
	if first {
		w.scaffold(imStart + "user")
	}
	w.scaffold("\n" + responseOpen + "\n")
	w.content(content)
	w.scaffold("\n" + responseClose)
	if last {
		w.scaffold(imEnd + "\n")
		w.border()
	}
}

// assistant writes a header, a reply and the end of the turn.
func (f *chatML) assistant(w *writer, m *art.Message) error {
	f.reply(w)
	w.target(true)
	ended := false
	if m.Sample != nil {
		n := len(m.Sample.IDs)
		ended = n > 0 && m.Sample.IDs[n-1] == f.end
		w.sampled(m.Sample.IDs)
		w.target(false)
	} else if err := f.say(w, m); err != nil {
		return err
	}
	if !ended {
		w.control(f.end)
	}
	w.target(false)
	w.scaffold("\n")
	w.border()
	return nil
}

// say writes a reply that was not sampled.
func (f *chatML) say(w *writer, m *art.Message) error {
	if m.Reasoning != "" {
		w.scaffold(thinkOpen + "\n")
		w.content(m.Reasoning)
		w.scaffold("\n" + thinkClose + "\n\n")
	}
	w.content(m.Content)
	for i, c := range m.ToolCalls {
		text, err := callJSON(c)
		if err != nil {
			return fmt.Errorf("tool call %d: %w", i, err)
		}
		if i > 0 || m.Content != "" {
			w.scaffold("\n")
		}
		w.scaffold(callOpen + "\n")
		w.content(text)
		w.scaffold("\n" + callClose)
	}
	return nil
}

// system writes the first turn, with what the tools are and how to call them.
func (f *chatML) system(w *writer, content string, tools []art.Tool) error {
	w.scaffold(imStart + "system\n")
	if content != "" {
		w.content(content + "\n\n")
	}
	w.scaffold("# Tools\n\nThese functions can be called. Each line describes one of them in JSON:\n<tools>")
	for i, tool := range tools {
		text, err := toolJSON(tool)
		if err != nil {
			return fmt.Errorf("tool %d: %w", i, err)
		}
		w.content("\n" + text)
	}
	w.scaffold("\n</tools>\n\n" +
		"To call a function, write its name and its arguments as one JSON object between tags, once for each call:\n" +
		callOpen + "\n{\"name\": \"function\", \"arguments\": {\"parameter\": \"value\"}}\n" + callClose + imEnd + "\n")
	w.border()
	return nil
}
