// Package wire holds the wire types of the HTTP APIs that art's models are served by, and their conversion to and from
// the types of package art: OpenAI's chat completions, completions and Responses, Anthropic's Messages, vLLM's routes
// of token ids, and the list of models. Package backend/server serves them.
//
// # Supported fields
//
// A field that would change the reply and is not supported is refused with status 400 and a message that names it; it
// is never silently dropped. The exceptions are "strict" of a function, which every agent framework sends (the
// arguments are as the model wrote them), and "is_error" of a tool's result. Fields that do not change the reply (user,
// metadata, store, service_tier, prediction, cache_control, ...) and unknown fields are ignored. docs/server.md lists
// the fields.
//
// # Streaming
//
// Each API has a [Stream], which turns the pieces of a reply into events. A backend that is no driver.Streamer has one
// piece, the whole reply. An error before the first event is an HTTP status, one after it is an event.
package wire

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/goart-dev/art"
)

// Stream writes the replies to a request as the events of an API.
type Stream interface {
	// Piece returns the events of the next piece, of any reply. Its error is about the request; it comes with the first
	// piece, when nothing has been sent yet.
	Piece(p art.ChoicePiece) ([]Event, error)
	// End returns the events after the last piece.
	End(replies []*art.ChatResponse) []Event
	// Fail returns the events of an error after the first piece.
	Fail(e *Error) []Event
}

// Event is a server-sent event.
type Event struct {
	// Name is the type of the event; OpenAI's chat streams have none.
	Name string
	// Data is written as JSON.
	Data any
}

// done is the data of the event that ends the streams of OpenAI's older APIs, which is not JSON.
type done struct{}

// doneText is what done looks like.
const doneText = "[DONE]"

// EncodeEvents writes events in the form of text/event-stream.
func EncodeEvents(events []Event) ([]byte, error) {
	var out bytes.Buffer
	for _, e := range events {
		data := []byte(doneText)
		if _, isDone := e.Data.(done); !isDone {
			var err error
			if data, err = json.Marshal(e.Data); err != nil {
				return nil, err
			}
		}
		if e.Name != "" {
			fmt.Fprintf(&out, "event: %s\n", e.Name)
		}
		fmt.Fprintf(&out, "data: %s\n\n", data)
	}
	return out.Bytes(), nil
}

// ModelInfo is an entry of the list of models.
type ModelInfo struct {
	ID      string `json:"id"`
	Object  string `json:"object"`   // "model"
	Created int64  `json:"created"`  // always 0: it is not known
	OwnedBy string `json:"owned_by"` // "art"
	Step    int    `json:"step"`     // the policy step that answers now
}

// ModelList is the body of GET /v1/models.
type ModelList struct {
	Object string      `json:"object"` // "list"
	Data   []ModelInfo `json:"data"`
}

// NewModelInfo describes a model as it is now.
func NewModelInfo(m *art.Model) ModelInfo {
	return ModelInfo{ID: m.Name(), Object: "model", OwnedBy: "art", Step: m.Step()}
}

// NewModelList describes models as they are now.
func NewModelList(models []*art.Model) ModelList {
	list := ModelList{Object: "list", Data: []ModelInfo{}}
	for _, m := range models {
		list.Data = append(list.Data, NewModelInfo(m))
	}
	return list
}
