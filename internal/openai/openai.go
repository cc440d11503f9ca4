// Package openai is the HTTP face of art's models: OpenAI's chat completions, and the models list.
//
// [Handler] answers the requests, [Guarded] answers those of other processes that [art.HandlerOptions] allow, and
// [Transport] brings the requests of this process to a handler without a socket. All are on top of
// [art.Model.Complete], so a reply that a client asked for is recorded, seeded and sampled as one that Go code asked for.
//
// # What is honoured
//
// A field that would change the reply and is not supported is refused with status 400 and a message that names it; it
// is never dropped in silence. The one exception is "strict" of a function, which every agent framework sends: it is
// accepted, and the arguments are as the model wrote them. Fields that do not change the reply (user, metadata, store,
// service_tier, prediction, ...) and fields that nobody knows are ignored.
//
// Beyond OpenAI's fields, two of vLLM's are known: top_k, and return_token_ids, which adds prompt_token_ids to the
// response and token_ids to the choice.
//
// The model may be named "name" or "name@step". A step other than the current one is an unknown model.
//
// # Streaming
//
// A stream has the form that clients expect, but models answer in one piece: the whole text is one delta, and each tool
// call is one delta. So an error is always an HTTP status, never an event in the middle of a stream.
package openai
