package chat

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/jinja"
)

// Prompt returns the exact ids from which the model replies to messages. tools may be empty. The ids of messages with a
// Sample are taken from it, if the template still writes what they say; if they do not end the turn (because of a
// length limit or a stop string), its end is added.
func (t *Template) Prompt(messages []art.Message, tools []art.Tool) ([]int32, error) {
	return t.IDs(messages, tools, GenerationPrompt)
}

// PromptContext is [Template.Prompt], and returns the error of ctx soon after that has ended: a conversation that comes
// from another process can be long.
func (t *Template) PromptContext(ctx context.Context, messages []art.Message, tools []art.Tool) ([]int32, error) {
	bound := *t
	bound.ctx = ctx
	return bound.Prompt(messages, tools)
}

// ended returns the error of the template's context once that has ended.
func (t *Template) ended() error {
	if t.ctx == nil {
		return nil
	}
	return t.ctx.Err()
}

// IDs is [Template.Prompt] with another ending: the ids of what [Template.Text] returns, except that sampled ids are
// used as they are. They are the ids that transformers gives, unless messages spell control tokens: here these stay
// text.
func (t *Template) IDs(messages []art.Message, tools []art.Tool, ending Ending) ([]int32, error) {
	d, err := t.draft(messages, tools, ending)
	if err != nil {
		return nil, err
	}
	if !d.resume() {
		for i := range messages {
			if messages[i].Sample == nil {
				continue
			}
			if turn, ok := d.turn(i); ok && turn.start >= d.done {
				d.splice(turn, messages[i].Sample.IDs)
			}
		}
	}
	d.writeTo(len(d.text))
	return d.ids, t.ended()
}

// Target returns the ids of a whole conversation for supervised training, and a mask of the targets: what the assistant
// says, with the token that ends its turn. An end that had to be added to a Sample is context, not a target.
//
// It is an error if the template does not write a reply directly after the prompt for it, as those do that omit earlier
// reasoning: then the targets are not known.
func (t *Template) Target(messages []art.Message, tools []art.Tool) (ids []int32, mask []bool, err error) {
	return t.TargetFrom(0, messages, tools)
}

// TargetFrom is [Template.Target] whose targets begin at the message with index first: what comes before is the prompt,
// which a template may rewrite.
func (t *Template) TargetFrom(
	first int, messages []art.Message, tools []art.Tool,
) (ids []int32, mask []bool, err error) {
	d, err := t.draft(messages, tools, Whole)
	if err != nil {
		return nil, nil, err
	}
	for i := range messages {
		if messages[i].Role != art.RoleAssistant {
			continue
		}
		turn, ok := d.turn(i)
		if rewritten := !ok || turn.start < d.done; rewritten && i < first {
			continue
		} else if rewritten {
			return nil, nil, fmt.Errorf("chat: message %d: template %q rewrites it when other messages follow: "+
				"train on it as the last message of a conversation", i, t.name)
		}
		if s := messages[i].Sample; s != nil {
			d.learn(turn.start, func() { d.splice(turn, s.IDs) })
		} else {
			d.learn(turn.start, func() { d.writeTo(turn.end + len(turn.stop)) })
		}
		if i < first {
			clear(d.mask)
		}
	}
	d.writeTo(len(d.text))
	return d.ids, d.mask, nil
}

// draft is a conversation that is being encoded.
type draft struct {
	template *Template
	messages []art.Message
	tools    []art.Tool
	conv     *conversation // with marks
	text     string        // with marks
	mark     rune          // 0 if there is none
	done     int           // how much of text is in ids
	ids      []int32
	mask     []bool // of ids: targets
	learning bool
}

// draft renders a conversation so that every control token in the text is the template's.
func (t *Template) draft(messages []art.Message, tools []art.Tool, ending Ending) (*draft, error) {
	c, err := t.conversation(messages, tools)
	if err != nil {
		return nil, err
	}
	plain, err := t.text(c, ending)
	if err == nil {
		err = t.checkTools(plain, messages, tools)
	}
	if err != nil {
		return nil, err
	}
	// A template that looks for tags such as "</think>" in a text does not find them once they are marked. Then only
	// special tokens are marked.
	for _, control := range []*controlTokens{t.control, t.special} {
		conv, mark, err := control.markAll(c)
		if err != nil {
			return nil, err
		}
		text := plain
		if mark != 0 {
			text, err = t.text(conv, ending)
		}
		if err == nil && unmark(text, mark) == plain {
			return &draft{template: t, messages: messages, tools: tools, conv: conv, text: text, mark: mark}, nil
		}
	}
	return nil, errors.New("chat: the messages spell special tokens that the chat template reacts to: remove them")
}

// turn is where a reply is in the text of a draft: after the prompt for it, up to the token that ends its turn.
type turn struct {
	start, end int
	stop       string // the token that ends it, "" if there is none
}

// turn finds the i-th message, one of the assistant. ok is false if the text does not begin with the prompt for it, or
// says something else than the message: then the template rewrites it when other messages follow.
func (d *draft) turn(i int) (turn, bool) {
	head, err := d.template.text(d.conv.prefix(i), GenerationPrompt)
	if err != nil || !strings.HasPrefix(d.text, head) {
		return turn{}, false
	}
	found := turn{len(head), len(d.text), ""}
	for _, id := range d.template.stops {
		stop := d.template.tok.written(id)
		if at := strings.Index(d.text[len(head):found.end], stop); at >= 0 {
			found.end, found.stop = len(head)+at, stop
		}
	}
	said := d.template.parseText(head, d.text[found.start:found.end], d.mark, d.tools)
	return found, sameReply(&said, &d.messages[i])
}

// sameReply reports whether two replies say the same, apart from white space at the ends and how arguments are written.
func sameReply(a, b *art.Message) bool {
	same := func(x, y string) bool { return strings.TrimSpace(x) == strings.TrimSpace(y) }
	if !same(a.Content, b.Content) || !same(a.Reasoning, b.Reasoning) {
		return false
	}
	return slices.EqualFunc(a.ToolCalls, b.ToolCalls, func(x, y art.ToolCall) bool {
		return x.Name == y.Name && sameJSON(x.Arguments, y.Arguments)
	})
}

// resume starts from the prompt of the last sample, which contains the samples before it. It reports false if that
// prompt is not what the text says up to there.
func (d *draft) resume() bool {
	for i, m := range slices.Backward(d.messages) {
		if m.Sample == nil {
			continue
		}
		turn, ok := d.turn(i)
		if !ok || len(m.Sample.PromptIDs) == 0 {
			return false
		}
		if d.template.tok.Decode(m.Sample.PromptIDs, false) != unmark(d.text[:turn.start], d.mark) {
			return false
		}
		d.append(m.Sample.PromptIDs)
		d.done = turn.start
		d.splice(turn, m.Sample.IDs)
		return true
	}
	return false
}

// splice writes sampled ids in place of a reply, and the end of its turn if it is not their last.
func (d *draft) splice(turn turn, sampled []int32) {
	d.writeTo(turn.start)
	d.append(sampled)
	d.learning = false
	d.done = turn.end
	if turn.stop == "" {
		return
	}
	// The stop token is encoded together with what follows it: the first word of a text may be encoded differently.
	rest := d.template.control.encode(d.text[turn.end:], d.mark)
	if n := len(sampled); n > 0 && len(rest) > 0 && sampled[n-1] == rest[0] {
		d.done += len(turn.stop)
	}
}

// learn makes what write writes from a position on a target.
func (d *draft) learn(from int, write func()) {
	d.writeTo(from)
	d.learning = true
	write()
	d.learning = false
}

// writeTo encodes the text up to a position.
func (d *draft) writeTo(end int) {
	if d.done < end && d.template.ended() == nil {
		d.append(d.template.control.encode(d.text[d.done:end], d.mark))
		d.done = end
	}
}

func (d *draft) append(ids []int32) {
	d.ids = append(d.ids, ids...)
	for range ids {
		d.mask = append(d.mask, d.learning)
	}
}

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
