package chat

import (
	"slices"
	"strings"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/callid"
	"github.com/goart-dev/art/tokenizer"
)

// ReplyReader parses one reply as it is sampled. The concatenation of its deltas is the message that Close returns. It
// is not safe for concurrent use.
type ReplyReader struct {
	template *Template
	parser   *replyParser
	stream   *tokenizer.Stream
	ended    bool
	ends     Ends
	count    int    // ids so far
	stop     string // that has ended the reply
}

// Ends are what ends a reply besides the end tokens of the template.
type Ends struct {
	IDs  []int32  // their text is not part of the message
	Text []string // stop strings: neither are they, nor what follows them
	// After is the number of ids in whose text a stop string must not end.
	After int
	// PastTurn lets the reply go on after an end token of the template.
	PastTurn bool
}

// Read begins to read the reply to a prompt. The prompt tells whether the template has opened the reasoning for the
// model; it may be nil. tools are those of the prompt: some formats need their schemas to tell numbers from strings.
//
// A call is given once all of it has come, and only if it can be parsed; see [Template.Stream]. Calls in reasoning that
// never closes are calls if the model ends its turn with them, and part of the reasoning otherwise. A call keeps the id
// that the model wrote, unless that is taken; see [ReplyReader.Answering]. Any other is nine letters and digits that
// depend on the prompt, the seed and the index of the call: it does not repeat in a conversation, and is the same
// whenever the reply is read.
func (t *Template) Read(prompt []int32, tools []art.Tool) *ReplyReader {
	return t.read(prompt, tools, false)
}

// Stream is [Template.Read], except that a call is given as soon as its name is known, and its arguments as they come:
// JSON piece by piece, arguments in tags one by one. Calls without tags, in Python and of FunctionGemma are given as a
// whole, as are those with an id after the arguments.
//
// Nothing is taken back. If the rest of a call turns out to be malformed, or is missing, the call stays as far as it
// came, so that its arguments may be invalid JSON; [ReplyReader.Close] reports it, and its text is not content. So it
// is with a call that turns out to be another one, because a member of its JSON is repeated. Of any other reply, the
// message is that of [Template.Parse].
func (t *Template) Stream(prompt []int32, tools []art.Tool) *ReplyReader {
	return t.read(prompt, tools, true)
}

func (t *Template) read(prompt []int32, tools []art.Tool, early bool) *ReplyReader {
	parser := t.reply.start(t.OpensReasoning(prompt), tools)
	parser.early = early
	parser.calls.ids.prompt = prompt
	return (&ReplyReader{template: t, parser: parser}).Until(Ends{})
}

// Answering sets the messages of the prompt and the seed that the reply is sampled with. It is called before Add, and
// returns the reader. No call of the reply gets the id of one in messages, and where several replies to one prompt are
// sampled, the ids of their calls differ by the seed.
func (r *ReplyReader) Answering(messages []art.Message, seed uint64) *ReplyReader {
	ids := &r.parser.calls.ids
	ids.messages, ids.taken, ids.seed = messages, callid.Taken(messages), seed
	for i := range messages {
		ids.earlier += len(messages[i].ToolCalls)
	}
	return r
}

// Until sets what else ends the reply. It is called before Add, and returns the reader. Stop strings are found in the
// text between the tags of reasoning and calls, and within a tag that is not a special token, but not across its ends.
func (r *ReplyReader) Until(e Ends) *ReplyReader {
	r.ends = e
	r.restart()
	return r
}

// restart begins a text after a tag.
func (r *ReplyReader) restart() {
	r.stream = r.template.tok.Stream(true, r.ends.Text...).StopAfter(max(0, r.ends.After-r.count))
}

// Stopped returns the stop string that has ended the reply, "" if none has.
func (r *ReplyReader) Stopped() string { return r.stop }

// opensReasoning reports whether a prompt ends with the tag that opens reasoning.
func (f *replyFormat) opensReasoning(prompt string) bool {
	return f.thinkOpen != "" && strings.HasSuffix(strings.TrimRight(prompt, " \n"), withoutTokens(f.thinkOpen))
}

// Add takes the next id. Ids after one that ends the reply are ignored.
func (r *ReplyReader) Add(id int32) Delta {
	if r.ended {
		return Delta{}
	}
	t := r.template
	r.count++
	turn := !r.ends.PastTurn && slices.Contains(t.stops, id)
	if turn || slices.Contains(r.ends.IDs, id) {
		r.ended, r.parser.ended = true, turn
		return r.parser.add(r.stream.Flush())
	}
	if tag := t.reply.tagOf[id]; tag != "" {
		text := r.stream.Flush()
		if r.count > r.ends.After && !r.template.tok.IsSpecial(id) {
			for _, stop := range r.ends.Text {
				if before, _, found := strings.Cut(withoutTokens(tag), stop); found && stop != "" {
					r.ended, r.stop = true, stop
					return r.parser.add(text + before)
				}
			}
		}
		r.restart()
		return r.parser.add(text + tag)
	}
	text, stopped := r.stream.Add(id)
	if stopped {
		r.ended, r.stop = true, r.stream.Stopped()
	}
	return r.parser.add(text)
}

// Close ends the reply. The message has no Sample. err joins a [*MalformedCall] for each tool call that cannot be
// parsed; the text of such a call is part of the content, and the rest of the message is valid.
func (r *ReplyReader) Close() (last Delta, message art.Message, err error) {
	last = r.parser.add(r.stream.Flush())
	rest, err := r.parser.close()
	last.Reasoning += rest.Reasoning
	last.Content += rest.Content
	last.ToolCalls = append(last.ToolCalls, rest.ToolCalls...)
	return last, r.parser.message, err
}

// Parse reads a whole reply; see [Template.Read] and [ReplyReader.Close].
func (t *Template) Parse(prompt, ids []int32, tools []art.Tool) (art.Message, error) {
	r := t.Read(prompt, tools)
	for _, id := range ids {
		r.Add(id)
	}
	_, message, err := r.Close()
	return message, err
}

// parseText reads a reply that a template wrote. mark is 0 if the text has none.
func (t *Template) parseText(prompt, text string, mark rune, tools []art.Tool) art.Message {
	var b strings.Builder
	for text != "" {
		at, token := t.control.next(text)
		b.WriteString(text[:at])
		switch {
		case slices.Contains(t.reply.tags, tokenByte+token):
			b.WriteString(tokenByte + token)
		case token != "" && !t.tok.IsSpecial(t.tok.added[token]):
			b.WriteString(token)
		}
		text = text[at+len(token):]
	}
	p := t.reply.start(t.reply.opensReasoning(prompt), tools)
	p.add(unmark(b.String(), mark))
	_, _ = p.close() // a malformed call that the template wrote is content
	return p.message
}

// Delta is what a piece of a reply adds to its message.
type Delta struct {
	Reasoning, Content string
	ToolCalls          []CallDelta
}

// CallDelta is what a piece of a reply adds to one of its calls.
type CallDelta struct {
	Index     int    // of the call in the message, counted from 0
	ID, Name  string // set in the first delta of the call, empty in the others
	Arguments string // what follows the arguments that have come so far
}
