package tokenizer

import (
	"errors"
	"fmt"
	"strings"

	"github.com/goart-dev/art"
)

// Template is how messages become tokens, and a reply becomes a message.
//
// Sequence extension: if Prompt gave P for some messages and the model replied with the ids R, then the prompt for the
// same messages followed by a message with Sample.IDs = R, and by any others, begins with P and then R. So a growing
// conversation keeps its cache, and what is trained on is what was sampled.
type Template struct {
	tok    *Tokenizer
	name   string
	format format
}

// ChatML is the format of Qwen and others: "<|im_start|>role\ncontent<|im_end|>\n", tools in the manner of Hermes.
const ChatML = "chatml"

// format is one way to write a conversation.
type format interface {
	// render writes turns, tool descriptions included.
	render(w *writer, messages []art.Message, tools []art.Tool) error
	// reply writes what stands before an assistant's reply. It ends at a border: no token spans it and the reply.
	reply(w *writer)
	// parse reads a reply.
	parse(ids []int32) art.Message
	// stops are the ids that end a reply; the first one belongs to the format.
	stops() []int32
}

// Template returns the chat format of the given name. The empty name detects it: from the vocabulary, and from the
// model's own chat template when it has one.
func (t *Tokenizer) Template(name string) (*Template, error) {
	if name == "" {
		var err error
		if name, err = t.detect(); err != nil {
			return nil, err
		}
	}
	if name != ChatML {
		return nil, fmt.Errorf("tokenizer: chat format %q is not known; the only one is %q", name, ChatML)
	}
	f, err := newChatML(t)
	if err != nil {
		return nil, fmt.Errorf("tokenizer: chat format %q: %w", name, err)
	}
	return &Template{tok: t, name: name, format: f}, nil
}

var errNoFormat = errors.New("tokenizer: the chat format is not known, so it has to be named")

// detect names a format only when there is no doubt.
func (t *Tokenizer) detect() (string, error) {
	for _, token := range []string{imStart, imEnd} {
		if _, ok := t.added.byContent[token]; !ok {
			return "", fmt.Errorf("%w: the vocabulary has no token %s", errNoFormat, token)
		}
	}
	if t.chatTemplate != "" && !strings.Contains(t.chatTemplate, imStart) {
		return "", fmt.Errorf("%w: the model's own chat template does not mention %s", errNoFormat, imStart)
	}
	return ChatML, nil
}

// Name returns the name of the format.
func (t *Template) Name() string { return t.name }

// Prompt returns the exact ids that the model gets to reply to messages. tools may be empty. The ids of messages with a
// Sample are taken from it; where they do not end the turn (a length limit, a stop string) its end is added.
func (t *Template) Prompt(messages []art.Message, tools []art.Tool) ([]int32, error) {
	w, err := t.render(messages, tools)
	if err != nil {
		return nil, err
	}
	t.format.reply(w)
	return w.ids, nil
}

// Target returns the ids of a whole conversation for supervised training, and a mask of the ids to learn: what the
// assistant says, with the token that ends its turn. An end that had to be added to a Sample is context, not a target.
func (t *Template) Target(messages []art.Message, tools []art.Tool) (ids []int32, mask []bool, err error) {
	w, err := t.render(messages, tools)
	if err != nil {
		return nil, nil, err
	}
	return w.ids, w.mask, nil
}

func (t *Template) render(messages []art.Message, tools []art.Tool) (*writer, error) {
	w := &writer{tok: t.tok}
	if err := t.format.render(w, messages, tools); err != nil {
		return nil, fmt.Errorf("tokenizer: %w", err)
	}
	w.border()
	return w, nil
}

// Parse returns the message that the ids of a reply say. The end of the turn is not part of it. Tool calls get the ids
// "call_0", "call_1", ...; one that is not valid JSON stays in the content. The message has no Sample.
func (t *Template) Parse(ids []int32) art.Message { return t.format.parse(ids) }

// EndOfTurn returns the ids that end a reply. The first is the one that the format ends turns with.
func (t *Template) EndOfTurn() []int32 { return append([]int32(nil), t.format.stops()...) }

// writer collects the ids of a conversation. Text that follows other text is encoded together with it; control tokens
// and borders are what nothing merges across.
type writer struct {
	tok     *Tokenizer
	ids     []int32
	mask    []bool
	pending strings.Builder // text that is not encoded yet
	learn   bool            // what is written now is a target
}

// scaffold writes text of the format, in which added tokens count.
func (w *writer) scaffold(text string) {
	w.tok.scan(text, w.content, w.control)
}

// content writes text from outside, in which nothing counts.
func (w *writer) content(text string) { w.pending.WriteString(text) }

// control writes one token.
func (w *writer) control(id int32) {
	w.border()
	w.append(id)
}

// sampled writes ids as they are.
func (w *writer) sampled(ids []int32) {
	w.border()
	w.append(ids...)
}

// target says whether what follows is to be learned.
func (w *writer) target(on bool) {
	w.border()
	w.learn = on
}

// border encodes the text so far, so that no token spans it and what follows.
func (w *writer) border() {
	if w.pending.Len() > 0 {
		w.append(w.tok.EncodeOrdinary(w.pending.String())...)
		w.pending.Reset()
	}
}

func (w *writer) append(ids ...int32) {
	w.ids = append(w.ids, ids...)
	for range ids {
		w.mask = append(w.mask, w.learn)
	}
}
