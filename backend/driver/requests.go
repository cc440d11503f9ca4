// Package driver has the interfaces that authors of backends implement beside [art.Backend], each for what only some
// backends can do, in the manner of database/sql/driver. A Model uses those that its backend has; where one lacks what
// is asked for, the error is an [art.ErrUnsupported]. backend/loop has those of training loops of one's own.
package driver

import (
	"context"
	"net/http"

	"github.com/goart-dev/art"
)

// HTTPServer is a [art.Backend] with an OpenAI-compatible HTTP API.
type HTTPServer interface {
	// Handler serves /v1/chat/completions, /v1/models, and what else the backend has, for the registered models, to other
	// processes. opts say which clients it answers, and may be nil; invalid options are an [art.ErrInvalid].
	Handler(opts *art.HandlerOptions) (http.Handler, error)
	// Transport answers the same requests in process, without a socket, for model m. It serves a request with the
	// seed and the recorder of the request's context.
	Transport(m *art.Model) http.RoundTripper
}

// Pinner is a [art.Backend] that can go on answering with a step when the next ones are made.
type Pinner interface {
	// Pin returns the step of m that is the newest now, and what makes a context with which it answers.
	Pin(m *art.Model) (pinned func(ctx context.Context) context.Context, step int, err error)
}

// StepPinner is a [Pinner] that can answer with any stored step of a model.
type StepPinner interface {
	// PinStep returns what makes a context with which a stored step of m answers. It is an [art.ErrInvalid] if the step
	// has no checkpoint.
	PinStep(ctx context.Context, m *art.Model, step int) (pinned func(ctx context.Context) context.Context, err error)
}

// Streamer is a [art.Backend] that delivers a reply while it is sampled.
type Streamer interface {
	// Stream answers like [art.Backend.Complete]. While the reply is sampled it calls piece with what has been added since
	// the call before: one call at a time, none after Stream has returned. All pieces together are the reply: texts and
	// token ids joined, they are those of the response's message. What may still become something else, such as half a
	// character or the beginning of a stop string or of a tool call, is held back.
	//
	// An error of piece ends the reply and is returned. So does the end of ctx, which frees the request's memory at once.
	// piece may block, on a client that reads slowly; other requests must go on meanwhile.
	Stream(ctx context.Context, m *art.Model, req *art.ChatRequest, piece func(art.Piece) error) (*art.ChatResponse, error)
}

// Tokenizer is a [art.Backend] that shows the token ids of a model.
type Tokenizer interface {
	// Tokenize returns the ids of the prompt that [art.Backend.Complete] renders from req, and the ids of reply after it,
	// with the end-of-turn token. A nil reply has none. req.Settings is ignored.
	Tokenize(ctx context.Context, m *art.Model, req *art.ChatRequest, reply *art.Message) (prompt, ids []int32, err error)
	// Encode returns the ids of a text as it is, without a chat template. Special tokens that are written in it are
	// recognised. special adds those that the tokenizer puts around a text, such as the beginning-of-sequence token.
	Encode(ctx context.Context, m *art.Model, text string, special bool) ([]int32, error)
	// Decode returns the text of ids, special tokens included. Bytes that are not UTF-8 become U+FFFD. An id that the
	// vocabulary lacks is an [art.ErrInvalid].
	Decode(ctx context.Context, m *art.Model, ids []int32) (string, error)
	// TokenBytes returns the bytes that each of ids adds to a text. They may be a part of a character. An id that the
	// vocabulary lacks is an [art.ErrInvalid].
	TokenBytes(ctx context.Context, m *art.Model, ids []int32) ([][]byte, error)
}

// Sampler is a [art.Backend] that computes with token ids.
type Sampler interface {
	// Logprobs returns the logprob of each of ids but the first, given those before it, under the newest step of m at
	// temperature 1; and that step. For ids that this step sampled they equal [art.Sample].Logprobs, up to rounding.
	Logprobs(ctx context.Context, m *art.Model, ids []int32) (logprobs []float32, step int, err error)
	// Sample continues prompt, at least one id, with the newest step of m. Every field of s is set. The reply ends where
	// one of [art.Backend.Complete] would end: with the same prompt ids and settings both sample the same,
	// except that with a ResponseFormat there is no reasoning before the text here.
	//
	// The response's message has the text of the reply without special tokens; nothing in it is parsed as reasoning or
	// tool calls. Its Sample is set for frozen models too. piece is called as [Streamer] says, and may be nil; a backend
	// that is no Streamer calls it once, with the whole reply.
	Sample(
		ctx context.Context, m *art.Model, prompt []int32, s art.Sampling, piece func(art.Piece) error,
	) (*art.ChatResponse, error)
}
