package track

import (
	"encoding/json"
	"reflect"
	"slices"

	"github.com/goart-dev/art"
)

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

func keyOfMessage(m *art.Message) messageKey {
	k := messageKey{m.Role, m.Content, m.ToolCallID, ""}
	if len(m.ToolCalls) > 0 {
		k.callID, k.arguments = m.ToolCalls[0].ID, m.ToolCalls[0].Arguments
	}
	return k
}

// Message returns the JSON of a message, which must not be changed.
func (e *Encoder) Message(m *art.Message) ([]byte, error) {
	e.plain = *m
	e.plain.Sample = nil
	key := keyOfMessage(m)
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
