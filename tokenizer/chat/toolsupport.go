package chat

import (
	"errors"
	"fmt"
	"strings"

	"github.com/goart-dev/art"
)

// ErrToolsLeftOut says that a chat template does not write the tools, or tool calls, of a conversation: the model would
// not see them.
var ErrToolsLeftOut = errors.New("the chat template leaves tools out")

// toolSupport is what a template writes of tools.
type toolSupport struct {
	tools bool // their descriptions
	calls bool // the calls of earlier messages
	all   bool // all calls of a message, not only the first
}

// findSupport tries a tool and a call. A template that fails on both is not said to omit them.
func (t *Template) findSupport() (s toolSupport) {
	conversation, failed := probeConversation(), 0
	for _, messages := range [][]art.Message{conversation[:1], {art.System("a"), conversation[0]}} {
		text, err := t.render(messages, probeTools(), GenerationPrompt)
		s.tools = s.tools || err == nil && strings.Contains(text, probeTool)
		if err != nil {
			failed++
		}
	}
	s.tools = s.tools || failed == 2
	text, err := t.render(conversation[:2], probeTools(), Whole)
	s.calls = err != nil || strings.Contains(text, probe)
	call := conversation[1].ToolCalls[0]
	call.Name = probeSecond
	conversation[1].ToolCalls = append(conversation[1].ToolCalls, call)
	text, err = t.render(conversation[:2], probeTools(), Whole)
	s.all = err != nil || strings.Contains(text, probeSecond)
	return s
}

// WritesTools reports whether prompts describe the tools of a conversation.
func (t *Template) WritesTools() bool { return t.support().tools }

// WritesCalls reports whether prompts say which tools earlier messages called.
func (t *Template) WritesCalls() bool { return t.support().calls }

// checkTools reports tools and calls that are missing from the text of a conversation.
func (t *Template) checkTools(text string, messages []art.Message, tools []art.Tool) error {
	for i := range tools {
		if !t.support().tools || !strings.Contains(text, tools[i].Name) && !strings.Contains(text, escaped(tools[i].Name)) {
			return t.leftOut("tool " + tools[i].Name)
		}
	}
	for i := range messages {
		for j, c := range messages[i].ToolCalls {
			if !t.support().calls || j > 0 && !t.support().all {
				return t.leftOut(fmt.Sprintf("call of %s in message %d", c.Name, i))
			}
		}
	}
	return nil
}

// escaped returns a name as it is written inside a JSON string.
func escaped(name string) string {
	quoted := quote(name)
	return quoted[1 : len(quoted)-1]
}

func (t *Template) leftOut(what string) error {
	return fmt.Errorf("chat: %w: template %q does not write the %s; "+
		"the option ToolFormat (%s) writes them into messages instead",
		ErrToolsLeftOut, t.name, what, strings.Join(ToolFormats(), ", "))
}
