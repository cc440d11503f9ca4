package chat

import (
	"errors"
	"fmt"
	"strings"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/jinja"
)

// Ending says how the text of a conversation ends.
type Ending int

const (
	// GenerationPrompt ends with what comes before a reply of the assistant: the text is a prompt.
	GenerationPrompt Ending = iota
	// Whole ends with the last message and the end of its turn.
	Whole
	// ContinueFinal ends within the last message, which the model continues.
	ContinueFinal
)

// continueTag marks where the last message ends. The space tells whether the template trims white space.
const continueTag = "CONTINUE_HERE_9f1c "

// Text renders a conversation as transformers' apply_chat_template does. tools may be empty. It is an error if the
// template omits the tools, or the calls of a message; [Options] has what helps then.
func (t *Template) Text(messages []art.Message, tools []art.Tool, ending Ending) (string, error) {
	text, err := t.render(messages, tools, ending)
	if err == nil {
		err = t.checkTools(text, messages, tools)
	}
	if err != nil {
		return "", err
	}
	return text, nil
}

// render is Text without the check of what the template omits.
func (t *Template) render(messages []art.Message, tools []art.Tool, ending Ending) (string, error) {
	c, err := t.conversation(messages, tools)
	if err != nil {
		return "", err
	}
	return t.text(c, ending)
}

// text renders a conversation.
func (t *Template) text(c *conversation, ending Ending) (string, error) {
	if ending == ContinueFinal {
		return t.continued(c)
	}
	c, err := t.inForms(c)
	if err == nil {
		c, err = t.toolText.write(c)
	}
	if err != nil {
		return "", err
	}
	variables := jinja.NewDict()
	list := make([]any, len(c.messages))
	for i, m := range c.messages {
		list[i] = m
	}
	variables.Set("messages", jinja.List(list...))
	variables.Set("tools", c.tools)
	variables.Set("documents", nil)
	variables.Set("add_generation_prompt", ending == GenerationPrompt)
	out, err := c.template.Render(variables.With(t.args), jinja.Options{Context: t.ctx})
	if err != nil {
		return "", fmt.Errorf("chat: template %q: %w", t.name, err)
	}
	return out.Text, nil
}

// continued renders a conversation up to the end of the content of its last message.
func (t *Template) continued(c *conversation) (string, error) {
	if len(c.messages) == 0 {
		return "", errors.New("chat: there is no message to continue")
	}
	last := len(c.messages) - 1
	content, _ := c.messages[last].Get("content")
	text, ok := content.(string)
	if !ok {
		return "", errors.New("chat: the last message has no text to continue")
	}
	tagged := c.prefix(last)
	tagged.messages = append(append([]*jinja.Dict(nil), tagged.messages...), c.messages[last].Clone())
	tagged.messages[last].Set("content", text+continueTag)
	out, err := t.text(tagged, Whole)
	if err != nil {
		return "", err
	}
	at := strings.LastIndex(out, strings.TrimSpace(continueTag))
	if at < 0 || !strings.Contains(out, strings.TrimSpace(text)) {
		return "", errors.New("chat: the last message cannot be continued: the template changes its text")
	}
	if strings.HasPrefix(out[at:], continueTag) {
		return out[:at], nil
	}
	return strings.TrimRight(out[:at], " \t\n\v\f\r"), nil
}
