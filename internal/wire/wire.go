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

import "github.com/goart-dev/art"

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
