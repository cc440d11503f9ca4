package art

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
)

// HTTPClient returns a client that answers OpenAI requests as m, in process and without a socket: give it to the OpenAI
// client that an agent already uses. The host of a URL is ignored. Requests made with a context of [Record] are
// recorded, and their seeds follow a gather's context like those of [Model.Chat]. When the code that made them fails
// after an error response, [Record] and the [Failure] of a gather quote that response, which the errors of many clients
// leave out.
//
// When m is not registered, or its backend is no [HTTPServer], each request fails with [ErrNotRegistered] or
// [ErrUnsupported]. A client made before [Model.Register] works after it.
func (m *Model) HTTPClient() *http.Client {
	return &http.Client{Transport: transport{m}}
}

// transport looks the backend up at each request, so that a client may be made before the model is registered.
type transport struct{ m *Model }

// RoundTrip implements [http.RoundTripper].
func (t transport) RoundTrip(req *http.Request) (*http.Response, error) {
	server, err := capability[HTTPServer](t.m, "serve request", "art.HTTPServer, such as backend/local")
	if err != nil {
		if req.Body != nil {
			req.Body.Close() // a RoundTripper must close it, on errors too
		}
		return nil, err
	}
	response, err := server.Transport(t.m).RoundTrip(req)
	if err != nil {
		return nil, err
	}
	noteAnswer(req.Context(), response)
	return response, nil
}

// refusal remembers the model's last response to an HTTP client, when that was an error. Clients leave its message out
// of their errors (openai-go says "400 Bad Request" and no more), but the reader of a failed rollout needs to know why.
type refusal struct{ last atomic.Pointer[answer] }

// answer is a response that is not a success.
type answer struct{ status, message string }

// refusalKey is the context key of a *refusal.
type refusalKey struct{}

// withRefusal returns a context whose HTTP calls of the model are remembered.
func withRefusal(ctx context.Context) (context.Context, *refusal) {
	r := &refusal{}
	return context.WithValue(ctx, refusalKey{}, r), r
}

// explained adds the last error response to the error of the code that received it, unless the error quotes it already.
func (r *refusal) explained(err error) error {
	a := r.last.Load()
	if err == nil || a == nil || strings.Contains(err.Error(), a.message) {
		return err
	}
	return fmt.Errorf("%w; the model's last answer was %s: %s", err, a.status, a.message)
}

// noteAnswer records a response in the refusal of the request's context. Its body can still be read.
func noteAnswer(ctx context.Context, response *http.Response) {
	r, ok := ctx.Value(refusalKey{}).(*refusal)
	if !ok {
		return
	}
	if response.StatusCode < http.StatusBadRequest {
		r.last.Store(nil)
		return
	}
	// If reading the body fails here, it fails again for the client.
	head, _ := io.ReadAll(io.LimitReader(response.Body, maxErrorBody))
	rest := response.Body
	response.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(head), rest), rest}
	r.last.Store(&answer{response.Status, errorMessage(head)})
}

// maxErrorBody is how many bytes of an error's body are read.
const maxErrorBody = 64 << 10

// errorMessage returns the message of an error of OpenAI's form, else the text.
func errorMessage(body []byte) string {
	const longest = 4 << 10
	var read struct {
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	text := string(bytes.TrimSpace(body))
	if json.Unmarshal(body, &read) == nil && read.Error.Message != "" {
		text = read.Error.Message
	}
	return strings.ToValidUTF8(text[:min(len(text), longest)], "\uFFFD")
}
