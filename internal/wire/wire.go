// Package wire holds the wire types of the HTTP APIs that art's models are served by, and their conversion to and from
// the types of package art: today OpenAI's chat completions, with its streams and errors, and the list of models.
// Package backend/server serves them.
//
// # Supported fields
//
// A field that would change the reply and is not supported is refused with status 400 and a message that names it; it
// is never silently dropped. The one exception is "strict" of a function, which every agent framework sends: it is
// accepted, and the arguments are as the model wrote them. Fields that do not change the reply (user, metadata, store,
// service_tier, prediction, ...) and unknown fields are ignored.
//
// Beyond OpenAI's fields, three of vLLM's are supported: top_k, chat_template_kwargs, and return_token_ids, which adds
// prompt_token_ids to the response and token_ids to the choice.
//
// # Streaming
//
// A stream has the form that clients expect, but a reply is sent once it is complete: the whole text is one delta, and
// so is each tool call. An error is therefore always an HTTP status, never an event in the middle of a stream.
package wire
