package track

import (
	"encoding/json"
	"reflect"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/goart-dev/art"
)

// maxRollouts bounds the rollouts whose group has not ended. Beyond it the oldest are handed on as they are.
const maxRollouts = 8192

// Rollout is what is known of a rollout.
type Rollout struct {
	Start       art.RolloutStart
	Completions []art.CompletionEvent
	End         *art.RolloutEnd // nil while it runs, and of one that was cancelled
}

// Finished is when a rollout ended, or when its last completion did.
func (r *Rollout) Finished() time.Time {
	if r.End != nil {
		return r.Start.Time.Add(r.End.Duration)
	}
	last := r.Start.Time
	for _, c := range r.Completions {
		if at := c.Time.Add(c.Duration); at.After(last) {
			last = at
		}
	}
	return last
}

// Rollouts gathers the events of each rollout until its group is complete and judged. It is used by one goroutine.
type Rollouts struct {
	done func(*Rollout)
	lone func(art.CompletionEvent)
	open map[rolloutKey]*Rollout
	// order has the keys of open, and some that are not in it any more.
	order []rolloutKey
}

type rolloutKey struct {
	gather            uint64
	scenario, attempt int
}

func keyOf(r art.RolloutStart) rolloutKey { return rolloutKey{r.Gather, r.Scenario, r.Attempt} }

// NewRollouts returns a collection that hands rollouts to done, and completions outside of one to lone.
func NewRollouts(done func(*Rollout), lone func(art.CompletionEvent)) *Rollouts {
	return &Rollouts{done: done, lone: lone, open: map[rolloutKey]*Rollout{}}
}

// RolloutEvents returns callbacks that send what [Rollouts.Take] wants, for [art.ModelOptions] and [art.GatherOptions].
func RolloutEvents(send func(event any)) *art.Events {
	return &art.Events{
		RolloutStart: func(e art.RolloutStart) { send(e) },
		RolloutEnd:   func(e art.RolloutEnd) { send(e) },
		GroupEnd:     func(e art.GroupEnd) { send(e) },
		GatherEnd:    func(e art.GatherEnd) { send(e) },
		Completion:   func(e art.CompletionEvent) { send(e) },
	}
}

// Take handles an event of [RolloutEvents].
func (c *Rollouts) Take(event any) {
	switch e := event.(type) {
	case art.RolloutStart:
		k := keyOf(e)
		c.open[k] = &Rollout{Start: e}
		c.order = append(c.order, k)
		for len(c.open) > maxRollouts {
			oldest := c.order[0]
			c.order = c.order[1:]
			c.close(oldest)
		}
	case art.CompletionEvent:
		if e.Rollout != nil {
			if r := c.open[keyOf(*e.Rollout)]; r != nil {
				r.Completions = append(r.Completions, e)
				return
			}
		}
		c.lone(e)
	case art.RolloutEnd:
		if r := c.open[keyOf(e.RolloutStart)]; r != nil {
			r.End = &e
		}
	case art.GroupEnd:
		c.end(func(k rolloutKey) bool { return k.gather == e.Gather && k.scenario == e.Scenario })
	case art.GatherEnd:
		c.end(func(k rolloutKey) bool { return k.gather == e.Gather })
	}
}

// Finish hands on what is left.
func (c *Rollouts) Finish() { c.end(func(rolloutKey) bool { return true }) }

// end hands on the rollouts that match.
func (c *Rollouts) end(match func(k rolloutKey) bool) {
	rest := c.order[:0]
	for _, k := range c.order {
		if match(k) {
			c.close(k)
		} else if c.open[k] != nil {
			rest = append(rest, k)
		}
	}
	c.order = rest
}

// close hands on a rollout. Of one that was cancelled, completions may be all there is.
func (c *Rollouts) close(k rolloutKey) {
	if r := c.open[k]; r != nil {
		delete(c.open, k)
		c.done(r)
	}
}

// Encoder encodes the messages of a rollout as JSON, each once: a request has all messages of those before it, so that
// encoding whole requests takes time that grows with the square of the turns. It remembers what it was given: make one
// for each rollout. It is used by one goroutine.
type Encoder struct {
	encode func(*art.Message) ([]byte, error)
	known  map[messageKey][]encodedMessage
	plain  art.Message // the message that is looked up, without its sample

	tools     []art.Tool // the newest
	toolsJSON []byte
}

// messageKey is what of a message can be a key. Messages of one key may differ in the rest.
type messageKey struct {
	role                       art.Role
	content, callID, arguments string
}

type encodedMessage struct {
	message art.Message
	json    []byte
}

// NewEncoder returns an encoder for messages in the form that encode gives them. Samples are no part of it.
func NewEncoder(encode func(*art.Message) ([]byte, error)) *Encoder {
	return &Encoder{encode: encode, known: map[messageKey][]encodedMessage{}}
}

// Message returns the JSON of a message, which must not be changed.
func (e *Encoder) Message(m *art.Message) ([]byte, error) {
	e.plain = *m
	e.plain.Sample = nil
	key := messageKey{m.Role, m.Content, m.ToolCallID, ""}
	if len(m.ToolCalls) > 0 {
		key.callID, key.arguments = m.ToolCalls[0].ID, m.ToolCalls[0].Arguments
	}
	for i := range e.known[key] {
		if old := &e.known[key][i]; reflect.DeepEqual(&old.message, &e.plain) {
			return old.json, nil
		}
	}
	data, err := e.encode(&e.plain)
	if err == nil {
		e.known[key] = append(e.known[key], encodedMessage{e.plain, data})
	}
	return data, err
}

// Messages returns the JSON of each message.
func (e *Encoder) Messages(list []art.Message) ([][]byte, error) {
	out := make([][]byte, len(list))
	for i := range list {
		data, err := e.Message(&list[i])
		if err != nil {
			return nil, err
		}
		out[i] = data
	}
	return out, nil
}

// Tools returns the JSON of a list of tools, in OpenAI's form.
func (e *Encoder) Tools(list []art.Tool) ([]byte, error) {
	if e.toolsJSON != nil && reflect.DeepEqual(e.tools, list) {
		return e.toolsJSON, nil
	}
	data, err := json.Marshal(list)
	if err == nil {
		e.tools, e.toolsJSON = list, data
	}
	return data, err
}

// AppendArray writes values of JSON as an array.
func AppendArray(b []byte, values [][]byte) []byte {
	size := len(values) + 1
	for _, v := range values {
		size += len(v)
	}
	b = append(slices.Grow(b, size), '[')
	for i, v := range values {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, v...)
	}
	return append(b, ']')
}

// Shorten returns the first n bytes of a text, whole characters, and a mark where something is left out.
func Shorten(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n] + " ..."
}
