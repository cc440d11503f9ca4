package chat

import (
	"strings"
	"sync"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/jinja"
)

// replyForm is how a template gets a reply. Models write replies that their own templates refuse in the next turn, or
// of which these omit a call: an empty one, a text beside reasoning and a call, several calls. The first form is used
// in which the template writes the reply.
type replyForm uint8

const (
	formAsIs     replyForm = iota
	formParts              // the content, which is empty, is a list with an empty text
	formPreamble           // of Harmony: see withPreamble
	formText               // the calls are a text, as the model writes them
	formOneCall            // a message for each call, followed by the result of that
	replyForms             // how many there are
)

// replyShape is what a reply consists of.
type replyShape struct {
	content, reasoning bool
	calls              int // at most 2
}

func shapeOf(m *jinja.Dict) replyShape {
	given := func(v any) bool { return v != nil && v != "" }
	calls := len(jinja.Items(field(m, "tool_calls")))
	return replyShape{given(field(m, "content")), given(field(m, "thinking")), min(2, calls)}
}

// formFinder remembers the forms of a template. It looks for the form of a shape when the first such reply comes.
type formFinder struct {
	mu    sync.Mutex
	found map[replyShape]replyForm
}

// probeAgain forgets what was found out by probes, after a change of what they depend on.
func (t *Template) probeAgain() {
	t.support = sync.OnceValue(t.findSupport)
	t.forms = &formFinder{found: map[replyShape]replyForm{}}
}

// form returns how the template gets replies of a shape.
func (t *Template) form(shape replyShape) replyForm {
	if t.tryForm != nil {
		return t.tryForm(shape)
	}
	if t.forms == nil {
		return formAsIs
	}
	t.forms.mu.Lock()
	defer t.forms.mu.Unlock()
	form, ok := t.forms.found[shape]
	if !ok {
		form = t.findForm(shape)
		t.forms.found[shape] = form
	}
	return form
}

// findForm tries the forms of a shape. If the template writes none, it gets the reply as it is, and its error says why.
func (t *Template) findForm(shape replyShape) replyForm {
	for form := range replyForms {
		if t.canForm(form, shape) && t.writesForm(form, shape) {
			return form
		}
	}
	return formAsIs
}

// canForm reports whether a form is one for replies of a shape. Where calls are always texts, it is the first for all.
func (t *Template) canForm(form replyForm, shape replyShape) bool {
	switch form {
	case formParts:
		return !shape.content
	case formPreamble:
		return t.reply.calls.harmony && shape.content && shape.calls == 1
	case formText:
		return callWriters[t.reply.name] != nil && shape.calls > 1 && t.toolText.writeCalls == nil
	case formOneCall:
		return shape.calls > 1 && t.toolText.writeCalls == nil
	}
	return true
}

// writesForm reports whether the template writes a reply in a form: before the results of its calls, and before the
// next question.
func (t *Template) writesForm(form replyForm, shape replyShape) bool {
	try := *t
	try.ctx = nil
	try.tryForm = func(s replyShape) replyForm {
		switch {
		case s == shape:
			return form
		case form == formOneCall: // then a reply with one call
			return t.findForm(s)
		}
		return formAsIs
	}
	conversation := probeReply(shape)
	text, err := try.render(conversation[:2+shape.calls], probeTools(), Whole)
	for i := range shape.calls {
		if err == nil && !strings.Contains(text, conversation[1].ToolCalls[i].Name) {
			return false
		}
	}
	if err == nil && shape.calls > 0 {
		_, err = try.render(conversation[:2+shape.calls], probeTools(), GenerationPrompt)
	}
	if err == nil {
		_, err = try.render(conversation, probeTools(), GenerationPrompt)
	}
	return err == nil
}

// inForms returns a conversation with each reply in its form.
func (t *Template) inForms(c *conversation) (*conversation, error) {
	out := &conversation{template: c.template, tools: c.tools}
	for i := 0; i < len(c.messages); i++ {
		m := c.messages[i]
		if !hasRole(m, art.RoleAssistant) {
			out.messages = append(out.messages, m)
			continue
		}
		replies := []*jinja.Dict{m}
		if t.form(shapeOf(m)) == formOneCall {
			results := i + 1
			for results < len(c.messages) && hasRole(c.messages[results], art.RoleTool) {
				results++
			}
			replies = t.oneByOne(m, c.messages[i+1:results])
			i = results - 1
		}
		for _, reply := range replies {
			reply, err := t.inForm(reply, i < len(c.sampled) && c.sampled[i])
			if err != nil {
				return nil, err
			}
			out.messages = append(out.messages, reply)
		}
	}
	return out, nil
}

// inForm returns a message in its form. What was sampled is written so that it is read as the same reply, and not only
// accepted: else the sampled ids could not stand for it.
func (t *Template) inForm(m *jinja.Dict, sampled bool) (*jinja.Dict, error) {
	if !hasRole(m, art.RoleAssistant) {
		return m, nil
	}
	shape := shapeOf(m)
	form := t.form(shape)
	if sampled && t.canForm(formPreamble, shape) {
		form = formPreamble
	}
	switch form {
	case formParts:
		part := jinja.NewDict()
		part.Set("type", "text")
		part.Set("text", "")
		m = m.Clone()
		m.Set("content", jinja.List(part))
	case formPreamble:
		return withPreamble(m)
	case formText:
		w := toolText{writeCalls: callWriters[t.reply.name]}
		return w.withCalls(m, jinja.Items(field(m, "tool_calls")))
	}
	return m, nil
}

// oneByOne returns a message for each call of a message, followed by the result of that. The first has the text.
func (t *Template) oneByOne(m *jinja.Dict, results []*jinja.Dict) []*jinja.Dict {
	var out []*jinja.Dict
	calls := jinja.Items(field(m, "tool_calls"))
	for i, call := range calls {
		one := m.Clone()
		if i > 0 {
			one = textMessage(art.RoleAssistant, "")
			if t.dialect.content == contentNull {
				one.Set("content", nil)
			}
		}
		one.Set("tool_calls", jinja.List(call))
		out = append(out, one)
		var others []*jinja.Dict
		for _, result := range results {
			if i == len(calls)-1 || field(result, "tool_call_id") == field(call, "id") {
				out = append(out, result)
			} else {
				others = append(others, result)
			}
		}
		results = others
	}
	return out
}
